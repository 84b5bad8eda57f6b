//===- CoreOpsIndex.cpp - Reading and updating by index -------------------===//
//
// Index tensors are i64 or i32. An update gives a new tensor; its in-place form has the same rules.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;
using C = DTypeClass;

/// Index operand 1 has the rank of operand 0 and, but for `dim`, is nowhere larger.
static llvm::Error checkElementIndex(const Inference &in, unsigned dim) {
  RONDO_TRY(in.dtypeIn(1, C::Index));
  const TensorType &x = in.tensor(0), &index = in.tensor(1);
  RONDO_TRY(in.rankIs(1, x.rank()));
  for (unsigned d = 0; d < x.rank(); ++d)
    if (d != dim && !isAtMost(index.shape[d], x.shape[d]))
      return in.expectsOperand(1, "of sizes at most " + shapeText(x.shape) + " but for dimension " +
                                      llvm::Twine(dim));
  return llvm::Error::success();
}

static llvm::Error inferGather(Inference &in) {
  RONDO_LET(dim, in.dim("dim", in.tensor(0).rank()));
  RONDO_TRY(checkElementIndex(in, dim));
  return in.fresh(in.tensor(0).dtype, in.tensor(1).shape);
}

static llvm::Error inferScatter(Inference &in) {
  RONDO_LET(dim, in.dim("dim", in.tensor(0).rank()));
  RONDO_TRY(checkElementIndex(in, dim));
  RONDO_TRY(in.dtypeIs(2, in.tensor(0).dtype));
  RONDO_TRY(in.rankIs(2, in.tensor(0).rank()));
  for (unsigned d = 0; d < in.tensor(1).rank(); ++d)
    if (!isAtMost(in.tensor(1).shape[d], in.tensor(2).shape[d]))
      return in.expectsOperand(2,
                               "at least as large as the index, " + shapeText(in.tensor(1).shape));
  return inferSameType(in);
}

/// The number of elements of index operand 1, a vector or a single index.
static llvm::Expected<Dim> indexCount(const Inference &in) {
  RONDO_TRY(in.dtypeIn(1, C::Index));
  if (in.tensor(1).rank() > 1)
    return in.expectsOperand(1, "of rank 0 or 1");
  return in.tensor(1).numElements();
}

static llvm::Error inferIndexSelect(Inference &in) {
  RONDO_LET(dim, in.dimOf(0, "dim"));
  RONDO_LET(count, indexCount(in));
  Dims shape = in.tensor(0).shape;
  shape[dim] = count;
  return in.fresh(in.tensor(0).dtype, std::move(shape));
}

/// Operand 2 replaces or is added to the indices of `dim` that operand 1 names.
static llvm::Error inferIndexUpdate(Inference &in) {
  RONDO_LET(dim, in.dimOf(0, "dim"));
  RONDO_LET(count, indexCount(in));
  Dims shape = in.tensor(0).shape;
  shape[dim] = count;
  RONDO_TRY(in.dtypeIs(2, in.tensor(0).dtype));
  RONDO_TRY(in.shapeIs(2, shape));
  return inferSameType(in);
}

/// The shape of operand 0 under the index tensors from operand `first`, one for each dimension;
/// absent ones take the whole dimension. They broadcast to one shape, which stands where they do if
/// they are neighbours, else in front.
static llvm::Expected<Dims> indexedShape(const Inference &in, unsigned first) {
  llvm::ArrayRef<Dim> x = in.tensor(0).shape;
  unsigned count = in.op.numOperands() - std::min(first, in.op.numOperands());
  if (count > x.size())
    return expects("no more indices than dimensions, " + llvm::Twine(x.size()) + ", got " +
                   llvm::Twine(count));
  Dims indices, rest;
  std::optional<unsigned> position, last;
  bool neighbours = true;
  for (unsigned d = 0; d < x.size(); ++d) {
    unsigned operand = first + d;
    if (d >= count || !in.has(operand)) {
      rest.push_back(x[d]);
      continue;
    }
    const TensorType *index = in.optionalTensor(operand);
    if (!index || !isIn(C::Index, index->dtype))
      return in.expectsOperand(operand, "to be a tensor of " + dtypeClassName(C::Index));
    if (!broadcast(indices, index->shape))
      return expects("indices whose shapes broadcast, got " + shapeText(indices) + " and " +
                     shapeText(index->shape));
    if (!position)
      position = rest.size();
    neighbours &= !last || *last + 1 == d;
    last = d;
  }
  if (!position)
    return expects("at least one index, got none");
  rest.insert(rest.begin() + (neighbours ? *position : 0), indices.begin(), indices.end());
  return rest;
}

static llvm::Error inferIndex(Inference &in) {
  RONDO_LET(shape, indexedShape(in, 1));
  return in.fresh(in.tensor(0).dtype, std::move(shape));
}

static llvm::Error inferIndexPut(Inference &in) {
  RONDO_LET(shape, indexedShape(in, 2));
  RONDO_TRY(in.dtypeIs(1, in.tensor(0).dtype));
  RONDO_TRY(in.broadcastsTo(1, shape));
  return inferSameType(in);
}

