//===- CopyKernels.cpp - Copies, conversions and fills --------------------===//
//
// Ops whose result has the elements of one operand or one value, in place or not. Copies without
// conversion work for all dtypes.
//
// to_device and copy_ also copy between host and GPU. Bytes that lie densely on both sides go there
// at once. Else the side on the GPU is rearranged or converted: from the host everything between
// the first and the last element comes into the workspace before, and to the host the result goes
// from there. A host tensor that is written must have no gaps, which would be overwritten.
//
//===----------------------------------------------------------------------===//

#include "Copies.h"
#include "Pointwise.h"

using namespace rondo;
using namespace rondo::cuda;

/// Declines a conversion from or to an 8-bit float.
static llvm::Error checkConversion(const OpContext &op, DType from) {
  return from == op.results()[0]->asTensor()->dtype ? llvm::Error::success() : checkDTypes(op);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// A copy of operand `source` into the result, on one GPU.
template <unsigned source> static llvm::Expected<CUDAKernelFn> makeLocalCopy(const OpContext &op) {
  TensorSizes from(*op.tensor(source)), to(*op.results()[0]->asTensor());
  if (llvm::Error error = checkConversion(op, from.dtype))
    return error;
  CUDAKernelFn kernel;
  llvm::Expected<CopyFn> copy = makeCopy(from, to, kernel);
  if (!copy)
    return copy.takeError();
  kernel.enqueue = [copy = *copy, isDense = isByteCopy(from, to)](
                       const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    const TensorRef &x = args.operand(source), &out = args.result();
    if (source != 0) { // in place
      if (isDense && x.data == out.data)
        return llvm::Error::success();
      if (llvm::Error error = checkOverlap(work.sink(), out, x))
        return error;
    }
    return copy(work, x.data, out.data);
  };
  return kernel;
}

static size_t extentBytes(const TensorSizes &tensor) {
  return stridedExtentBytes(tensor.dtype, tensor.shape, tensor.strides);
}

/// Runs `copy` from operand `source` to the result.
template <unsigned source> static auto copyOperand(CopyFn copy) {
  return [copy = std::move(copy)](const CUDAWork &work, const TypedArgs &args) {
    return copy(work, args.operand(source).data, args.result().data);
  };
}

/// A copy of operand `source`, in host memory, into the result.
template <unsigned source>
static llvm::Expected<CUDAKernelFn> makeUpload(const TensorSizes &from, const TensorSizes &to) {
  CUDAKernelFn kernel;
  llvm::Expected<CopyFn> copy = makeCopy(from, to, kernel);
  if (!copy)
    return copy.takeError();
  if (isByteCopy(from, to)) {
    kernel.enqueue = copyOperand<source>(*copy);
    return kernel;
  }
  size_t bytes = to.count() ? extentBytes(from) : 0;
  kernel.workspaceBytes = bytes;
  kernel.enqueue = [copy = *copy, bytes](const CUDAWork &work, const TypedArgs &args) {
    if (llvm::Error error = work.sink().copy(args.workspace(), args.operand(source).data, bytes))
      return error;
    return copy(work, args.workspace(), args.result().data);
  };
  return kernel;
}

/// A copy of operand `source` into the result, in host memory.
template <unsigned source>
static llvm::Expected<CUDAKernelFn> makeDownload(const TensorSizes &from, const TensorSizes &to) {
  CUDAKernelFn kernel;
  llvm::Expected<CopyFn> copy = makeCopy(from, to, kernel);
  if (!copy)
    return copy.takeError();
  if (isByteCopy(from, to)) {
    kernel.enqueue = copyOperand<source>(*copy);
    return kernel;
  }
  if (!isDenseInMemory(to))
    return makeError("writes a tensor with gaps in host memory: a GPU copies only to tensors there "
                     "that lie densely");
  size_t bytes = to.count() * dtypeSize(to.dtype);
  kernel.workspaceBytes = bytes;
  kernel.enqueue = [copy = *copy, bytes](const CUDAWork &work, const TypedArgs &args) {
    if (llvm::Error error = copy(work, args.operand(source).data, args.workspace()))
      return error;
    return work.sink().copy(args.result().data, args.workspace(), bytes);
  };
  return kernel;
}

/// A copy of operand `source` into the result, of which one may be in host memory.
template <unsigned source> static llvm::Expected<CUDAKernelFn> makeAnyCopy(const OpContext &op) {
  const TensorType &from = *op.tensor(source), &to = *op.results()[0]->asTensor();
  if (from.device == to.device && !to.device.isHost())
    return makeLocalCopy<source>(op);
  if (from.device.isHost() && to.device.isHost())
    return makeError("copies from host memory to host memory, which is for the host device");
  if (!from.device.isHost() && !to.device.isHost())
    return makeError("copies from " + deviceName(from.device) + " to " + deviceName(to.device) +
                     ": between two GPUs copy to the host first");
  if (llvm::Error error = checkConversion(op, from.dtype))
    return error;
  return from.device.isHost() ? makeUpload<source>(TensorSizes(from), TensorSizes(to))
                              : makeDownload<source>(TensorSizes(from), TensorSizes(to));
}

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

/// With operand 1, a 0-d tensor. It may be an element of what is filled: it is overwritten with
/// itself.
static llvm::Expected<CUDAKernelFn> makeTensorFill(const OpContext &op) {
  TensorSizes value(*op.tensor(1)), to(*op.results()[0]->asTensor());
  if (llvm::Error error = checkConversion(op, value.dtype))
    return error;
  CUDAKernelFn kernel;
  llvm::Expected<CopyFn> copy = makeCopy(value, to, kernel);
  if (!copy)
    return copy.takeError();
  kernel.enqueue = [copy = *copy](const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (args.operand(1).data == args.result().data && args.result().numElements() == 1)
      return llvm::Error::success();
    return copy(work, args.operand(1).data, args.result().data);
  };
  return kernel;
}

/// With operand 1, a host scalar, which the kernel converts.
static llvm::Expected<CUDAKernelFn> makeScalarFill(const OpContext &op, DType scalarType) {
  PointwiseTypes types;
  types.dtype = op.results()[0]->asTensor()->dtype;
  PointwiseSource &value = types.sources.emplace_back();
  value.kind = PointwiseSource::Kind::Scalar;
  value.operand = 1;
  value.constant.dtype = scalarType;
  value.as = types.dtype;
  return makePointwise(op, pointwise::copy(), types);
}

/// With one value everywhere: operand 1, a 0-d tensor or a host scalar, or the attribute `scalar`.
static llvm::Expected<CUDAKernelFn> makeFillOp(const OpContext &op) {
  if (op.tensor(1))
    return makeTensorFill(op);
  if (llvm::Error error = checkDTypes(op))
    return error;
  if (const ScalarType *scalar = op.operand(1) ? op.operand(1)->asScalar() : nullptr)
    return makeScalarFill(op, scalarDType(scalar->kind));
  llvm::Expected<ScalarConstant> constant = ScalarConstant::get(op, "scalar");
  if (!constant)
    return constant.takeError();
  return makeConstantResult(op, elementBits(*constant, op.results()[0]->asTensor()->dtype));
}

static llvm::Expected<CUDAKernelFn> makeZero(const OpContext &op) {
  return makeConstantResult(op, 0);
}

void cuda::addCopyKernels(CUDAExecutor &executor) {
  for (const char *op : {"clone", "contiguous", "cast"})
    addKernel(executor, {.op = op, .make = makeLocalCopy<0>});
  addKernel(executor, {.op = "to_device", .make = makeAnyCopy<0>, .movesBetweenDevices = true});
  addKernel(executor, {.op = "copy_", .make = makeAnyCopy<1>, .movesBetweenDevices = true});
  addKernel(executor, {.op = "fill_", .make = makeFillOp});
  addKernel(executor, {.op = "zero_", .make = makeZero});
}
