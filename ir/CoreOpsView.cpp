//===- CoreOpsView.cpp - Other names for a tensor's storage ---------------===//
//
// A view launches nothing and looks at no data. Its strides, and where it starts, are exactly those
// that PyTorch gives.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;

/// `shape` with a -1 replaced by the size that gives as many elements as `elements`.
static llvm::Expected<Dims> completeShape(const Inference &in, const Dim &elements) {
  const Attribute &attribute = *in.op.attribute("shape");
  std::optional<Dims> shape = attribute.asDims();
  std::optional<size_t> open;
  Dim known = 1;
  for (size_t i = 0; shape && i < shape->size(); ++i) {
    const Dim &size = (*shape)[i];
    if (size.isConstant(-1) && !open)
      open = i;
    else if (size.isConstant() ? size.value() < 0 : size.isOverflow())
      shape.reset();
    else
      known = known * size;
  }
  if (!shape)
    return expects("attribute 'shape' to hold sizes of at least 0 and at most one -1, got " +
                   attribute.str());
  std::optional<Dim> quotient = open ? Dim::exactQuotient(elements, known) : std::nullopt;
  if (open && quotient)
    (*shape)[*open] = *quotient;
  if (known.isOverflow() || elements.isOverflow() || (open ? !quotient : known != elements))
    return expects("attribute 'shape' of " + elements.str() + " elements, got " + attribute.str());
  return std::move(*shape);
}

static llvm::Error inferReshape(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_LET(shape, completeShape(in, x.numElements()));
  std::optional<Dims> strides = viewStrides(x.shape, x.strides, shape);
  if (!strides)
    return in.expectsOperand(0, "whose strides allow a view of shape " + shapeText(shape));
  return in.view(x, std::move(shape), std::move(*strides));
}

static llvm::Error inferPermute(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_LET(dims, in.dims("dims", x.rank()));
  if (dims.size() != x.rank())
    return expects("attribute \'dims\' of length " + llvm::Twine(x.rank()) + ", got " +
                   in.op.attribute("dims")->str());
  Dims shape, strides;
  for (unsigned dim : dims) {
    shape.push_back(x.shape[dim]);
    strides.push_back(x.strides[dim]);
  }
  return in.view(x, std::move(shape), std::move(strides));
}

static llvm::Error inferExpand(Inference &in) {
  const TensorType &x = in.tensor(0);
  const Attribute &attribute = *in.op.attribute("shape");
  std::optional<Dims> given = attribute.asDims();
  if (!given || given->size() < x.rank())
    return expects("attribute \'shape\' of length " + llvm::Twine(x.rank()) + " or more, got " +
                   attribute.str());
  Dims &shape = *given, strides(shape.size(), Dim(0));
  size_t added = shape.size() - x.rank();
  for (size_t i = shape.size(); i-- > 0;) {
    bool isNew = i < added;
    Dim own = isNew ? Dim(1) : x.shape[i - added];
    if (shape[i].isConstant(-1) && !isNew)
      shape[i] = own;
    if (shape[i].isConstant() ? shape[i].value() < 0 : shape[i].isOverflow())
      return expects("attribute 'shape' to hold sizes of at least 0, or -1 to keep one, got " +
                     attribute.str());
    if (shape[i] != own) {
      if (!own.isConstant(1))
        return in.expectsOperand(0, "to expand to shape " + attribute.str());
    } else if (!isNew) {
      strides[i] = x.strides[i - added];
    } else {
      // As PyTorch's graphs have it: a step over all that x holds.
      strides[i] = x.rank() == 0 ? Dim(1) : x.shape[0] * x.strides[0];
    }
  }
  return in.view(x, std::move(shape), std::move(strides));
}

static llvm::Error inferSlice(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_LET(range, sliceRange(in, 0));
  Dims shape = x.shape, strides = x.strides;
  shape[range.dim] = range.length;
  strides[range.dim] = strides[range.dim] * Dim(range.step);
  return in.view(x, std::move(shape), std::move(strides));
}

static llvm::Error inferSelect(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_LET(selected, selectedIndex(in, 0));
  Dims shape = x.shape, strides = x.strides;
  shape.erase(shape.begin() + selected.dim);
  strides.erase(strides.begin() + selected.dim);
  return in.view(x, std::move(shape), std::move(strides));
}

static llvm::Error inferSqueeze(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_LET(dims, in.dims("dims", x.rank()));
  llvm::SmallBitVector squeezed(std::max(x.rank(), 1U));
  for (unsigned dim : dims)
    squeezed.set(dim);
  Dims shape, strides;
  for (unsigned i = 0; i < x.rank(); ++i) {
    if (squeezed[i] && x.shape[i].isConstant(1))
      continue;
    shape.push_back(x.shape[i]);
    strides.push_back(x.strides[i]);
  }
  return in.view(x, std::move(shape), std::move(strides));
}

