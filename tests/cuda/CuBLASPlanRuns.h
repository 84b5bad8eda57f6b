//===- CuBLASPlanRuns.h - Products that tests give to cuBLASLt --*- C++ -*-===//
//
// Plans of every epilogue that the executor uses, which come from no trace, and memory for their
// values.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CuBLASAlgorithms.h"
#include "CuBLASKernel.h"

#include "runtime/PatchedLaunch.h"

#include "support/TensorTesting.h"

#include <array>

namespace rondo {

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

struct EpilogueName {
  cublasLtEpilogue_t epilogue;
  const char *name;
};
/// All that the executor uses.
inline constexpr EpilogueName epilogueNames[] = {
    {CUBLASLT_EPILOGUE_DEFAULT, "none"},      {CUBLASLT_EPILOGUE_BIAS, "bias"},
    {CUBLASLT_EPILOGUE_RELU, "relu"},         {CUBLASLT_EPILOGUE_RELU_BIAS, "relu_bias"},
    {CUBLASLT_EPILOGUE_GELU, "gelu"},         {CUBLASLT_EPILOGUE_GELU_BIAS, "gelu_bias"},
    {CUBLASLT_EPILOGUE_GELU_AUX, "gelu_aux"}, {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, "gelu_aux_bias"},
    {CUBLASLT_EPILOGUE_DGELU, "dgelu"},       {CUBLASLT_EPILOGUE_DGELU_BGRAD, "dgelu_bgrad"},
    {CUBLASLT_EPILOGUE_BGRADA, "bgrada"},     {CUBLASLT_EPILOGUE_BGRADB, "bgradb"},
};

struct ProductForm {
  int64_t m, n, k;
  bool isLeftTransposed, isRightTransposed;
  int64_t batches = 1;
  bool hasAddend = false;
};

inline bool isOneOf(cublasLtEpilogue_t epilogue, std::initializer_list<cublasLtEpilogue_t> list) {
  return llvm::is_contained(list, epilogue);
}
inline bool readsBias(cublasLtEpilogue_t epilogue) {
  return isOneOf(epilogue, {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
                            CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS});
}
inline bool writesBias(cublasLtEpilogue_t epilogue) {
  return isOneOf(epilogue, {CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA,
                            CUBLASLT_EPILOGUE_BGRADB});
}
inline bool readsAux(cublasLtEpilogue_t epilogue) {
  return isOneOf(epilogue, {CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU_BGRAD});
}
inline bool writesAux(cublasLtEpilogue_t epilogue) {
  return isOneOf(epilogue, {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS});
}

/// One with sizes that fill tiles, one with odd sizes, one whose sum is worth splitting; without an
/// epilogue also all transposes, batches and a matrix that is added. Gradients of biases want their
/// factors as they are here, and what goes into GELU rows that are multiples of 8.
inline std::vector<ProductForm> formsOf(cublasLtEpilogue_t epilogue) {
  if (isOneOf(epilogue, {CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}))
    return {{64, 96, 128, false, true}, {56, 40, 33, false, true}, {64, 64, 8192, false, true}};
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    int64_t oddRows = readsAux(epilogue) || writesAux(epilogue) ? 56 : 57;
    return {{64, 96, 128, true, false},
            {64, 96, 128, false, false},
            {oddRows, 33, 41, false, false},
            {64, 64, 8192, true, false}};
  }
  return {{64, 96, 128, false, false},   {64, 96, 128, false, true},
          {64, 96, 128, true, false},    {64, 96, 128, true, true},
          {57, 33, 41, false, false},    {57, 33, 41, true, false},
          {64, 64, 8192, true, false},   {64, 64, 8192, false, false},
          {48, 40, 56, true, false, 5},  {64, 96, 128, false, false, 1, true},
          {200, 72, 264, true, false, 2}};
}

inline cuda::StoredMatrix stored(int64_t rows, int64_t columns, bool isTransposed) {
  cuda::StoredMatrix matrix;
  matrix.rows = isTransposed ? columns : rows;
  matrix.columns = isTransposed ? rows : columns;
  matrix.leadingDimension = matrix.rows;
  matrix.batchStride = matrix.rows * matrix.columns;
  matrix.isTransposed = isTransposed;
  return matrix;
}

/// Its values, which are those of no trace, are numbered by what they are.
enum PlanValue : uint32_t { Left, Right, Addend, Vector, Aux, Out, numPlanValues };

