//===- CoreOpsDataMovement.cpp - Copies and rearrangements ----------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;

static llvm::Error inferClone(Inference &in) {
  const TensorType &x = in.tensor(0);
  if (in.op.boolAttribute("contiguous") || !isDense(x))
    return inferSameType(in);
  return in.view(x, x.shape, x.strides);
}

/// PyTorch lets a vector without elements be concatenated with anything.
static bool isLegacyEmpty(const TensorType &type) {
  return type.rank() == 1 && type.shape[0].isConstant(0);
}

/// The promoted dtype of all operands.
static DType promotedDType(const Inference &in) {
  Promotion promotion;
  for (unsigned i = 0; i < in.op.numOperands(); ++i)
    promotion.add(in.tensor(i));
  return promotion.result();
}

static llvm::Error needsOperands(const Inference &in) {
  if (in.op.numOperands() != 0)
    return llvm::Error::success();
  return expects("at least one operand, got none");
}

static llvm::Error inferCat(Inference &in) {
  RONDO_TRY(needsOperands(in));
  unsigned first = 0;
  while (first + 1 < in.op.numOperands() && isLegacyEmpty(in.tensor(first)))
    ++first;
  RONDO_LET(dim, in.dimOf(first, "dim"));
  Dims shape = in.tensor(first).shape;
  for (unsigned i = first + 1; i < in.op.numOperands(); ++i) {
    const TensorType &next = in.tensor(i);
    if (isLegacyEmpty(next))
      continue;
    RONDO_TRY(in.rankIs(i, shape.size()));
    for (unsigned d = 0; d < shape.size(); ++d)
      if (d != dim && next.shape[d] != shape[d])
        return in.expectsOperand(i, "to match " + shapeText(shape) + " but for dimension " +
                                        llvm::Twine(dim));
    shape[dim] = shape[dim] + next.shape[dim];
  }
  return in.fresh(promotedDType(in), std::move(shape));
}

static llvm::Error inferStack(Inference &in) {
  RONDO_TRY(needsOperands(in));
  Dims shape = in.tensor(0).shape;
  RONDO_LET(dim, in.dim("dim", shape.size() + 1));
  for (unsigned i = 1; i < in.op.numOperands(); ++i)
    RONDO_TRY(in.shapeIs(i, shape));
  shape.insert(shape.begin() + dim, Dim(in.op.numOperands()));
  return in.fresh(promotedDType(in), std::move(shape));
}

static llvm::Error inferRepeat(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_LET(shape, in.sizes("repeats"));
  if (shape.size() < x.rank())
    return expects("attribute \'repeats\' of length " + llvm::Twine(x.rank()) + " or more, got " +
                   shapeText(shape));
  for (unsigned i = 0; i < x.rank(); ++i) {
    Dim &size = shape[shape.size() - x.rank() + i];
    size = size * x.shape[i];
  }
  return in.fresh(x.dtype, std::move(shape));
}

static llvm::Error inferFlip(Inference &in) {
  RONDO_TRY(in.dims("dims", in.tensor(0).rank()).takeError());
  return inferSameType(in);
}

static llvm::Error inferRoll(Inference &in) {
  RONDO_LET(dims, in.dims("dims", in.tensor(0).rank()));
  const Attribute &shifts = *in.op.attribute("shifts");
  size_t count = shifts.asList()->size();
  if (count != (dims.empty() ? 1 : dims.size()))
    return expects("attribute 'shifts' to hold one number for each of 'dims', or one, got " +
                   shifts.str());
  return inferSameType(in);
}

static llvm::Error inferPad(Inference &in) {
  const TensorType &x = in.tensor(0);
  const Attribute &attribute = *in.op.attribute("pads");
  std::optional<Dims> pads = attribute.asDims();
  if (!pads || pads->size() % 2 != 0 || pads->size() > 2 * x.rank())
    return expects("attribute \'pads\' of even length, at most " + llvm::Twine(2 * x.rank()) +
                   ", got " + attribute.str());
  Dims shape = x.shape;
  for (size_t i = 0; i < pads->size() / 2; ++i) {
    Dim &size = shape[x.rank() - 1 - i];
    size = size + (*pads)[2 * i] + (*pads)[2 * i + 1];
    if (size.isConstant() && size.value() < 0)
      return expects("attribute 'pads' to leave sizes of at least 0, got " + attribute.str());
  }
  return in.fresh(x.dtype, std::move(shape));
}