static llvm::Error inferSelectScatter(Inference &in) {
  RONDO_LET(selected, selectedIndex(in, 0));
  Dims part = in.tensor(0).shape;
  part.erase(part.begin() + selected.dim);
  RONDO_TRY(in.dtypeIs(1, in.tensor(0).dtype));
  RONDO_TRY(in.shapeIs(1, part));
  return inferSameType(in);
}

static llvm::Error inferSliceScatter(Inference &in) {
  RONDO_LET(range, sliceRange(in, 0));
  Dims part = in.tensor(0).shape;
  part[range.dim] = range.length;
  RONDO_TRY(in.dtypeIs(1, in.tensor(0).dtype));
  RONDO_TRY(in.shapeIs(1, part));
  return inferSameType(in);
}

static llvm::Error inferOneHot(Inference &in) {
  RONDO_TRY(in.dtypeIn(0, C::Index));
  RONDO_LET(classes, in.size("classes"));
  Dims shape = in.tensor(0).shape;
  shape.push_back(classes);
  return in.fresh(DType::I64, std::move(shape));
}

static llvm::Error inferEmbedding(Inference &in) {
  RONDO_TRY(in.rankIs(0, 2));
  RONDO_TRY(in.dtypeIn(1, C::Index));
  Dims shape = in.tensor(1).shape;
  shape.push_back(in.tensor(0).shape[1]);
  return in.fresh(in.tensor(0).dtype, std::move(shape));
}

static llvm::Error inferEmbeddingBackward(Inference &in) {
  RONDO_TRY(in.dtypeIn(0, C::Float));
  RONDO_TRY(in.dtypeIn(1, C::Index));
  RONDO_TRY(in.rankAtLeast(0, 1));
  const TensorType &grad = in.tensor(0);
  Dims expected = in.tensor(1).shape;
  expected.push_back(grad.shape.back());
  RONDO_TRY(in.shapeIs(0, expected));
  RONDO_LET(rows, in.size("num_weights"));
  return in.fresh(grad.dtype, {rows, grad.shape.back()});
}

static OpDef alongDim(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef operands) {
  OpDef def(name, summary);
  def.in(operands).attr("dim", Kind::Int);
  return def;
}

static void addElementIndexOps(OpTable &table) {
  table.add(alongDim("gather", "out[.., i, ..] = x[.., index[.., i, ..], ..]", "x, index")
                .infer(inferGather));
  table.add(
      alongDim("scatter", "x with x[.., index[.., i, ..], ..] = src[.., i, ..]", "x, index, src")
          .infer(inferScatter));
  table.add(alongDim("scatter_add", "x with x[.., index[.., i, ..], ..] += src[.., i, ..]",
                     "x, index, src")
                .infer(inferScatter));
  table.add(OpDef("index", "elements at the broadcast indices, one index tensor per dimension")
                .in("x, indices*:any")
                .infer(inferIndex));
  table.add(OpDef("index_put", "x with values at the broadcast indices, or added to them")
                .in("x, values, indices*:any")
                .attr("accumulate", Kind::Bool, false)
                .infer(inferIndexPut));
}

static void addSliceIndexOps(OpTable &table) {
  table.add(alongDim("index_select", "the indices of dim that index names", "x, index")
                .infer(inferIndexSelect));
  table.add(
      alongDim("index_copy", "x with src at the indices of dim that index names", "x, index, src")
          .infer(inferIndexUpdate));
  table.add(alongDim("index_add", "x with alpha * src added at the indices of dim that index names",
                     "x, index, src")
                .attr("alpha", Kind::Number, 1)
                .infer(inferIndexUpdate));
  table.add(alongDim("select_scatter", "x with src at one index of dim", "x, src")
                .attr("index", Kind::Int)
                .infer(inferSelectScatter));
  table.add(OpDef("slice_scatter", "x with src at every step-th index from start to before end")
                .in("x, src")
                .sliceAttributes()
                .infer(inferSliceScatter));
}

static void addEmbeddingOps(OpTable &table) {
  table.add(OpDef("one_hot", "1 at the class that x names, else 0; a new last dimension of classes")
                .in("x")
                .attr("classes", Kind::Int)
                .infer(inferOneHot));
  table.add(OpDef("embedding", "the rows of w that indices name")
                .in("w, indices")
                .attr("padding_idx", Kind::Int, -1)
                .infer(inferEmbedding));
  table.add(OpDef("embedding_backward", "gradient of embedding for its num_weights rows")
                .in("grad, indices")
                .attr("num_weights", Kind::Int)
                .attr("padding_idx", Kind::Int, -1)
                .attr("scale_grad_by_freq", Kind::Bool, false)
                .infer(inferEmbeddingBackward));
}

void rondo::addIndexOps(OpTable &table) {
  addElementIndexOps(table);
  addSliceIndexOps(table);
  addEmbeddingOps(table);
}
