//===- IndexKernels.cpp - Reading and updating by index -------------------===//
//
// Elements are moved as they lie in memory. What an index out of range means is said in
// IndexDevice.h.
//
// An update first copies x to the result, which in place is x itself. In place no other operand may
// share memory with x.
//
//===----------------------------------------------------------------------===//

#include "Indexing.h"

using namespace rondo;
using namespace rondo::cuda;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Of an op whose result is the elements of operand 0 at `dims`.
static llvm::Expected<CUDAKernelFn> makeTake(const OpContext &op, IndexedDims dims) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<IndexedMove> move = IndexedMove::get(std::move(dims), op.tensor(0)->dtype);
  if (!move)
    return move.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{indexing::take()}};
  kernel.enqueue = [move = std::move(*move)](const CUDAWork &work, const TypedArgs &args) {
    return move.take(work, 0, args, args.operand(0).data, args.result().data);
  };
  return kernel;
}

static TensorSizes operandSizes(const OpContext &op, unsigned i) {
  return TensorSizes(*op.tensor(i));
}
static TensorSizes resultSizes(const OpContext &op) {
  return TensorSizes(*op.results()[0]->asTensor());
}

static llvm::Expected<CUDAKernelFn> makeGather(const OpContext &op) {
  return makeTake(op, IndexedDims::ofElements(op, op.intAttribute("dim"), operandSizes(op, 0),
                                              resultSizes(op).strides));
}

static llvm::Expected<CUDAKernelFn> makeIndexSelect(const OpContext &op) {
  return makeTake(
      op, IndexedDims::ofSlices(op, op.intAttribute("dim"), operandSizes(op, 0), resultSizes(op)));
}

static llvm::Expected<CUDAKernelFn> makeIndex(const OpContext &op) {
  return makeTake(op, IndexedDims::ofBroadcast(op, 1, operandSizes(op, 0), resultSizes(op)));
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

namespace {
/// Which elements an op updates, and which of its operands has what is written.
struct UpdateDims {
  IndexedDims dims;
  unsigned source;
};
} // namespace

using FindUpdate = UpdateDims (*)(const OpContext &op);

static UpdateDims findScatter(const OpContext &op) {
  return {IndexedDims::ofElements(op, op.intAttribute("dim"), resultSizes(op),
                                  operandSizes(op, 2).strides),
          2};
}

static UpdateDims findSlices(const OpContext &op) {
  return {IndexedDims::ofSlices(op, op.intAttribute("dim"), resultSizes(op), operandSizes(op, 2)),
          2};
}

static UpdateDims findIndexed(const OpContext &op) {
  return {IndexedDims::ofBroadcast(op, 2, resultSizes(op), operandSizes(op, 1)), 1};
}

/// Copies x, operand 0, to the result, which may be x itself.
static llvm::Expected<IndexedMove> makeCopy(const OpContext &op) {
  TensorSizes out = resultSizes(op);
  return IndexedMove::get(IndexedDims::ofAll(out.shape, out.strides, operandSizes(op, 0).strides),
                          out.dtype);
}

/// By the kernel's first function, `indexing::take`.
static llvm::Error copyOperand(const IndexedMove &copy, const CUDAWork &work,
                               const TypedArgs &args) {
  const TensorRef &x = args.operand(0), &out = args.result();
  return out.data == x.data ? llvm::Error::success() : copy.take(work, 0, args, x.data, out.data);
}

/// In place, and if it is going to run, an error if an operand shares memory with what is written.
static llvm::Error checkApart(const CommandSink &sink, const TypedArgs &args) {
  const TensorRef &out = args.result();
  if (sink.isRehearsal() || out.data != args.operand(0).data)
    return llvm::Error::success();
  auto end = [](const TensorRef &tensor) {
    return tensor.as<std::byte>() + stridedExtentBytes(tensor.dtype, tensor.shape, tensor.strides);
  };
  for (unsigned i = 1; i < args.numOperands(); ++i) {
    if (!args.has(i))
      continue;
    const TensorRef &in = args.operand(i);
    if (in.as<std::byte>() < end(out) && out.as<std::byte>() < end(in))
      return makeDeviceError(DeviceErrorKind::InvalidArgument,
                             "operand #" + std::to_string(i) +
                                 " shares memory with the operand that is written: some elements "
                                 "would be overwritten before they are read; clone it before");
  }
  return llvm::Error::success();
}

/// x with the elements of an update in their places.
template <FindUpdate Find> static llvm::Expected<CUDAKernelFn> makeAssign(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  UpdateDims update = Find(op);
  llvm::Expected<IndexedMove> copy = makeCopy(op),
                              put = IndexedMove::get(update.dims, op.tensor(0)->dtype);
  if (!copy)
    return llvm::joinErrors(copy.takeError(), put.takeError());
  if (!put)
    return put.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{indexing::take()}, {indexing::put()}};
  // One tuple has no rival.
  bool hasRivals = put->numTuples() > 1;
  if (hasRivals) {
    kernel.functions.push_back({indexing::forget()});
    kernel.functions.push_back({indexing::claim()});
    kernel.workspaceBytes = uint64_t(put->numKeys()) * sizeof(uint32_t);
  }
  kernel.enqueue = [copy = *copy, put = *put, hasRivals, source = update.source](
                       const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (llvm::Error error = checkApart(work.sink(), args))
      return error;
    if (llvm::Error error = copyOperand(copy, work, args))
      return error;
    auto *owners = hasRivals ? static_cast<uint32_t *>(args.workspace()) : nullptr;
    return put.put(work, 1, args, args.operand(source).data, args.result().data, owners);
  };
  return kernel;
}