inline cuda::CuBLASPlan planOf(DType dtype, cublasLtEpilogue_t epilogue, const ProductForm &form) {
  cuda::CuBLASPlan plan;
  cuda::CuBLASProduct &product = plan.product;
  product.dtype = dtype;
  product.m = form.m;
  product.n = form.n;
  product.k = form.k;
  product.batches = form.batches;
  product.left = stored(form.m, form.k, form.isLeftTransposed);
  product.right = stored(form.k, form.n, form.isRightTransposed);
  product.out = stored(form.m, form.n, false);
  product.calls.push_back({});
  plan.epilogue = epilogue;
  plan.left = ValueId(Left);
  plan.right = ValueId(Right);
  plan.out = ValueId(Out);
  if (form.hasAddend) {
    product.addend = product.out;
    product.beta = 0.5;
    plan.addend = ValueId(Addend);
  }
  if (readsBias(epilogue) || writesBias(epilogue))
    plan.vector = ValueId(Vector);
  product.hasVector = readsBias(epilogue);
  if (readsAux(epilogue) || writesAux(epilogue))
    plan.aux = ValueId(Aux);
  return plan;
}

/// Elements of each value; 0 for one that the plan does not have.
inline std::array<int64_t, numPlanValues> sizesOf(const cuda::CuBLASPlan &plan) {
  const cuda::CuBLASProduct &product = plan.product;
  int64_t matrix = product.m * product.n;
  std::array<int64_t, numPlanValues> sizes = {};
  sizes[Left] = product.m * product.k * product.batches;
  sizes[Right] = product.k * product.n * product.batches;
  sizes[Addend] = product.addend ? matrix * product.batches : 0;
  if (plan.vector)
    sizes[Vector] = plan.epilogue == CUBLASLT_EPILOGUE_BGRADB ? product.n : product.m;
  sizes[Aux] = plan.aux ? matrix : 0;
  sizes[Out] = matrix * product.batches;
  return sizes;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Bytes of workspace that algorithms may need.
inline constexpr uint64_t maxWorkspace = 4 << 20;

/// A plan with memory for its values, which lie `alignment` bytes behind a multiple of 256.
class PlanRuns {
public:
  using Contents = std::vector<std::vector<std::byte>>;

  PlanRuns(DeviceRef device, std::shared_ptr<const cuda::CuBLASHandle> handle,
           const cuda::CuBLASPlan &plan)
      : device_(std::move(device)), handle_(std::move(handle)), plan_(plan),
        stream_(cantFail(device_->createStream())), sizes_(sizesOf(plan)) {
    for (uint32_t value = 0; value < numPlanValues; ++value) {
      if (!sizes_[value])
        continue;
      bool isResult = value == Out || (value == Vector && writesBias(plan.epilogue)) ||
                      (value == Aux && writesAux(plan.epilogue));
      (isResult ? results_ : operands_).push_back(ValueId(value));
      storages_[value] = cantFail(Storage::allocate(device_, bytesOf(value) + 256));
      if (!isResult)
        contents_[value] = smallNumbers(sizes_[value], value + 1);
    }
    workspace_ = cantFail(Storage::allocate(device_, maxWorkspace));
  }

  llvm::Expected<KernelRef> compile(const CuBLASAlgorithm &algorithm) const {
    return cuda::makeCuBLASKernel(handle_, plan_, operands_, results_, algorithm.workspaceBytes,
                                  algorithm.algorithm);
  }
  /// With the algorithm that the executor chooses.
  llvm::Expected<KernelRef> compileChosen() const {
    return cuda::makeCuBLASKernel(handle_, plan_, operands_, results_, maxWorkspace);
  }

  /// Puts the operands where they are to be from now on.
  llvm::Error place(uint64_t alignment) {
    offset_ = alignment % 256;
    for (ValueId value : operands_)
      if (llvm::Error error =
              stream_->copy(at(value), contents_[value.index()]->data(), bytesOf(value.index())))
        return error;
    return stream_->synchronize();
  }

  /// What a launch gives, results and workspace poisoned before. Errors: the library's.
  llvm::Expected<Contents> runDirectly(const Kernel &kernel, uint64_t workspaceBytes) {
    return run(workspaceBytes,
               [&](const KernelArgs &args) { return kernel.enqueue(*stream_, args); });
  }

  /// What a graph gives that was captured at the run's own addresses.
  llvm::Expected<Contents> runCaptured(const Kernel &kernel, uint64_t workspaceBytes) {
    llvm::Expected<std::unique_ptr<Graph>> graph = device_->createGraph();
    if (!graph)
      return graph.takeError();
    std::unique_ptr<GraphExec> exec;
    return run(workspaceBytes, [&](const KernelArgs &args) -> llvm::Error {
      GraphSink sink(device_, **graph);
      if (llvm::Error error = kernel.enqueue(sink, args))
        return error;
      llvm::Expected<std::unique_ptr<GraphExec>> made = (*graph)->instantiate();
      if (!made)
        return made.takeError();
      exec = std::move(*made);
      return exec->launch(*stream_);
    });
  }

  /// The proof of PatchedLaunch.
  llvm::Error runPatched(const Kernel &kernel, uint64_t workspaceBytes, PatchedLaunch &patched) {
    return withArgs(workspaceBytes, [&](const KernelArgs &args) -> llvm::Error {
      std::vector<llvm::ArrayRef<std::byte>> memory;
      for (const std::vector<ValueId> *values : {&operands_, &results_})
        for (ValueId value : *values)
          memory.push_back({at(value), bytesOf(value.index())});
      if (args.workspace)
        memory.push_back({static_cast<std::byte *>(args.workspace), workspaceBytes});
      return patched.launch(kernel, args, memory, *stream_);
    });
  }

  /// The product in what a run gave.
  std::vector<double> productOf(const Contents &contents) const {
    size_t index = llvm::find(results_, ValueId(Out)) - results_.begin();
    Tensor tensor = hostTensor(sizes_[Out]);
    std::memcpy(tensor.data(), contents[index].data(), contents[index].size());
    return valuesOf(tensor);
  }

private:
  size_t bytesOf(uint32_t value) const { return sizes_[value] * dtypeSize(plan_.product.dtype); }
  std::byte *at(ValueId value) const { return storages_[value.index()]->data() + offset_; }

  Tensor hostTensor(int64_t size) const {
    return poisonedTensor(TensorType(plan_.product.dtype, Dims{Dim(size)}, Device::host()));
  }
  /// Between -2 and 2, with few significant bits.
  Tensor smallNumbers(int64_t size, uint64_t seed) const {
    Tensor tensor = hostTensor(size);
    std::vector<double> values = randomValues(size, seed);
    for (double &value : values)
      value = std::round(value * 32) / 32;
    host::fromDense<double>(values, tensor.ref());
    return tensor;
  }

  llvm::Error withArgs(uint64_t workspaceBytes,
                       llvm::function_ref<llvm::Error(const KernelArgs &)> use) {
    auto slotsOf = [&](const std::vector<ValueId> &values) {
      std::vector<Slot> slots;
      for (ValueId value : values)
        slots.emplace_back().address = at(value);
      return slots;
    };
    std::vector<Slot> operands = slotsOf(operands_), results = slotsOf(results_);
    for (ValueId value : results_)
      if (llvm::Error error = stream_->fill(at(value), 0xff, bytesOf(value.index())))
        return error;
    if (workspaceBytes)
      if (llvm::Error error = stream_->fill(workspace_->data(), 0xff, workspaceBytes))
        return error;
    return use({operands, results, workspaceBytes ? workspace_->data() : nullptr, {}});
  }

  llvm::Expected<Contents> run(uint64_t workspaceBytes,
                               llvm::function_ref<llvm::Error(const KernelArgs &)> launch) {
    if (llvm::Error error = withArgs(workspaceBytes, launch))
      return error;
    Contents contents;
    for (ValueId value : results_) {
      contents.emplace_back(bytesOf(value.index()));
      if (llvm::Error error =
              stream_->copy(contents.back().data(), at(value), contents.back().size()))
        return error;
    }
    if (llvm::Error error = stream_->synchronize())
      return error;
    return contents;
  }

  DeviceRef device_;
  std::shared_ptr<const cuda::CuBLASHandle> handle_;
  cuda::CuBLASPlan plan_;
  std::unique_ptr<Stream> stream_;
  std::array<int64_t, numPlanValues> sizes_;
  std::vector<ValueId> operands_, results_;
  std::array<StorageRef, numPlanValues> storages_;
  std::array<std::optional<Tensor>, numPlanValues> contents_; ///< of operands
  StorageRef workspace_;
  uint64_t offset_ = 0;
};

} // namespace rondo
