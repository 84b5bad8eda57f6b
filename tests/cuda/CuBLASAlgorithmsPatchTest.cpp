//===- CuBLASAlgorithmsPatchTest.cpp - Pointers in any of cuBLASLt's kernels ===//
//
// CuBLASPatchTest has the algorithms that the executor chooses. Here are those that it might choose
// with another version of the library, another shape or another GPU: every algorithm that the
// library takes for a product, in a sample of its tiles and stages, with the sum in up to 8 parts,
// with operands at addresses of any alignment from 16 bytes. Each is captured elsewhere and patched
// (PatchedLaunch.h); one whose graph is not understood must not be patched, and must be right when
// it is captured where it runs.
//
// A test prints a row:
//
//   | dtype | epilogue | algorithms | tried | accepted | run | of them split-K | refused by the
//   launch | patched and bit-equal | of them at congruent addresses only | captured again | not
//   reproducible |
//
//===----------------------------------------------------------------------===//

#include "CUDATesting.h"
#include "CuBLASPlanRuns.h"

#include <gmock/gmock.h>

#include <set>

using namespace rondo;
using namespace rondo::cuda;

namespace {

struct ProofParam {
  DType dtype;
  EpilogueName epilogue;
};
void PrintTo(const ProofParam &param, std::ostream *os) {
  *os << dtypeName(param.dtype).str() << ' ' << param.epilogue.name;
}

struct ProofCounts {
  std::set<int32_t> ids; ///< of what was run
  unsigned tried = 0, accepted = 0, run = 0, split = 0;
  unsigned refused = 0; ///< by the launch at the run's own addresses
  unsigned patched = 0, capturedAgain = 0, notReproducible = 0;
};

//===----------------------------------------------------------------------===//
// The proof
//===----------------------------------------------------------------------===//

class CuBLASAlgorithmsPatchTest : public testing::TestWithParam<ProofParam> {
protected:
  /// Runs of one test, divided among its forms.
  static constexpr size_t maxRuns = 240;
  static constexpr std::array<uint64_t, 5> alignments = {16, 32, 64, 128, 256};

  void SetUp() override {
    device = cudaTestDevice();
    if (!device)
      GTEST_SKIP() << "no device";
    llvm::Expected<std::shared_ptr<const CuBLASLibrary>> library = CuBLASLibrary::load();
    ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
    llvm::Expected<std::shared_ptr<const CuBLASHandle>> created =
        CuBLASHandle::create(*library, device);
    ASSERT_TRUE(bool(created)) << llvm::toString(created.takeError());
    handle = *created;
    llvm::Expected<CuBLASAlgorithmFunctions> found = CuBLASAlgorithmFunctions::load();
    ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
    functions = *found;
  }

  /// What the library takes for the plan; empty after an error, which is one of the test.
  std::vector<CuBLASAlgorithm> search(const CuBLASPlan &plan, uint32_t seed) {
    CuBLASAlgorithmSearch found(functions, *handle, plan, maxWorkspace, seed);
    if (llvm::Error error = found.run())
      ADD_FAILURE() << llvm::toString(std::move(error));
    counts.tried += found.numTried();
    counts.accepted += found.accepted().size();
    return found.accepted();
  }

  /// The proof for one algorithm at the addresses where `runs` has its operands. `expected` is the
  /// product that the executor computes. False if the device is lost.
  bool prove(PlanRuns &runs, const CuBLASAlgorithm &algorithm, PatchedLaunch &patched,
             const std::vector<double> &expected);

  /// False for an algorithm that gives other bits each time, as one that adds in any order.
  static bool isReproducible(PlanRuns &runs, const Kernel &kernel, uint64_t workspaceBytes) {
    auto first = runs.runDirectly(kernel, workspaceBytes);
    auto second = runs.runDirectly(kernel, workspaceBytes);
    bool isSame = first && second && *first == *second;
    if (!first)
      llvm::consumeError(first.takeError());
    if (!second)
      llvm::consumeError(second.takeError());
    return isSame;
  }

