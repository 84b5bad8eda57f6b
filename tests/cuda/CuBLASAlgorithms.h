//===- CuBLASAlgorithms.h - What cuBLASLt could do for a plan ---*- C++ -*-===//
//
// The executor asks the library for one algorithm. For tests, here are those that its heuristic
// names, and a sample of all others: of every algorithm some tiles, stages, swizzles, clusters and
// options, each with split-K and every way to add up the parts. Only what cublasLtMatmulAlgoCheck
// accepts is given.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CuBLASDescriptors.h"
#include "SharedLibrary.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace rondo {

/// An algorithm with all that is chosen about it.
struct CuBLASAlgorithm {
  cublasLtMatmulAlgo_t algorithm = {};
  uint64_t workspaceBytes = 0; ///< that it needs
  uint32_t alignment = 1;      ///< of matrices, that it needs
  int32_t id = -1;
  int32_t numSplits = 1;
  std::string text = {};   ///< `algorithm 66, tile 20, …`
  bool isProposed = false; ///< by the heuristic
};

/// The library's functions that only tests call.
struct CuBLASAlgorithmFunctions {
  decltype(&::cublasLtMatmulAlgoGetIds) getIds;
  decltype(&::cublasLtMatmulAlgoInit) init;
  decltype(&::cublasLtMatmulAlgoCheck) check;
  decltype(&::cublasLtMatmulAlgoCapGetAttribute) getCapability;
  decltype(&::cublasLtMatmulAlgoConfigSetAttribute) setChoice;
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) getChoice;

  /// Errors: InvalidArgument, also for a function that the library does not have.
  static llvm::Expected<CuBLASAlgorithmFunctions> load() {
    llvm::Expected<cuda::SharedLibrary> file = cuda::CuBLASLibrary::open();
    if (!file)
      return file.takeError();
    CuBLASAlgorithmFunctions functions;
    file->find(functions.getIds, "cublasLtMatmulAlgoGetIds");
    file->find(functions.init, "cublasLtMatmulAlgoInit");
    file->find(functions.check, "cublasLtMatmulAlgoCheck");
    file->find(functions.getCapability, "cublasLtMatmulAlgoCapGetAttribute");
    file->find(functions.setChoice, "cublasLtMatmulAlgoConfigSetAttribute");
    file->find(functions.getChoice, "cublasLtMatmulAlgoConfigGetAttribute");
    if (llvm::Error error = file->checkFound())
      return error;
    return functions;
  }
};

/// Looks for the algorithms of one plan. The same seed gives the same sample.
class CuBLASAlgorithmSearch {
public:
  /// Most drawn choices of one algorithm, and of those most that are accepted, before the ways to
  /// split are counted.
  static constexpr unsigned maxDraws = 40, maxAccepted = 4;

  CuBLASAlgorithmSearch(const CuBLASAlgorithmFunctions &functions, const cuda::CuBLASHandle &handle,
                        const cuda::CuBLASPlan &plan, uint64_t maxWorkspace, uint32_t seed)
      : functions_(functions), handle_(handle), plan_(plan), maxWorkspace_(maxWorkspace),
        random_(seed) {}

  /// Errors: the library's, if it has no list of algorithms; that the device is lost.
  llvm::Error run() {
    auto descriptors = cuda::CuBLASDescriptors::get(handle_.library(), plan_);
    if (!descriptors)
      return descriptors.takeError();
    descriptors_ = *descriptors;
    // Looked at for their alignment alone.
    const void *example = reinterpret_cast<const void *>(uintptr_t(1 << 20) + 16);
    if (llvm::Error error =
            cuda::setPointers(handle_.library(), plan_, descriptors_.product, example, example))
      return error;
    if (llvm::Error error = addProposed())
      return error;
    cuda::CuBLASTypes types = cuda::CuBLASTypes::of(plan_.product.dtype);
    std::vector<int> ids(256);
    int numIds = 0;
    if (llvm::Error error = handle_.run("cublasLtMatmulAlgoGetIds", [&] {
          return functions_.getIds(handle_.get(), types.compute, types.scale, types.data,
                                   types.data, types.data, types.data, int(ids.size()), ids.data(),
                                   &numIds);
        }))
      return error;
    ids.resize(std::clamp<int>(numIds, 0, ids.size()));
    for (int id : ids)
      if (llvm::Error error = addSample(id))
        return error;
    return llvm::Error::success();
  }

