//===- Indexing.cpp - Ops that read or update by index --------------------===//

#include "Indexing.h"

#include <cstring>

using namespace rondo;
using namespace rondo::cuda;

using Sizes = IndexedDims::Sizes;

//===----------------------------------------------------------------------===//
// What belongs together
//===----------------------------------------------------------------------===//

static IndexOperand indexOperand(DType dtype, int64_t size, int64_t stride, int64_t keyStride,
                                 bool wraps) {
  IndexOperand operand;
  operand.isI64 = dtype == DType::I64;
  operand.wraps = wraps;
  operand.size = size;
  operand.stride = stride;
  operand.keyStride = keyStride;
  return operand;
}

IndexedDims IndexedDims::ofElements(const OpContext &op, int64_t dim, const TensorSizes &indexed,
                                    llvm::ArrayRef<int64_t> moved) {
  TensorSizes index(*op.tensor(1));
  IndexedDims dims;
  dims.numKeys = indexed.count();
  dims.tuples = {index.shape, Sizes(moved.begin(), moved.end()), indexed.strides};
  dims.keys = rowMajorStrides(indexed.shape);
  int64_t size = 1, stride = 0, keyStride = 0; // of a 0-d tensor
  if (indexed.rank() != 0) {
    unsigned d = dim < 0 ? dim + indexed.rank() : dim;
    size = indexed.shape[d];
    stride = std::exchange(dims.tuples.indexed[d], 0);
    keyStride = std::exchange(dims.keys[d], 0);
  }
  dims.indices.push_back(
      {1, index.strides, indexOperand(index.dtype, size, stride, keyStride, false)});
  return dims;
}

IndexedDims IndexedDims::ofSlices(const OpContext &op, int64_t dim, const TensorSizes &indexed,
                                  const TensorSizes &moved) {
  TensorSizes index(*op.tensor(1));
  IndexedDims dims;
  unsigned at = dim < 0 ? dim + indexed.rank() : dim;
  for (unsigned d = 0; d < indexed.rank(); ++d)
    if (d != at)
      dims.slices.add(indexed.shape[d], moved.strides[d], indexed.strides[d]);
  if (index.rank() == 1)
    dims.tuples.add(index.shape[0], moved.strides[at], 0);
  dims.keys.assign(index.rank(), 0);
  dims.numKeys = indexed.shape[at];
  dims.indices.push_back(
      {1, index.strides,
       indexOperand(index.dtype, indexed.shape[at], indexed.strides[at], 1, false)});
  return dims;
}

IndexedDims IndexedDims::ofRows(const OpContext &op, const TensorSizes &indexed,
                                const TensorSizes &moved) {
  TensorSizes index(*op.tensor(1));
  IndexedDims dims;
  for (unsigned d = 0; d < index.rank(); ++d)
    dims.tuples.add(index.shape[d], moved.strides[d], 0);
  dims.slices.add(indexed.shape[1], moved.strides.back(), indexed.strides[1]);
  dims.keys.assign(index.rank(), 0);
  dims.numKeys = indexed.shape[0];
  dims.indices.push_back(
      {1, index.strides,
       indexOperand(index.dtype, indexed.shape[0], indexed.strides[0], 1, false)});
  return dims;
}

/// Makes `shape` the shape that it and `other`, which broadcast, have together.
static void broadcast(Sizes &shape, llvm::ArrayRef<int64_t> other) {
  if (other.size() > shape.size())
    shape.insert(shape.begin(), other.size() - shape.size(), 1);
  for (size_t d = 0; d < other.size(); ++d)
    if (other[d] != 1)
      shape[shape.size() - other.size() + d] = other[d];
}