static llvm::Error inferTriangle(Inference &in) {
  RONDO_TRY(in.rankAtLeast(0, 2));
  return inferSameType(in);
}

static llvm::Error inferSort(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_TRY(in.dim("dim", x.rank()).takeError());
  RONDO_TRY(in.fresh(x.dtype, x.shape));
  return in.fresh(DType::I64, x.shape);
}

static llvm::Error inferTopK(Inference &in) {
  RONDO_LET(dim, in.dimOf(0, "dim"));
  RONDO_LET(k, in.size("k"));
  const TensorType &x = in.tensor(0);
  if (k.isConstant() && x.shape[dim].isConstant() && k.value() > x.shape[dim].value())
    return expects("attribute 'k' of at most " + x.shape[dim].str() + ", got " + k.str());
  Dims shape = x.shape;
  shape[dim] = k;
  RONDO_TRY(in.fresh(x.dtype, shape));
  return in.fresh(DType::I64, std::move(shape));
}

static void addCopies(OpTable &table) {
  table.add(OpDef("clone", "a copy, row-major or, where that leaves no gaps, with the same strides")
                .in("x")
                .attr("contiguous", Kind::Bool, true)
                .infer(inferClone));
  table.add(OpDef("contiguous", "a row-major copy").in("x").infer(inferSameType));
  table.add(OpDef("cat", "operands one after the other along dim")
                .in("tensors*")
                .attr("dim", Kind::Int, 0)
                .infer(inferCat));
  table.add(OpDef("stack", "operands side by side along a new dimension")
                .in("tensors*")
                .attr("dim", Kind::Int, 0)
                .infer(inferStack));
  table.add(OpDef("repeat", "copies of x, repeats[i] along dimension i")
                .in("x")
                .attr("repeats", Kind::IntList)
                .infer(inferRepeat));
}

static void addRearrangements(OpTable &table) {
  table.add(OpDef("flip", "the order along dims reversed")
                .in("x")
                .attr("dims", Kind::IntList)
                .infer(inferFlip));
  table.add(OpDef("roll", "shifted around along dims, or as one vector without dims")
                .in("x")
                .attr("shifts", Kind::IntList)
                .attr("dims", Kind::IntList, Attribute::List())
                .infer(inferRoll));
  table.add(OpDef("pad", "value added before and after, or cut off: a pair for each dimension from "
                         "the last")
                .in("x")
                .attr("pads", Kind::IntList)
                .attr("value", Kind::Number, 0)
                .infer(inferPad));
  table.add(OpDef("tril", "0 above the given diagonal of each matrix")
                .in("x")
                .attr("diagonal", Kind::Int, 0)
                .infer(inferTriangle));
  table.add(OpDef("triu", "0 below the given diagonal of each matrix")
                .in("x")
                .attr("diagonal", Kind::Int, 0)
                .infer(inferTriangle));
  table.add(OpDef("sort", "values along dim in order, and their indices")
                .in("x")
                .attr("dim", Kind::Int, -1)
                .attr("descending", Kind::Bool, false)
                .out("values, indices")
                .infer(inferSort));
  table.add(OpDef("topk", "the k greatest or least values along dim, and their indices")
                .in("x")
                .attr("k", Kind::Int)
                .attr("dim", Kind::Int, -1)
                .attr("largest", Kind::Bool, true)
                .attr("sorted", Kind::Bool, true)
                .out("values, indices")
                .infer(inferTopK));
}

void rondo::addDataMovementOps(OpTable &table) {
  addCopies(table);
  addRearrangements(table);
}
