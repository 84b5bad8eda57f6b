//===- HostEffectKernels.cpp - item and print -----------------------------===//
//
// Both copy the tensor to host memory and wait. print writes one line to llvm::errs(), which has no
// buffer that concurrent runs could share.
//
//===----------------------------------------------------------------------===//

#include "KernelTypes.h"

#include "rondo/executors/PrintedLine.h"

#include "llvm/Support/raw_ostream.h"

using namespace rondo;
using namespace rondo::cuda;

/// Element `i` of those at `data`, in host memory: as f64, boolean or i64, by the dtype.
static Slot readElement(DType dtype, const void *data, int64_t i) {
  return dispatch(elementType(dtype), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T value = static_cast<const T *>(data)[i];
    Slot slot;
    if constexpr (std::is_same_v<T, bool>)
      slot.boolean = value;
    else if constexpr (isFloatElement<T>)
      slot.f64 = convert<double>(value);
    else
      slot.i64 = value;
    return slot;
  });
}

/// All bytes from the first to the last element, once what was submitted before is done.
static llvm::Expected<std::vector<std::byte>> readBytes(CommandSink &sink, const TensorRef &x) {
  std::vector<std::byte> bytes(stridedExtentBytes(x.dtype, x.shape, x.strides));
  if (!bytes.empty())
    if (llvm::Error error = sink.copy(bytes.data(), x.data, bytes.size()))
      return error;
  if (llvm::Error error = sink.synchronize())
    return error;
  return bytes;
}

static llvm::Expected<CUDAKernelFn> makeItem(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  CUDAKernelFn kernel;
  kernel.enqueue = [](const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    const TensorRef &x = args.operand(0);
    llvm::Expected<std::vector<std::byte>> bytes = readBytes(work.sink(), x);
    if (!bytes)
      return bytes.takeError();
    args.scalarResult() = readElement(x.dtype, bytes->data(), 0);
    return llvm::Error::success();
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makePrint(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  std::string message = op.stringAttribute("message").str();
  CUDAKernelFn kernel;
  if (const ScalarType *scalar = op.operand(0)->asScalar()) {
    kernel.enqueue = [message, kind = scalar->kind](const CUDAWork &, const TypedArgs &args) {
      llvm::errs() << printedLine(message, kind, args.scalar(0));
      return llvm::Error::success();
    };
    return kernel;
  }
  kernel.enqueue = [message](const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    const TensorRef &x = args.operand(0);
    llvm::Expected<std::vector<std::byte>> bytes = readBytes(work.sink(), x);
    if (!bytes)
      return bytes.takeError();
    llvm::errs() << printedLine(
        message, x, [&](int64_t offset) { return readElement(x.dtype, bytes->data(), offset); });
    return llvm::Error::success();
  };
  return kernel;
}

void cuda::addHostEffectKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "item", .make = makeItem, .synchronises = true});
  addKernel(executor, {.op = "print", .make = makePrint, .synchronises = true});
}