IndexedDims IndexedDims::ofBroadcast(const OpContext &op, unsigned first,
                                     const TensorSizes &indexed, const TensorSizes &moved) {
  IndexedDims dims;
  llvm::SmallVector<unsigned, 4> indexedDims;
  Sizes shape; // of what is moved
  unsigned position = 0;
  for (unsigned d = 0; d < indexed.rank(); ++d) {
    if (!op.operand(first + d)) {
      shape.push_back(indexed.shape[d]);
      continue;
    }
    if (indexedDims.empty())
      position = shape.size();
    indexedDims.push_back(d);
    broadcast(dims.tuples.shape, TensorSizes(*op.tensor(first + d)).shape);
  }
  // The indices stand where the dimensions are that they name, in front if those are no neighbours.
  bool neighbours = indexedDims.back() - indexedDims.front() + 1 == indexedDims.size();
  unsigned at = neighbours ? position : 0, rank = dims.tuples.shape.size();
  shape.insert(shape.begin() + at, dims.tuples.shape.begin(), dims.tuples.shape.end());
  Sizes movedStrides = moved.broadcastTo(shape);
  dims.tuples.moved.assign(movedStrides.begin() + at, movedStrides.begin() + at + rank);
  movedStrides.erase(movedStrides.begin() + at, movedStrides.begin() + at + rank);
  dims.tuples.indexed.assign(rank, 0);
  dims.keys.assign(rank, 0);
  for (unsigned d = 0; d < indexed.rank(); ++d)
    if (!llvm::is_contained(indexedDims, d))
      dims.slices.add(indexed.shape[d], movedStrides[dims.slices.shape.size()], indexed.strides[d]);
  for (unsigned d : llvm::reverse(indexedDims)) {
    TensorSizes index(*op.tensor(first + d));
    dims.indices.push_back(
        {first + d, index.broadcastTo(dims.tuples.shape),
         indexOperand(index.dtype, indexed.shape[d], indexed.strides[d], dims.numKeys, true)});
    dims.numKeys *= indexed.shape[d];
  }
  return dims;
}

IndexedDims IndexedDims::ofAll(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> moved,
                               llvm::ArrayRef<int64_t> indexed) {
  IndexedDims dims;
  for (size_t d = 0; d < shape.size(); ++d)
    dims.slices.add(shape[d], moved[d], indexed[d]);
  return dims;
}

/// Numbers pairs, of `first` and `second` numbers, row by row or column by column.
static Layout<2> pairs(int64_t first, int64_t second, bool byColumn) {
  return llvm::cantFail(
      makeLayout<2>({first, second}, {llvm::ArrayRef<int64_t>{1, 0}, llvm::ArrayRef<int64_t>{0, 1}},
                    byColumn ? llvm::ArrayRef<unsigned>{1, 0} : llvm::ArrayRef<unsigned>{0, 1}));
}

/// From an element to the next in the moved tensor.
template <int N> static int64_t movedStep(const Layout<N> &layout) {
  return layout.shape[layout.rank - 1] == 1 ? INT64_MAX : layout.strides[0][layout.rank - 1];
}

/// With the faster ones in the moved tensor following each other.
static void numberElements(Indexing &indexing) {
  indexing.elements = pairs(indexing.tuples.count, indexing.slices.count,
                            movedStep(indexing.tuples) < movedStep(indexing.slices));
}

llvm::Expected<Indexing> IndexedDims::layout() const {
  if (indices.size() > maxIndices)
    return makeError("indexes " + llvm::Twine(indices.size()) + " dimensions; the CUDA kernel " +
                     "takes at most " + llvm::Twine(maxIndices));
  Indexing indexing;
  llvm::Expected<Layout<3>> tupleLayout =
      makeLayout<3>(tuples.shape, {tuples.moved, tuples.indexed, keys});
  if (!tupleLayout)
    return tupleLayout.takeError();
  if (tupleLayout->count > int64_t(UINT32_MAX))
    return makeError("has " + llvm::Twine(tupleLayout->count) + " indices; the CUDA kernel takes " +
                     "at most " + llvm::Twine(UINT32_MAX));
  indexing.tuples = *tupleLayout;
  Sizes none(tuples.shape.size(), 0);
  std::array<llvm::ArrayRef<int64_t>, maxIndices> positions;
  positions.fill(none);
  for (size_t k = 0; k < indices.size(); ++k) {
    positions[k] = indices[k].strides;
    indexing.indices[k] = indices[k].params;
  }
  indexing.numIndices = indices.size();
  llvm::Expected<Layout<maxIndices>> positionLayout =
      makeLayout<maxIndices>(tuples.shape, positions);
  if (!positionLayout)
    return positionLayout.takeError();
  indexing.positions = *positionLayout;
  llvm::Expected<Layout<2>> sliceLayout =
      makeLayout<2>(slices.shape, {slices.moved, slices.indexed}, memoryOrder(slices.moved));
  if (!sliceLayout)
    return sliceLayout.takeError();
  indexing.slices = *sliceLayout;
  numberElements(indexing);
  return indexing;
}