static llvm::Error inferUnsqueeze(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_LET(dim, in.dim("dim", x.rank() + 1));
  Dims shape = x.shape, strides = x.strides;
  Dim stride = dim < x.rank() ? x.shape[dim] * x.strides[dim] : Dim(1);
  shape.insert(shape.begin() + dim, Dim(1));
  strides.insert(strides.begin() + dim, stride);
  return in.view(x, std::move(shape), std::move(strides));
}

static llvm::Error inferDetach(Inference &in) {
  return in.view(in.tensor(0), in.tensor(0).shape, in.tensor(0).strides);
}

static llvm::Error inferAsStrided(Inference &in) {
  RONDO_LET(shape, in.sizes("shape"));
  RONDO_LET(strides, in.sizes("strides"));
  RONDO_TRY(in.size("offset").takeError());
  if (shape.size() != strides.size())
    return expects("attributes 'shape' and 'strides' of equal length, got " + shapeText(shape) +
                   " and " + shapeText(strides));
  return in.view(in.tensor(0), std::move(shape), std::move(strides));
}

namespace {
struct Diagonal {
  unsigned dim1, dim2;
  Dim length;
  int64_t below, above; ///< where it starts in dim1 and dim2; an empty one starts at the origin
};
} // namespace

static llvm::Expected<Diagonal> diagonalOf(const Inference &in) {
  RONDO_TRY(in.rankAtLeast(0, 2));
  const TensorType &x = in.tensor(0);
  RONDO_LET(dim1, in.dim("dim1", x.rank()));
  RONDO_LET(dim2, in.dim("dim2", x.rank()));
  RONDO_LET(offset, in.constant("offset"));
  if (dim1 == dim2)
    return expects("attributes 'dim1' and 'dim2' to differ, got " + llvm::Twine(dim1) + " twice");
  const Dim &rows = x.shape[dim1], &columns = x.shape[dim2];
  if (rows.isConstant() && columns.isConstant()) {
    int64_t shift = std::clamp(offset, -rows.value(), columns.value()); // beyond, it is empty
    int64_t above = std::max<int64_t>(shift, 0), below = std::max<int64_t>(-shift, 0);
    int64_t length = std::min(rows.value() - below, columns.value() - above);
    return length == 0 ? Diagonal{dim1, dim2, 0, 0, 0} : Diagonal{dim1, dim2, length, below, above};
  }
  if (offset != 0 || rows != columns)
    return expects("offset 0 and equal sizes for a diagonal of symbolic sizes, got offset " +
                   llvm::Twine(offset) + " and sizes " + rows.str() + " and " + columns.str());
  return Diagonal{dim1, dim2, rows, 0, 0};
}

static llvm::Error inferDiagonal(Inference &in) {
  RONDO_LET(diagonal, diagonalOf(in));
  const TensorType &x = in.tensor(0);
  Dims shape, strides;
  for (unsigned i = 0; i < x.rank(); ++i) {
    if (i == diagonal.dim1 || i == diagonal.dim2)
      continue;
    shape.push_back(x.shape[i]);
    strides.push_back(x.strides[i]);
  }
  shape.push_back(diagonal.length);
  strides.push_back(x.strides[diagonal.dim1] + x.strides[diagonal.dim2]);
  return in.view(x, std::move(shape), std::move(strides));
}

static llvm::Error inferSplit(Inference &in) {
  RONDO_LET(dim, in.dimOf(0, "dim"));
  RONDO_LET(sizes, in.sizes("sizes"));
  const TensorType &x = in.tensor(0);
  Dim sum = 0;
  for (const Dim &size : sizes)
    sum = sum + size;
  if (sizes.size() > maxResults)
    return expects("attribute 'sizes' of at most " + llvm::Twine(maxResults) + " parts, got " +
                   llvm::Twine(sizes.size()));
  if (sizes.empty() || sum != x.shape[dim])
    return expects("attribute 'sizes' to add up to " + x.shape[dim].str() + ", got " +
                   shapeText(sizes));
  for (const Dim &size : sizes) {
    Dims shape = x.shape;
    shape[dim] = size;
    RONDO_TRY(in.view(x, std::move(shape), x.strides));
  }
  return llvm::Error::success();
}