  /// Of products, relative. Some algorithms round parts of sums to the result's dtype; how well
  /// tanh is approximated is the algorithm's, too.
  double tolerance() const {
    DType dtype = GetParam().dtype;
    bool hasGELU = llvm::StringRef(GetParam().epilogue.name).contains("gelu");
    return dtype == DType::BF16 ? 4e-2 : dtype == DType::F16 ? 5e-3 : hasGELU ? 1e-3 : 1e-5;
  }

  void print(const PatchedLaunch::Counts &patched) const {
    std::cout << "| " << dtypeName(GetParam().dtype).str() << " | " << GetParam().epilogue.name
              << " | " << counts.ids.size() << " | " << counts.tried << " | " << counts.accepted
              << " | " << counts.run << " | " << counts.split << " | " << counts.refused << " | "
              << counts.patched << " | " << patched.congruent << " | " << counts.capturedAgain
              << " | " << counts.notReproducible << " |\n";
  }

  DeviceRef device;
  std::shared_ptr<const CuBLASHandle> handle;
  CuBLASAlgorithmFunctions functions = {};
  ProofCounts counts;
};

bool CuBLASAlgorithmsPatchTest::prove(PlanRuns &runs, const CuBLASAlgorithm &algorithm,
                                      PatchedLaunch &patched, const std::vector<double> &expected) {
  uint64_t workspaceBytes = algorithm.workspaceBytes;
  llvm::Expected<KernelRef> kernel = runs.compile(algorithm);
  if (!kernel) {
    ADD_FAILURE() << llvm::toString(kernel.takeError());
    return true;
  }
  auto isLost = [](llvm::Error &error) { return deviceErrorKind(error) == DeviceErrorKind::Lost; };
  auto direct = runs.runDirectly(**kernel, workspaceBytes);
  if (!direct) {
    llvm::Error error = direct.takeError();
    bool lost = isLost(error);
    std::string text = llvm::toString(std::move(error));
    EXPECT_FALSE(lost) << text;
    ++counts.refused;
    return !lost;
  }
  ++counts.run;
  counts.split += algorithm.numSplits > 1;
  counts.ids.insert(algorithm.id);
  double difference = relativeError(runs.productOf(*direct), expected);
  EXPECT_TRUE(difference <= tolerance()) << "the product is off by " << difference;

  PatchedLaunch::Counts before = patched.counts();
  llvm::Error error = runs.runPatched(**kernel, workspaceBytes, patched);
  if (!error) {
    counts.patched += patched.counts().launches > before.launches;
    EXPECT_EQ(patched.counts().eager, before.eager) << "cannot be captured";
    return true;
  }
  bool lost = isLost(error), isRefusal = deviceErrorKind(error) == DeviceErrorKind::InvalidArgument;
  std::string text = llvm::toString(std::move(error));
  if (lost) {
    ADD_FAILURE() << text;
    return false;
  }
  if (patched.counts().unexplained > before.unexplained || isRefusal) {
    ++counts.capturedAgain;
    std::cout << algorithm.text << ": " << text << '\n';
    auto captured = runs.runCaptured(**kernel, workspaceBytes);
    if (!captured)
      ADD_FAILURE() << llvm::toString(captured.takeError());
    else if (*captured != *direct && isReproducible(runs, **kernel, workspaceBytes))
      ADD_FAILURE() << "a graph that is captured again gives other bits";
  } else if (!isReproducible(runs, **kernel, workspaceBytes)) {
    ++counts.notReproducible;
  } else {
    ADD_FAILURE() << text;
  }
  return true;
}

// Whatever algorithm computes a product, and wherever its operands lie: its graph is understood and
// can be patched, to the bit, or is not patched and right where it is captured.
TEST_P(CuBLASAlgorithmsPatchTest, EveryAlgorithm) {
  const auto [dtype, epilogue] = GetParam();
  std::vector<ProductForm> forms = formsOf(epilogue.epilogue);
  PatchedLaunch patched(device);
  for (const ProductForm &form : forms) {
    CuBLASPlan plan = planOf(dtype, epilogue.epilogue, form);
    SCOPED_TRACE(std::to_string(form.m) + " x " + std::to_string(form.n) + " x " +
                 std::to_string(form.k));
    PlanRuns runs(device, handle, plan);
    uint32_t seed = uint32_t(form.m * 31 + form.n * 7 + form.k);
    std::vector<CuBLASAlgorithm> algorithms =
        takeInTurns(search(plan, seed), maxRuns / forms.size(), seed);
    llvm::Expected<KernelRef> chosen = runs.compileChosen();
    if (!chosen) { // the executor would not have claimed it
      std::cout << form.m << " x " << form.n << " x " << form.k << ": "
                << llvm::toString(chosen.takeError()) << '\n';
      continue;
    }
    for (size_t number = 0; number < alignments.size(); ++number) {
      uint64_t alignment = alignments[number];
      ASSERT_EQ(llvm::toString(runs.place(alignment)), "");
      auto expected = runs.runDirectly(**chosen, maxWorkspace);
      if (!expected) {
        std::cout << "at multiples of " << alignment << ": " << llvm::toString(expected.takeError())
                  << '\n';
        continue;
      }
      const std::vector<double> product = runs.productOf(*expected);
      for (size_t i = 0; i < algorithms.size(); ++i) {
        SCOPED_TRACE(algorithms[i].text + ", at multiples of " + std::to_string(alignment));
        bool isTurn = i % alignments.size() == number || algorithms[i].isProposed;
        if (isTurn && algorithms[i].alignment <= alignment &&
            !prove(runs, algorithms[i], patched, product))
          return;
      }
    }
  }
  print(patched.counts());
  EXPECT_GT(counts.patched, 0u);
  EXPECT_EQ(counts.patched + counts.capturedAgain + counts.notReproducible, counts.run);
  if (epilogue.epilogue == CUBLASLT_EPILOGUE_DEFAULT) {
    EXPECT_GT(counts.split, 0u) << "no sum was split";
  }
}

std::vector<ProofParam> proofParams() {
  std::vector<ProofParam> params;
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const EpilogueName &epilogue : epilogueNames)
      params.push_back({dtype, epilogue});
  return params;
}

