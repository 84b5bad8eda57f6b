//===- CoreOpsInPlace.cpp - Ops that write their first operand ------------===//
//
// An in-place op gives operand 0's storage a new name, result 0, of operand 0's type. Most are made
// from the op without the underscore: same operands, attributes and rules, and what it computes
// must fit operand 0.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;

/// Operand 0 can be written element by element.
static llvm::Error checkWritable(const Inference &in) {
  if (overlapsItself(in.tensor(0)))
    return in.expectsOperand(0, "whose elements do not overlap");
  return llvm::Error::success();
}

static llvm::Error renameFirst(Inference &in) {
  in.results.emplace_back(*in.op.operand(0));
  return llvm::Error::success();
}

/// What the op computes, `computed`, can be stored in operand 0.
static llvm::Error checkFits(const Inference &in, const TensorType &computed) {
  const TensorType &target = in.tensor(0);
  if (computed.shape != target.shape)
    return in.expectsOperand(0, "of the shape of what is written, " + shapeText(computed.shape));
  if (!canCast(computed.dtype, target.dtype))
    return in.expectsOperand(0, "of a dtype that holds " + dtypeName(computed.dtype));
  if (computed.device != target.device)
    return in.expectsOperand(0,
                             "on the device of the other operands, " + deviceName(computed.device));
  return llvm::Error::success();
}

/// The in-place form of `functional`.
static OpDef inPlaceForm(const OpSpec &functional) {
  OpSpec spec = functional;
  spec.name += "_";
  spec.summary = "in place: " + functional.summary;
  spec.commutative = false;
  spec.infer = [infer = functional.infer](const OpContext &op,
                                          llvm::SmallVectorImpl<Type> &results) -> llvm::Error {
    llvm::SmallVector<Type, 1> computed;
    RONDO_TRY(infer(op, computed));
    Inference in(op, results);
    RONDO_TRY(checkWritable(in));
    RONDO_TRY(checkFits(in, *computed[0].asTensor()));
    return renameFirst(in);
  };
  OpDef def(std::move(spec));
  def.inPlace();
  return def;
}

static llvm::Error inferFill(Inference &in) {
  RONDO_TRY(in.operandOrAttribute(1, "scalar"));
  RONDO_TRY(in.rankIs(1, 0));
  RONDO_TRY(checkWritable(in));
  return renameFirst(in);
}

static llvm::Error inferZero(Inference &in) {
  RONDO_TRY(checkWritable(in));
  return renameFirst(in);
}

static llvm::Error inferCopy(Inference &in) {
  RONDO_TRY(checkWritable(in));
  RONDO_TRY(in.broadcastsTo(1, in.tensor(0).shape));
  return renameFirst(in);
}

static llvm::Error inferAccumulate(Inference &in) {
  RONDO_TRY(checkWritable(in));
  RONDO_TRY(in.shapeIs(1, in.tensor(0).shape));
  RONDO_TRY(in.dtypeIs(2, DType::Bool));
  RONDO_TRY(in.rankIs(2, 0));
  RONDO_TRY(checkFits(in, in.tensor(1)));
  return renameFirst(in);
}

/// Reads operand 1 only: operand 0 is overwritten.
static void readSource(const OpContext &op, Effects &effects) {
  if (op.operand(1))
    effects.addRead(1);
}

void rondo::addInPlaceOps(OpTable &table) {
  for (llvm::StringRef name : {"add", "sub", "mul", "div", "pow", "relu", "sqrt", "clamp",
                               "masked_fill", "lerp", "addcmul", "addcdiv", "index_copy",
                               "index_add", "index_put", "scatter", "scatter_add", "all_reduce"})
    if (const OpSpec *functional = table.lookup(name))
      table.add(inPlaceForm(*functional));
  table.add(OpDef("copy_", "x overwritten with src, which broadcasts to it and may have any dtype")
                .in("x, src")
                .inPlace()
                .noReads()
                .effects(readSource)
                .infer(inferCopy, DevicePolicy::Any));
  table.add(OpDef("fill_", "x filled with one value: a 0-d tensor, a scalar or `scalar`")
                .in("x, value?:number")
                .optional("scalar", Kind::Number)
                .inPlace()
                .noReads()
                .effects(readSource)
                .infer(inferFill, DevicePolicy::HostScalars));
  table.add(OpDef("zero_", "x filled with 0").in("x").inPlace().noReads().infer(inferZero));
  table.add(OpDef("accumulate_", "x overwritten with src where the one flag `first` is set, "
                                 "whatever x held, else x + src")
                .in("x, src, first")
                .inPlace()
                .infer(inferAccumulate));
}
