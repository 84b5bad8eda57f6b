//===- IndexKernels.cpp - Reading and updating by index -------------------===//
//
// Elements are moved as they lie in memory. Sums are formed in f64 and rounded once, those of
// integers and bool modulo 2^64. What an index out of range means is said in IndexedElements.h.
//
// An update first copies x to the result, which in place is x itself. Operands that are read after
// that are copied before: in place they may share memory with x.
//
//===----------------------------------------------------------------------===//

#include "IndexKernels.h"

#include "DTypeSupport.h"
#include "IndexedElements.h"
#include "Rows.h"

using namespace rondo;
using namespace rondo::host;

static IndexedLayout layoutOf(const TensorRef &tensor) {
  return {tensor.shape, tensor.strides};
}

/// A kernel that calls `run`.
template <typename Run>
static llvm::Expected<HostKernelFn> makeKernel(const OpContext &op, Run run) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn(run);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static llvm::Expected<HostKernelFn> makeGather(const OpContext &op) {
  return makeKernel(op, [dim = op.intAttribute("dim")](const HostArgs &args) {
    const TensorRef &x = args.operand(0);
    take(x, elementOffsets(args.operand(1), dim, layoutOf(x)), args.result());
  });
}

static llvm::Expected<HostKernelFn> makeIndexSelect(const OpContext &op) {
  return makeKernel(op, [dim = op.intAttribute("dim")](const HostArgs &args) {
    const TensorRef &x = args.operand(0);
    take(x, sliceOffsets(args.operand(1), dim, layoutOf(x)), args.result());
  });
}