  size_t numTried() const { return tried_.size(); } ///< without those of the heuristic
  const std::vector<CuBLASAlgorithm> &accepted() const { return accepted_; }

private:
  /// What the library says of an algorithm.
  struct Capabilities {
    std::vector<uint32_t> tiles, stages;
    int32_t splits = 0, customOptions = 0;
    uint32_t schemes = 0, swizzles = 0;
    uint32_t alignment = 1; ///< of addresses
    bool fits = true;       ///< the plan's columns begin at multiples of the alignment
  };

  /// True if `call` succeeds, false if the library says no. Errors: that the device is lost.
  llvm::Expected<bool> says(llvm::StringRef name, llvm::function_ref<cublasStatus_t()> call) {
    llvm::Error error = handle_.run(name, call);
    if (!error)
      return true;
    if (deviceErrorKind(error) == DeviceErrorKind::Lost)
      return error;
    llvm::consumeError(std::move(error));
    return false;
  }

  llvm::Error addProposed() {
    auto preference = cuda::describePreference(handle_.library(), maxWorkspace_, 16);
    if (!preference)
      return preference.takeError();
    std::vector<cublasLtMatmulHeuristicResult_t> found(4);
    int numFound = 0;
    llvm::Expected<bool> isThere = says("cublasLtMatmulAlgoGetHeuristic", [&] {
      return handle_.library().findAlgorithms(handle_.get(), &descriptors_.product,
                                              &descriptors_.left, &descriptors_.right,
                                              &descriptors_.addend, &descriptors_.out, &*preference,
                                              int(found.size()), found.data(), &numFound);
    });
    if (!isThere || !*isThere)
      return isThere.takeError();
    found.resize(std::clamp<int>(numFound, 0, found.size()));
    for (const cublasLtMatmulHeuristicResult_t &result : found)
      if (result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= maxWorkspace_) {
        add(result.algo, result.workspaceSize, /*alignment=*/1);
        accepted_.back().isProposed = true;
      }
    return llvm::Error::success();
  }

  /// Draws choices for the algorithm `id`, if the library has it for these types.
  llvm::Error addSample(int id) {
    cuda::CuBLASTypes types = cuda::CuBLASTypes::of(plan_.product.dtype);
    cublasLtMatmulAlgo_t plain = {};
    llvm::Expected<bool> isThere = says("cublasLtMatmulAlgoInit", [&] {
      return functions_.init(handle_.get(), types.compute, types.scale, types.data, types.data,
                             types.data, types.data, id, &plain);
    });
    if (!isThere || !*isThere)
      return isThere.takeError();
    Capabilities can = capabilitiesOf(plain);
    unsigned numAccepted = 0;
    for (unsigned draw = 0; can.fits && draw < maxDraws && numAccepted < maxAccepted; ++draw) {
      cublasLtMatmulAlgo_t drawn = plain;
      if (!this->draw(can, draw == 0, drawn))
        continue;
      llvm::Expected<bool> fits = check(drawn, can.alignment);
      if (!fits)
        return fits.takeError();
      if (!*fits)
        continue;
      ++numAccepted;
      if (llvm::Error error = addSplits(drawn, can))
        return error;
    }
    return llvm::Error::success();
  }

