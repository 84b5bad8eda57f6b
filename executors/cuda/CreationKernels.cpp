//===- CreationKernels.cpp - Tensors and scalars made from attributes -----===//

#include "Copies.h"
#include "CreationDevice.h"

using namespace rondo;
using namespace rondo::cuda;

static CUDAGrid creationGrid(int64_t count) {
  return {.grid = {blocksFor(count, creationBlock), 1, 1}, .block = {creationBlock, 1, 1}};
}

static llvm::Expected<CUDAKernelFn> makeFull(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<ScalarConstant> value = ScalarConstant::get(op, "value");
  if (!value)
    return value.takeError();
  return makeConstantResult(op, elementBits(*value, op.results()[0]->asTensor()->dtype));
}

static llvm::Expected<CUDAKernelFn> makeEmpty(const OpContext &) {
  CUDAKernelFn kernel;
  kernel.enqueue = [](const CUDAWork &, const TypedArgs &) { return llvm::Error::success(); };
  return kernel;
}

/// Element i is start + i * step: of integers exact, else in double. Converted to the dtype once.
template <typename C> static CUDAKernelFn arangeOf(const TensorSizes &out, C start, C step) {
  ArangeParams<C> params;
  params.start = start;
  params.step = step;
  params.count = out.count();
  params.stride = out.strides[0];
  params.type = elementType(out.dtype);
  CUDAKernelFn kernel;
  kernel.functions = {{arangeKernel<C>()}};
  kernel.enqueue = [params](const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (params.count == 0)
      return llvm::Error::success();
    ArangeParams<C> run = params;
    run.out = args.result().data;
    return work.launch(0, creationGrid(run.count), run);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeArange(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes out(*op.results()[0]->asTensor());
  std::optional<int64_t> start = op.attribute("start")->asInt(),
                         step = op.attribute("step")->asInt();
  if (start && step)
    return arangeOf<int64_t>(out, *start, *step);
  return arangeOf<double>(out, op.numberAttribute("start"), op.numberAttribute("step", 1));
}

static llvm::Expected<CUDAKernelFn> makeEye(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes out(*op.results()[0]->asTensor());
  EyeParams params;
  params.rows = out.shape[0];
  params.columns = out.shape[1];
  params.rowStride = out.strides[0];
  params.columnStride = out.strides[1];
  params.type = elementType(out.dtype);
  CUDAKernelFn kernel;
  kernel.functions = {{eyeKernel()}};
  kernel.enqueue = [params](const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    int64_t count = params.rows * params.columns;
    if (count == 0)
      return llvm::Error::success();
    EyeParams run = params;
    run.out = args.result().data;
    return work.launch(0, creationGrid(count), run);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeConstant(const OpContext &op) {
  llvm::Expected<ScalarConstant> constant = ScalarConstant::get(op, "value");
  if (!constant)
    return constant.takeError();
  CUDAKernelFn kernel;
  kernel.enqueue = [value = constant->value](const CUDAWork &, const TypedArgs &args) {
    args.scalarResult() = value;
    return llvm::Error::success();
  };
  return kernel;
}

void cuda::addCreationKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "full", .make = makeFull});
  addKernel(executor, {.op = "empty", .make = makeEmpty});
  addKernel(executor, {.op = "arange", .make = makeArange});
  addKernel(executor, {.op = "eye", .make = makeEye});
  addKernel(executor, {.op = "constant", .make = makeConstant});
}