void IndexedDims::bind(Indexing &indexing, const TypedArgs &args) const {
  for (size_t k = 0; k < indices.size(); ++k)
    indexing.indices[k].data = args.operand(indices[k].operand).data;
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

/// Calls `visit` with every stride that must be a multiple of a unit's size.
template <typename Visit> static void forEachOuterStride(Indexing &indexing, Visit visit) {
  for (int k = 0; k < 2; ++k) {
    for (int d = 0; d < indexing.tuples.rank; ++d)
      visit(indexing.tuples.strides[k][d]);
    for (int d = 0; d + 1 < indexing.slices.rank; ++d)
      visit(indexing.slices.strides[k][d]);
  }
  for (int k = 0; k < indexing.numIndices; ++k)
    visit(indexing.indices[k].stride);
}

/// Makes units of `n` elements the elements, if slices consist of such units in both tensors.
static bool makeWide(Indexing &indexing, int64_t n) {
  Layout<2> &slices = indexing.slices;
  int last = slices.rank - 1;
  bool fits =
      slices.shape[last] % n == 0 && slices.strides[0][last] == 1 && slices.strides[1][last] == 1;
  forEachOuterStride(indexing, [&](int64_t &stride) { fits &= stride % n == 0; });
  if (!fits)
    return false;
  forEachOuterStride(indexing, [&](int64_t &stride) { stride /= n; });
  slices.shape[last] /= n;
  slices.count /= n;
  if (slices.isSmall && slices.shape[last] > 0)
    slices.dividers[last] = Divider(uint32_t(slices.shape[last]));
  numberElements(indexing);
  return true;
}

/// Sets the bytes of a unit that is missing: of nan, or of 0 in a dtype that has no nan.
static void setMissing(IndexedMoveParams &params, DType dtype) {
  dispatch(elementType(dtype), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (isFloatElement<T>) {
      T nan = convert<T>(std::numeric_limits<float>::quiet_NaN());
      for (size_t i = 0; i < sizeof(params.missing); i += sizeof(T))
        std::memcpy(params.missing + i, &nan, sizeof(T));
    }
  });
}

llvm::Expected<IndexedMove> IndexedMove::get(IndexedDims dims, DType dtype) {
  llvm::Expected<Indexing> indexing = dims.layout();
  if (!indexing)
    return indexing.takeError();
  IndexedMove move;
  move.narrow_.indexing = *indexing;
  move.narrow_.unitBytes = dtypeSize(dtype);
  setMissing(move.narrow_, dtype);
  move.wide_ = move.narrow_;
  for (uint32_t bytes = 16; bytes > move.narrow_.unitBytes; bytes /= 2)
    if (makeWide(move.wide_.indexing, bytes / move.narrow_.unitBytes)) {
      move.wide_.unitBytes = bytes;
      break;
    }
  move.dims_ = std::move(dims);
  return move;
}

IndexedMoveParams IndexedMove::bind(const TypedArgs &args, void *moved, void *indexed) const {
  auto addresses = reinterpret_cast<uintptr_t>(moved) | reinterpret_cast<uintptr_t>(indexed);
  IndexedMoveParams run = addresses % wide_.unitBytes == 0 ? wide_ : narrow_;
  run.moved = moved;
  run.indexed = indexed;
  dims_.bind(run.indexing, args);
  return run;
}

llvm::Error IndexedMove::take(const CUDAWork &work, unsigned i, const TypedArgs &args,
                              const void *indexed, void *moved) const {
  if (numElements() == 0)
    return llvm::Error::success();
  IndexedMoveParams run = bind(args, moved, const_cast<void *>(indexed));
  return work.launch(i, indexGrid(run.indexing.elements.count), run);
}

llvm::Error IndexedMove::zero(const CUDAWork &work, unsigned i, const TypedArgs &args,
                              void *moved) const {
  if (numElements() == 0)
    return llvm::Error::success();
  IndexedMoveParams run = bind(args, moved, nullptr);
  std::memset(run.missing, 0, sizeof run.missing);
  return work.launch(i, indexGrid(run.indexing.elements.count), run);
}

llvm::Error IndexedMove::put(const CUDAWork &work, unsigned i, const TypedArgs &args,
                             const void *moved, void *indexed, uint32_t *owners) const {
  if (numElements() == 0)
    return llvm::Error::success();
  IndexedMoveParams run = bind(args, const_cast<void *>(moved), indexed);
  run.owners = owners;
  if (owners)
    for (unsigned step : {1, 2})
      if (llvm::Error error = work.launch(i + step, indexGrid(numTuples()), run))
        return error;
  return work.launch(i, indexGrid(run.indexing.elements.count), run);
}