  /// With the sum in parts.
  llvm::Error addSplits(const cublasLtMatmulAlgo_t &whole, const Capabilities &can) {
    for (int32_t numSplits : {2, 4, 8})
      for (uint32_t scheme : {uint32_t(CUBLASLT_REDUCTION_SCHEME_INPLACE),
                              uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE),
                              uint32_t(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)}) {
        cublasLtMatmulAlgo_t split = whole;
        if (!can.splits || !(can.schemes & scheme) ||
            !set(split, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, numSplits) ||
            !set(split, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, scheme))
          continue;
        llvm::Expected<bool> fits = check(split, can.alignment);
        if (!fits)
          return fits.takeError();
      }
    return llvm::Error::success();
  }

  /// Tries the algorithm, unless it was tried, and adds it if the library takes it for the plan.
  llvm::Expected<bool> check(const cublasLtMatmulAlgo_t &algorithm, uint32_t alignment) {
    if (!tried_.insert(textOf(algorithm)).second)
      return false;
    cublasLtMatmulHeuristicResult_t result = {};
    llvm::Expected<bool> fits = says("cublasLtMatmulAlgoCheck", [&] {
      return functions_.check(handle_.get(), &descriptors_.product, &descriptors_.left,
                              &descriptors_.right, &descriptors_.addend, &descriptors_.out,
                              &algorithm, &result);
    });
    if (!fits || !*fits || result.workspaceSize > maxWorkspace_)
      return fits ? llvm::Expected<bool>(false) : std::move(fits);
    add(algorithm, result.workspaceSize, alignment);
    return true;
  }

  //===--- Attributes -----------------------------------------------------===//

  /// `fallback` where the library does not say.
  template <typename T>
  T capability(const cublasLtMatmulAlgo_t &algorithm, cublasLtMatmulAlgoCapAttributes_t attribute,
               T fallback) const {
    T value = fallback;
    size_t written = 0;
    bool isSaid = functions_.getCapability(&algorithm, attribute, &value, sizeof(value),
                                           &written) == CUBLAS_STATUS_SUCCESS &&
                  written == sizeof(value);
    return isSaid ? value : fallback;
  }

  /// At least one number: 0 stands for the library's choice.
  std::vector<uint32_t> capabilityList(const cublasLtMatmulAlgo_t &algorithm,
                                       cublasLtMatmulAlgoCapAttributes_t attribute) const {
    size_t bytes = 0;
    std::vector<uint32_t> values;
    if (functions_.getCapability(&algorithm, attribute, nullptr, 0, &bytes) ==
            CUBLAS_STATUS_SUCCESS &&
        bytes >= sizeof(uint32_t)) {
      values.resize(bytes / sizeof(uint32_t));
      if (functions_.getCapability(&algorithm, attribute, values.data(),
                                   values.size() * sizeof(uint32_t),
                                   &bytes) != CUBLAS_STATUS_SUCCESS)
        values.clear();
    }
    if (values.empty())
      values.push_back(0);
    return values;
  }

  Capabilities capabilitiesOf(const cublasLtMatmulAlgo_t &algorithm) const {
    Capabilities can;
    can.tiles = capabilityList(algorithm, CUBLASLT_ALGO_CAP_TILE_IDS);
    can.stages = capabilityList(algorithm, CUBLASLT_ALGO_CAP_STAGES_IDS);
    can.splits = capability(algorithm, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, int32_t(0));
    can.schemes = capability(algorithm, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, uint32_t(0));
    can.swizzles = capability(algorithm, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, uint32_t(0));
    can.customOptions = capability(algorithm, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, int32_t(0));
    const cuda::CuBLASProduct &product = plan_.product;
    auto require = [&](cublasLtMatmulAlgoCapAttributes_t attribute,
                       const cuda::StoredMatrix &matrix) {
      uint32_t alignment = std::max(capability(algorithm, attribute, uint32_t(1)), uint32_t(1));
      int64_t size = dtypeSize(product.dtype);
      can.alignment = std::max(can.alignment, alignment);
      can.fits &= matrix.leadingDimension * size % alignment == 0 &&
                  (product.batches == 1 || matrix.batchStride * size % alignment == 0);
    };
    require(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, product.left);
    require(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, product.right);
    require(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES,
            product.addend ? *product.addend : product.out);
    require(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, product.out);
    return can;
  }

  template <typename T>
  bool set(cublasLtMatmulAlgo_t &algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
           T value) const {
    return functions_.setChoice(&algorithm, attribute, &value, sizeof(value)) ==
           CUBLAS_STATUS_SUCCESS;
  }
  template <typename T>
  T get(const cublasLtMatmulAlgo_t &algorithm,
        cublasLtMatmulAlgoConfigAttributes_t attribute) const {
    T value = 0;
    size_t written = 0;
    (void)functions_.getChoice(&algorithm, attribute, &value, sizeof(value), &written);
    return written == sizeof(value) ? value : T(0);
  }

  template <typename T> T anyOf(llvm::ArrayRef<T> values) {
    return values[random_() % values.size()];
  }

  /// False if the library does not let itself be told. A plain draw leaves all to it but the tile
  /// and the stages.
  bool draw(const Capabilities &can, bool isPlain, cublasLtMatmulAlgo_t &algorithm) {
    constexpr uint16_t clusters[] = {CUBLASLT_CLUSTER_SHAPE_AUTO,  CUBLASLT_CLUSTER_SHAPE_AUTO,
                                     CUBLASLT_CLUSTER_SHAPE_1x1x1, CUBLASLT_CLUSTER_SHAPE_2x1x1,
                                     CUBLASLT_CLUSTER_SHAPE_1x2x1, CUBLASLT_CLUSTER_SHAPE_2x2x1};
    if (!set(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, anyOf<uint32_t>(can.tiles)) ||
        !set(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID, anyOf<uint32_t>(can.stages)))
      return false;
    if (isPlain)
      return true;
    uint32_t numOptions = uint32_t(std::max(can.customOptions, 0)) + 1;
    uint32_t option = random_() % 2 ? 0 : random_() % numOptions;
    uint32_t swizzle = can.swizzles ? random_() % 2 : 0;
    // What an algorithm has no choice of stays the library's.
    (void)set(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, option);
    (void)set(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzle);
    (void)set(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, anyOf<uint16_t>(clusters));
    return true;
  }

  void add(const cublasLtMatmulAlgo_t &algorithm, uint64_t workspaceBytes, uint32_t alignment) {
    CuBLASAlgorithm &added = accepted_.emplace_back();
    added.algorithm = algorithm;
    added.workspaceBytes = workspaceBytes;
    added.alignment = alignment;
    added.id = get<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID);
    added.numSplits = std::max(1, get<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
    added.text = textOf(algorithm);
  }

  std::string textOf(const cublasLtMatmulAlgo_t &algorithm) const {
    auto number = [&](auto value) { return std::to_string(value); };
    return "algorithm " + number(get<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID)) + ", tile " +
           number(get<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID)) + ", stages " +
           number(get<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID)) + ", split-K " +
           number(get<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)) + " by scheme " +
           number(get<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)) + ", swizzle " +
           number(get<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING)) + ", option " +
           number(get<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)) + ", cluster " +
           number(get<uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
  }

  const CuBLASAlgorithmFunctions &functions_;
  const cuda::CuBLASHandle &handle_;
  const cuda::CuBLASPlan &plan_;
  uint64_t maxWorkspace_;
  std::mt19937 random_;
  cuda::CuBLASDescriptors descriptors_;
  std::set<std::string> tried_;
  std::vector<CuBLASAlgorithm> accepted_;
};

/// At most `max` of `all`: those of the heuristic, then one of each algorithm after the other,
/// until there are enough, in an order that `seed` decides.
inline std::vector<CuBLASAlgorithm> takeInTurns(std::vector<CuBLASAlgorithm> all, size_t max,
                                                uint32_t seed) {
  std::mt19937 random(seed);
  std::shuffle(all.begin(), all.end(), random);
  std::map<int32_t, std::vector<CuBLASAlgorithm>> byId;
  std::vector<CuBLASAlgorithm> taken;
  for (CuBLASAlgorithm &algorithm : all)
    (algorithm.isProposed ? taken : byId[algorithm.id]).push_back(std::move(algorithm));
  if (taken.size() > max)
    taken.resize(max);
  for (size_t turn = 0; taken.size() < max; ++turn) {
    size_t before = taken.size();
    for (auto &[id, ofId] : byId)
      if (turn < ofId.size() && taken.size() < max)
        taken.push_back(ofId[turn]);
    if (taken.size() == before)
      break;
  }
  return taken;
}

} // namespace rondo