/// x with `alpha` times the elements of an update added in their places.
template <FindUpdate Find> static llvm::Expected<CUDAKernelFn> makeAdd(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  UpdateDims update = Find(op);
  llvm::Expected<IndexedMove> copy = makeCopy(op);
  if (!copy)
    return copy.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{indexing::take()}};
  WorkspaceParts parts;
  llvm::Expected<SliceSum> sum =
      SliceSum::get(update.dims, op.tensor(0)->dtype, {.factor = op.numberAttribute("alpha", 1)},
                    parts, kernel.functions);
  if (!sum)
    return sum.takeError();
  kernel.workspaceBytes = parts.bytes();
  kernel.enqueue = [copy = *copy, sum = *sum, source = update.source](
                       const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (llvm::Error error = checkApart(work.sink(), args))
      return error;
    if (llvm::Error error = copyOperand(copy, work, args))
      return error;
    return sum.enqueue(work, args, args.operand(source).data, args.result().data);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeIndexPut(const OpContext &op) {
  return op.boolAttribute("accumulate") ? makeAdd<findIndexed>(op) : makeAssign<findIndexed>(op);
}

//===----------------------------------------------------------------------===//
// Updates of a part that attributes name
//===----------------------------------------------------------------------===//

/// x with operand 1 in the part of the result that has these strides and begins `first` elements
/// after the result's first.
static llvm::Expected<CUDAKernelFn> makeAssignPart(const OpContext &op,
                                                   llvm::ArrayRef<int64_t> strides, int64_t first) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes source = operandSizes(op, 1);
  llvm::Expected<IndexedMove> copy = makeCopy(op);
  if (!copy)
    return copy.takeError();
  llvm::Expected<IndexedMove> put =
      IndexedMove::get(IndexedDims::ofAll(source.shape, source.strides, strides), source.dtype);
  if (!put)
    return put.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{indexing::take()}, {indexing::put()}};
  kernel.enqueue = [copy = *copy, put = *put, bytes = first * int64_t(dtypeSize(source.dtype))](
                       const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (llvm::Error error = copyOperand(copy, work, args))
      return error;
    return put.put(work, 1, args, args.operand(1).data, args.result().as<std::byte>() + bytes,
                   nullptr);
  };
  return kernel;
}

/// Attribute `name`, a dimension or an index in one of `size`, counted from the start.
static int64_t wrapped(const OpContext &op, llvm::StringRef name, int64_t size) {
  int64_t value = op.intAttribute(name);
  return value < 0 ? value + size : value;
}

static llvm::Expected<CUDAKernelFn> makeSelectScatter(const OpContext &op) {
  TensorSizes out = resultSizes(op);
  unsigned dim = wrapped(op, "dim", out.rank());
  int64_t first = wrapped(op, "index", out.shape[dim]) * out.strides[dim];
  out.strides.erase(out.strides.begin() + dim);
  return makeAssignPart(op, out.strides, first);
}

static llvm::Expected<CUDAKernelFn> makeSliceScatter(const OpContext &op) {
  TensorSizes out = resultSizes(op);
  unsigned dim = wrapped(op, "dim", out.rank());
  int64_t size = out.shape[dim];
  int64_t start = std::clamp<int64_t>(wrapped(op, "start", size), 0, size);
  int64_t step = op.intAttribute("step", 1);
  // A part with at most one index has no use for the step, which may be any positive number.
  if (step > size)
    step = 1;
  int64_t first = start * out.strides[dim];
  out.strides[dim] *= step;
  return makeAssignPart(op, out.strides, first);
}

void cuda::addIndexKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "gather", .make = makeGather});
  addKernel(executor, {.op = "index_select", .make = makeIndexSelect});
  addKernel(executor, {.op = "index", .make = makeIndex});
  for (std::string suffix : {"", "_"}) {
    addKernel(executor, {.op = "scatter" + suffix, .make = makeAssign<findScatter>});
    addKernel(executor, {.op = "scatter_add" + suffix, .make = makeAdd<findScatter>});
    addKernel(executor, {.op = "index_copy" + suffix, .make = makeAssign<findSlices>});
    addKernel(executor, {.op = "index_add" + suffix, .make = makeAdd<findSlices>});
    addKernel(executor, {.op = "index_put" + suffix, .make = makeIndexPut});
  }
  addKernel(executor, {.op = "select_scatter", .make = makeSelectScatter});
  addKernel(executor, {.op = "slice_scatter", .make = makeSliceScatter});
}
