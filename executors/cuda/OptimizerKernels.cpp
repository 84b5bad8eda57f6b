//===- OptimizerKernels.cpp - Parameter updates in place ------------------===//
//
// Each element is computed in f32, in f64 if one of the tensors is f64, and each state is rounded
// once when it is stored.
//
//===----------------------------------------------------------------------===//

#include "KernelTypes.h"
#include "OptimizerDevice.h"
#include "PointwiseDevice.h"

#include "rondo/executors/OpNumber.h"

#include <algorithm>

using namespace rondo;
using namespace rondo::cuda;

static void put(DeviceNumber &number, const OpNumber &from, const TypedArgs &args) {
  if (const TensorRef *tensor = from.tensor(args)) {
    number.address = tensor->data;
    number.type = elementType(tensor->dtype);
    return;
  }
  ScalarConstant scalar = from.scalar(args);
  number.bits = scalarBits(scalar.value, scalar.dtype);
  number.type = elementType(scalar.dtype);
}

/// Operand `i` as `foundInf`.
static const float *getFoundInf(const TypedArgs &args, unsigned i) {
  return args.has(i) ? args.operand(i).as<float>() : nullptr;
}

static bool isAligned(const TensorRef &tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) %
             std::min<size_t>(16, dtypeSize(tensor.dtype) * optimizerVector) ==
         0;
}

/// Puts in the addresses of a run. Returns an error where tensors overlap that must not.
template <int N, typename Numbers>
static llvm::Error setAddresses(UpdateParams<N, Numbers> &params, const CommandSink &sink,
                                const TypedArgs &args) {
  for (int k = 0; k < N; ++k) {
    params.tensors[k] = args.operand(k).data;
    params.isDense &= isAligned(args.operand(k));
    for (int other = 0; k != 1 && other < N; ++other)
      if (other != k)
        if (llvm::Error error = checkOverlap(sink, args.operand(k), args.operand(other)))
          return error;
  }
  return llvm::Error::success();
}

static CUDAGrid updateGrid(int64_t count, bool isDense) {
  int64_t perBlock = isDense ? optimizerBlock * optimizerVector : optimizerBlock;
  CUDAGrid grid;
  grid.grid.x = std::min(blocksFor(count, perBlock), maxOptimizerBlocks);
  grid.block.x = optimizerBlock;
  return grid;
}

/// An update of the first N operands. `setNumbers(numbers, args)` puts in those of a run.
template <int N, typename Numbers, typename SetNumbers>
static llvm::Expected<CUDAKernelFn> makeUpdate(const OpContext &op, const Numbers &numbers,
                                               SetNumbers setNumbers) {
  UpdateParams<N, Numbers> params;
  params.numbers = numbers;
  llvm::SmallVector<TensorSizes, N> tensors;
  std::array<llvm::ArrayRef<int64_t>, N> strides;
  bool inDouble = false;
  for (int k = 0; k < N; ++k) {
    tensors.emplace_back(*op.tensor(k));
    params.types[k] = elementType(tensors[k].dtype);
    inDouble |= tensors[k].dtype == DType::F64;
  }
  for (int k = 0; k < N; ++k)
    strides[k] = tensors[k].strides;
  llvm::Expected<Layout<N>> layout =
      makeLayout<N>(tensors[0].shape, strides, memoryOrder(tensors[0].strides));
  if (!layout)
    return layout.takeError();
  params.layout = *layout;
  params.isDense = layout->rank == 1;
  for (int k = 0; k < N; ++k)
    params.isDense &= layout->strides[k][0] == 1 &&
                      isVectorType(inDouble ? ComputeType::F64 : ComputeType::F32, params.types[k]);
  CUDAKernelFn kernel;
  kernel.functions = {{updateKernel(params, inDouble)}};
  kernel.enqueue = [params, setNumbers](const CUDAWork &work,
                                        const TypedArgs &args) -> llvm::Error {
    if (params.layout.count == 0)
      return llvm::Error::success();
    UpdateParams<N, Numbers> run = params;
    if (llvm::Error error = setAddresses(run, work.sink(), args))
      return error;
    setNumbers(run.numbers, args);
    return work.launch(0, updateGrid(run.layout.count, run.isDense), run);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeSGD(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  SGDNumbers numbers;
  numbers.momentum = op.numberAttribute("momentum");
  numbers.dampening = op.numberAttribute("dampening");
  numbers.decay = op.numberAttribute("weight_decay");
  numbers.nesterov = op.boolAttribute("nesterov");
  auto setNumbers = [lr = OpNumber(op, 3, "lr")](SGDNumbers &run, const TypedArgs &args) {
    put(run.lr, lr, args);
    run.foundInf = getFoundInf(args, 4);
  };
  return op.tensor(2) ? makeUpdate<3>(op, numbers, setNumbers)
                      : makeUpdate<2>(op, numbers, setNumbers);
}

static llvm::Expected<CUDAKernelFn> makeAdam(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  AdamNumbers numbers;
  numbers.beta1 = op.numberAttribute("beta1");
  numbers.beta2 = op.numberAttribute("beta2");
  numbers.eps = op.numberAttribute("eps");
  numbers.decay = op.numberAttribute("weight_decay");
  numbers.decoupled = op.boolAttribute("decoupled");
  auto setNumbers = [step = OpNumber(op, 4), lr = OpNumber(op, 5, "lr")](AdamNumbers &run,
                                                                         const TypedArgs &args) {
    put(run.step, step, args);
    put(run.lr, lr, args);
    run.foundInf = getFoundInf(args, 6);
  };
  return makeUpdate<4>(op, numbers, setNumbers);
}

void cuda::addOptimizerKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "sgd_", .make = makeSGD});
  addKernel(executor, {.op = "adam_", .make = makeAdam});
}