static llvm::Error inferUnbind(Inference &in) {
  RONDO_LET(dim, in.dimOf(0, "dim"));
  const TensorType &x = in.tensor(0);
  std::optional<int64_t> count = x.shape[dim].asConstant();
  if (!count || *count < 0 || *count > maxResults)
    return expects("a constant size of at most " + llvm::Twine(maxResults) + ", got " +
                   x.shape[dim].str());
  Dims shape = x.shape, strides = x.strides;
  shape.erase(shape.begin() + dim);
  strides.erase(strides.begin() + dim);
  for (int64_t i = 0; i < *count; ++i)
    RONDO_TRY(in.view(x, shape, strides));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Where the views start
//===----------------------------------------------------------------------===//

static llvm::Expected<Dim> sliceOffset(const Inference &in, unsigned) {
  RONDO_LET(range, sliceRange(in, 0));
  return range.start * in.tensor(0).strides[range.dim];
}

static llvm::Expected<Dim> selectOffset(const Inference &in, unsigned) {
  RONDO_LET(selected, selectedIndex(in, 0));
  return selected.index * in.tensor(0).strides[selected.dim];
}

static llvm::Expected<Dim> asStridedOffset(const Inference &in, unsigned) {
  return in.size("offset");
}

static llvm::Expected<Dim> diagonalOffset(const Inference &in, unsigned) {
  RONDO_LET(diagonal, diagonalOf(in));
  const Dims &strides = in.tensor(0).strides;
  return Dim(diagonal.below) * strides[diagonal.dim1] +
         Dim(diagonal.above) * strides[diagonal.dim2];
}

static llvm::Expected<Dim> splitOffset(const Inference &in, unsigned result) {
  RONDO_LET(dim, in.dimOf(0, "dim"));
  RONDO_LET(sizes, in.sizes("sizes"));
  Dim before = 0;
  for (const Dim &size : llvm::ArrayRef<Dim>(sizes).take_front(result))
    before = before + size;
  return before * in.tensor(0).strides[dim];
}

static llvm::Expected<Dim> unbindOffset(const Inference &in, unsigned result) {
  RONDO_LET(dim, in.dimOf(0, "dim"));
  return Dim(result) * in.tensor(0).strides[dim];
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

/// A view of `x` by result 0.
static OpDef viewOp(llvm::StringRef name, llvm::StringRef summary) {
  OpDef def(name, summary);
  def.in("x").viewOfFirst();
  return def;
}

void rondo::addViewOps(OpTable &table) {
  table.add(viewOp("reshape", "the elements in order in another shape; one size may be -1")
                .attr("shape", Kind::IntList)
                .infer(inferReshape));
  table.add(viewOp("permute", "dimensions in another order")
                .attr("dims", Kind::IntList)
                .infer(inferPermute));
  table.add(viewOp("expand", "dimensions of size 1, and new ones in front, repeated; -1 keeps one")
                .attr("shape", Kind::IntList)
                .infer(inferExpand));
  table.add(viewOp("slice", "every step-th index from start to before end")
                .sliceAttributes()
                .infer(inferSlice)
                .viewOffset(sliceOffset));
  table.add(viewOp("select", "one index of a dimension, which goes")
                .attr("dim", Kind::Int)
                .attr("index", Kind::Int)
                .infer(inferSelect)
                .viewOffset(selectOffset));
  table.add(viewOp("squeeze", "without those of dims whose size is 1")
                .attr("dims", Kind::IntList)
                .infer(inferSqueeze));
  table.add(viewOp("unsqueeze", "with a new dimension of size 1")
                .attr("dim", Kind::Int)
                .infer(inferUnsqueeze));
  table.add(viewOp("detach", "the same tensor").infer(inferDetach));
  table.add(viewOp("as_strided", "any strides from an offset into the storage root, in elements")
                .attr("shape", Kind::IntList)
                .attr("strides", Kind::IntList)
                .attr("offset", Kind::Int, 0)
                .countsFromStorageStart()
                .infer(inferAsStrided)
                .viewOffset(asStridedOffset));
  table.add(viewOp("diagonal", "a diagonal, as the last dimension")
                .attr("offset", Kind::Int, 0)
                .attr("dim1", Kind::Int, 0)
                .attr("dim2", Kind::Int, 1)
                .infer(inferDiagonal)
                .viewOffset(diagonalOffset));
  table.add(OpDef("split", "consecutive parts of the given sizes")
                .in("x")
                .attr("sizes", Kind::IntList)
                .attr("dim", Kind::Int, 0)
                .variadicOut("")
                .allViewsOfFirst()
                .infer(inferSplit)
                .viewOffset(splitOffset));
  table.add(OpDef("unbind", "every index of a dimension, which goes")
                .in("x")
                .attr("dim", Kind::Int, 0)
                .variadicOut("")
                .allViewsOfFirst()
                .infer(inferUnbind)
                .viewOffset(unbindOffset));
}
