//===- CoreOpsReduction.cpp - Reductions, scans and softmax ---------------===//
//
// `dims` of a reduction: the dimensions to reduce, [] for all of them. With `keepdim` a reduced
// dimension stays with size 1.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;
using C = DTypeClass;

static Dims reduced(llvm::ArrayRef<Dim> shape, const llvm::SmallBitVector &reduce, bool keepdim) {
  Dims result;
  for (unsigned i = 0; i < shape.size(); ++i) {
    if (!reduce[i])
      result.push_back(shape[i]);
    else if (keepdim)
      result.push_back(1);
  }
  return result;
}

/// The result of reducing operand 0 over `dims`, of `dtype`.
static llvm::Error inferReduction(Inference &in, DType dtype) {
  const TensorType &x = in.tensor(0);
  RONDO_LET(dims, in.dims("dims", x.rank()));
  llvm::SmallBitVector reduce(std::max(x.rank(), 1U), dims.empty());
  for (unsigned dim : dims)
    reduce.set(dim);
  return in.fresh(dtype, reduced(x.shape, reduce, in.op.boolAttribute("keepdim")));
}

static llvm::Error inferSum(Inference &in) {
  return inferReduction(in, in.dtypeOr("dtype", sumDType(in.tensor(0).dtype)));
}

/// For ops whose result is a float: the dtype of the operand, or `dtype`.
static llvm::Error inferFloatReduction(Inference &in) {
  DType dtype = in.dtypeOr("dtype", in.tensor(0).dtype);
  if (!isFloat(dtype))
    return in.expectsOperand(0, "of a floating-point dtype");
  return inferReduction(in, dtype);
}

static llvm::Error inferExtremum(Inference &in) {
  return inferReduction(in, in.tensor(0).dtype);
}

static llvm::Error inferTruth(Inference &in) {
  return inferReduction(in, DType::Bool);
}

static llvm::Error inferLogSumExp(Inference &in) {
  return inferReduction(in, floatFor(in.tensor(0).dtype));
}

static llvm::Error inferArgExtremum(Inference &in) {
  const TensorType &x = in.tensor(0);
  bool all = !in.hasAttribute("dim");
  llvm::SmallBitVector reduce(std::max(x.rank(), 1U), all);
  if (!all) {
    RONDO_LET(dim, in.dim("dim", x.rank()));
    reduce.set(dim);
  }
  return in.fresh(DType::I64, reduced(x.shape, reduce, in.op.boolAttribute("keepdim")));
}

static llvm::Error inferCumsum(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_TRY(in.dim("dim", x.rank()).takeError());
  return in.fresh(in.dtypeOr("dtype", sumDType(x.dtype)), x.shape);
}

static llvm::Error inferSoftmax(Inference &in) {
  const TensorType &x = in.tensor(0);
  RONDO_TRY(in.dim("dim", x.rank()).takeError());
  DType dtype = in.dtypeOr("dtype", x.dtype);
  if (!isFloat(dtype))
    return in.expectsOperand(0, "of a floating-point dtype");
  return in.fresh(dtype, x.shape);
}

static llvm::Error inferSoftmaxBackward(Inference &in) {
  RONDO_TRY(in.shapeIs(1, in.tensor(0).shape));
  RONDO_TRY(in.dtypeIn(1, C::Float));
  return inferSoftmax(in);
}

static OpDef reduction(llvm::StringRef name, llvm::StringRef summary) {
  OpDef def(name, summary);
  def.in("x").attr("dims", Kind::IntList, Attribute::List());
  def.attr("keepdim", Kind::Bool, false);
  return def;
}

static OpDef argExtremum(llvm::StringRef name, llvm::StringRef summary) {
  OpDef def(name, summary);
  def.in("x").optional("dim", Kind::Int).attr("keepdim", Kind::Bool, false);
  def.infer(inferArgExtremum);
  return def;
}

static OpDef alongDim(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef operands) {
  OpDef def(name, summary);
  def.in(operands).attr("dim", Kind::Int).optional("dtype", Kind::DType);
  return def;
}

void rondo::addReductionOps(OpTable &table) {
  table.add(reduction("sum", "sum; of integers and bool in i64")
                .optional("dtype", Kind::DType)
                .infer(inferSum));
  table.add(reduction("prod", "product; of integers and bool in i64")
                .optional("dtype", Kind::DType)
                .infer(inferSum));
  table.add(reduction("mean", "mean").optional("dtype", Kind::DType).infer(inferFloatReduction));
  table.add(reduction("var", "sum of squared deviations over (count - correction)")
                .attr("correction", Kind::Number, 1)
                .infer(inferFloatReduction));
  table.add(reduction("norm", "p-norm: the p-th root of the sum of |x| to the p")
                .attr("p", Kind::Number, 2)
                .infer(inferFloatReduction));
  table.add(reduction("logsumexp", "log of the sum of exponentials").infer(inferLogSumExp));
  table.add(reduction("amax", "greatest element").infer(inferExtremum));
  table.add(reduction("amin", "least element").infer(inferExtremum));
  table.add(reduction("any", "some element is non-zero").infer(inferTruth));
  table.add(reduction("all", "every element is non-zero").infer(inferTruth));
  table.add(argExtremum("argmax", "index of the greatest element, of all or along dim"));
  table.add(argExtremum("argmin", "index of the least element, of all or along dim"));
  table.add(alongDim("cumsum", "running sum along dim", "x").infer(inferCumsum));
  table.add(alongDim("softmax", "exp(x) over its sum along dim", "x").infer(inferSoftmax));
  table.add(alongDim("log_softmax", "logarithm of softmax", "x").infer(inferSoftmax));
  table.add(
      alongDim("safe_softmax", "softmax; 0 where all along dim are -inf", "x").infer(inferSoftmax));
  table.add(alongDim("softmax_backward", "gradient of softmax, from its result", "grad, out")
                .infer(inferSoftmaxBackward));
  table.add(
      alongDim("log_softmax_backward", "gradient of log_softmax, from its result", "grad, out")
          .infer(inferSoftmaxBackward));
}