INSTANTIATE_TEST_SUITE_P(, CuBLASAlgorithmsPatchTest, testing::ValuesIn(proofParams()),
                         [](const auto &info) {
                           return dtypeName(info.param.dtype).str() + "_" +
                                  info.param.epilogue.name;
                         });

class CuBLASWorkspaceTest : public CuBLASAlgorithmsPatchTest {};

// An algorithm that gets less workspace than it needs is refused, and the error says by what: the
// launch does nothing, and the device goes on.
TEST_P(CuBLASWorkspaceTest, TooLittleIsRefused) {
  CuBLASPlan plan =
      planOf(GetParam().dtype, GetParam().epilogue.epilogue, {64, 64, 8192, true, false});
  PlanRuns runs(device, handle, plan);
  ASSERT_EQ(llvm::toString(runs.place(256)), "");
  std::vector<CuBLASAlgorithm> all = search(plan, 1);
  auto needy = llvm::find_if(all, [](const CuBLASAlgorithm &algorithm) {
    return algorithm.workspaceBytes > 0 && algorithm.numSplits > 1;
  });
  if (needy == all.end())
    GTEST_SKIP() << "no algorithm needs workspace";
  SCOPED_TRACE(needy->text);
  uint64_t needed = needy->workspaceBytes;
  needy->workspaceBytes = needed - 1;
  KernelRef tooLittle = cantFail(runs.compile(*needy));
  auto refused = runs.runDirectly(*tooLittle, needed - 1);
  ASSERT_FALSE(bool(refused));
  EXPECT_THAT(llvm::toString(refused.takeError()), testing::HasSubstr("cublasLtMatmul failed"));
  needy->workspaceBytes = needed;
  KernelRef enough = cantFail(runs.compile(*needy));
  auto given = runs.runDirectly(*enough, needed);
  EXPECT_TRUE(bool(given)) << llvm::toString(given.takeError());
}
INSTANTIATE_TEST_SUITE_P(, CuBLASWorkspaceTest,
                         testing::Values(ProofParam{DType::BF16, epilogueNames[0]}),
                         [](const auto &) { return "bf16"; });