static llvm::Expected<HostKernelFn> makeIndex(const OpContext &op) {
  return makeKernel(op, [](const HostArgs &args) {
    const TensorRef &x = args.operand(0);
    llvm::SmallVector<int64_t, 5> shape;
    take(x, broadcastIndexOffsets(args, 1, layoutOf(x), shape), args.result());
  });
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// Where an update writes, and what: places in a tensor of the given layout, and a view of the
/// operand with one element for each. `shape` is room for the shape of the view.
struct Update {
  Offsets offsets;
  TensorRef source;
  llvm::SmallVector<int64_t, 5> shape = {}, strides = {};
};

/// Fills `update` for an op with these arguments and `dim`.
using FindUpdate = void (*)(const HostArgs &args, int64_t dim, IndexedLayout target,
                            Update &update);

static void findScatter(const HostArgs &args, int64_t dim, IndexedLayout target, Update &update) {
  const TensorRef &index = args.operand(1), &source = args.operand(2);
  update.offsets = elementOffsets(index, dim, target);
  update.source = {source.data, source.dtype, index.shape, source.strides};
}

static void findSlices(const HostArgs &args, int64_t dim, IndexedLayout target, Update &update) {
  update.offsets = sliceOffsets(args.operand(1), dim, target);
  update.source = args.operand(2);
}

static void findIndexed(const HostArgs &args, int64_t, IndexedLayout target, Update &update) {
  const TensorRef &values = args.operand(1);
  update.offsets = broadcastIndexOffsets(args, 2, target, update.shape);
  update.strides = broadcastStrides(values, update.shape);
  update.source = {values.data, values.dtype, update.shape, update.strides};
}

/// x with the elements of an update in their places.
template <FindUpdate Find> static void assign(const HostArgs &args, int64_t dim) {
  const TensorRef &x = args.operand(0), &out = args.result();
  Update update;
  Find(args, dim, layoutOf(out), update);
  std::vector<std::byte> elements = denseBytes(update.source);
  if (out.data != x.data)
    take(x, allOffsets(x), out);
  put(elements, update.offsets, out);
}

/// x with factor times the elements of an update added in their places; computed in T.
template <typename T>
static void addUpdate(const TensorRef &x, const Update &update, T factor, const TensorRef &out) {
  std::vector<T> sums = toDense<T>(x), added = toDense<T>(update.source);
  for (size_t i = 0; i < added.size(); ++i)
    if (update.offsets[i] != nowhere)
      sums[update.offsets[i]] += factor * added[i];
  fromDense<T>(sums, out);
}

template <FindUpdate Find> static void add(const HostArgs &args, int64_t dim, double factor) {
  const TensorRef &x = args.operand(0);
  Update update;
  Find(args, dim, {x.shape, rowMajorStrides(x.shape)}, update);
  if (isFloat(x.dtype))
    addUpdate<double>(x, update, factor, args.result());
  else
    addUpdate<uint64_t>(x, update, static_cast<uint64_t>(toInteger(factor)), args.result());
}

template <FindUpdate Find> static llvm::Expected<HostKernelFn> makeAssign(const OpContext &op) {
  return makeKernel(
      op, [dim = op.intAttribute("dim")](const HostArgs &args) { assign<Find>(args, dim); });
}

template <FindUpdate Find> static llvm::Expected<HostKernelFn> makeAdd(const OpContext &op) {
  return makeKernel(op, [dim = op.intAttribute("dim"), alpha = op.numberAttribute("alpha", 1)](
                            const HostArgs &args) { add<Find>(args, dim, alpha); });
}

static llvm::Expected<HostKernelFn> makeIndexPut(const OpContext &op) {
  return op.boolAttribute("accumulate") ? makeAdd<findIndexed>(op) : makeAssign<findIndexed>(op);
}

//===----------------------------------------------------------------------===//
// Updates of a part that attributes name
//===----------------------------------------------------------------------===//

/// x with operand 1 in the part of x of that shape that starts at index `start` of `dim` and
/// takes every `step`-th; without that dimension, if `selects`.
static void assignPart(const HostArgs &args, unsigned dim, int64_t start, int64_t step,
                       bool selects) {
  const TensorRef &x = args.operand(0), &source = args.operand(1), &out = args.result();
  take(x, allOffsets(x), out);
  llvm::SmallVector<int64_t, 5> strides(out.strides.begin(), out.strides.end());
  int64_t first = start * strides[dim];
  strides[dim] *= step;
  if (selects)
    strides.erase(strides.begin() + dim);
  Offsets offsets = allOffsets({out.data, out.dtype, source.shape, strides});
  for (int64_t &offset : offsets)
    offset += first;
  put(denseBytes(source), offsets, out);
}

/// Attribute `name`, a dimension or an index in one of `size`, counted from the start.
static int64_t wrapped(const OpContext &op, llvm::StringRef name, int64_t size) {
  int64_t value = op.intAttribute(name);
  return value < 0 ? value + size : value;
}

static llvm::Expected<HostKernelFn> makeSelectScatter(const OpContext &op) {
  llvm::SmallVector<int64_t, 5> shape = constantDims(op.tensor(0)->shape);
  unsigned dim = wrapped(op, "dim", shape.size());
  int64_t index = wrapped(op, "index", shape[dim]);
  return makeKernel(op,
                    [dim, index](const HostArgs &args) { assignPart(args, dim, index, 1, true); });
}

static llvm::Expected<HostKernelFn> makeSliceScatter(const OpContext &op) {
  llvm::SmallVector<int64_t, 5> shape = constantDims(op.tensor(0)->shape);
  unsigned dim = wrapped(op, "dim", shape.size());
  int64_t start = std::clamp<int64_t>(wrapped(op, "start", shape[dim]), 0, shape[dim]);
  int64_t step = op.intAttribute("step", 1);
  // A part with at most one index has no use for the step, which may be any positive number.
  if (step > shape[dim])
    step = 1;
  return makeKernel(
      op, [dim, start, step](const HostArgs &args) { assignPart(args, dim, start, step, false); });
}

void host::addIndexKernels(HostExecutor &executor) {
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
  addEmbeddingKernels(executor);
  addSortKernels(executor);
}