//===----------------------------------------------------------------------===//
// Without a GPU
//===----------------------------------------------------------------------===//

std::vector<CuBLASAlgorithm> algorithmsNumbered(std::initializer_list<int32_t> ids) {
  std::vector<CuBLASAlgorithm> all;
  for (int32_t id : ids)
    all.emplace_back().id = id;
  return all;
}
std::vector<int32_t> idsOf(llvm::ArrayRef<CuBLASAlgorithm> algorithms) {
  std::vector<int32_t> ids;
  for (const CuBLASAlgorithm &algorithm : algorithms)
    ids.push_back(algorithm.id);
  return ids;
}

// A sample has every algorithm before it has one twice, what the heuristic proposes first, and no
// more than it may have.
TEST(CuBLASAlgorithmsTest, TakesInTurns) {
  std::vector<CuBLASAlgorithm> all = algorithmsNumbered({5, 5, 5, 5, 5, 1, 3, 3, 9});
  all.back().isProposed = true;
  EXPECT_THAT(idsOf(takeInTurns(all, 4, 7)), testing::ElementsAre(9, 1, 3, 5));
  EXPECT_THAT(idsOf(takeInTurns(all, 6, 7)), testing::ElementsAre(9, 1, 3, 5, 3, 5));
  EXPECT_THAT(takeInTurns(all, 100, 7), testing::SizeIs(all.size()));
  EXPECT_THAT(takeInTurns(all, 0, 7), testing::IsEmpty());
  EXPECT_THAT(takeInTurns({}, 3, 7), testing::IsEmpty());
}

// Every plan is one product without gaps, and has the values that its epilogue reads and writes.
TEST(CuBLASAlgorithmsTest, Plans) {
  for (const EpilogueName &epilogue : epilogueNames)
    for (const ProductForm &form : formsOf(epilogue.epilogue)) {
      SCOPED_TRACE(epilogue.name);
      CuBLASPlan plan = planOf(DType::BF16, epilogue.epilogue, form);
      EXPECT_EQ(plan.product.isSingle(), form.batches == 1);
      std::string name = epilogue.name;
      bool hasVector = name.find("bias") != name.npos || name.find("bgrad") != name.npos;
      EXPECT_EQ(bool(plan.vector), hasVector);
      EXPECT_EQ(sizesOf(plan)[Vector] != 0, hasVector);
      bool hasAux = name.find("aux") != name.npos || name.find("dgelu") != name.npos;
      EXPECT_EQ(bool(plan.aux), hasAux);
      EXPECT_EQ(sizesOf(plan)[Aux], hasAux ? form.m * form.n : 0);
      EXPECT_TRUE(!hasAux || form.m % 8 == 0) << "rows of what goes into GELU";
    }
}

// The functions that only tests ask for are there, and the library can be told every plan.
TEST(CuBLASAlgorithmsTest, LibraryTakesPlans) {
  llvm::Expected<std::shared_ptr<const CuBLASLibrary>> library = CuBLASLibrary::load();
  if (!library)
    GTEST_SKIP() << llvm::toString(library.takeError());
  llvm::Expected<CuBLASAlgorithmFunctions> functions = CuBLASAlgorithmFunctions::load();
  EXPECT_TRUE(bool(functions)) << llvm::toString(functions.takeError());
  for (const ProofParam &param : proofParams())
    for (const ProductForm &form : formsOf(param.epilogue.epilogue)) {
      CuBLASPlan plan = planOf(param.dtype, param.epilogue.epilogue, form);
      llvm::Expected<CuBLASDescriptors> descriptors = CuBLASDescriptors::get(**library, plan);
      ASSERT_TRUE(bool(descriptors)) << llvm::toString(descriptors.takeError());
      int pointee = 0;
      llvm::Error error = setPointers(**library, plan, descriptors->product, &pointee, &pointee);
      EXPECT_EQ(llvm::toString(std::move(error)), "") << param.epilogue.name;
    }
}

} // namespace
