//===- CoreOpsLoss.cpp - Losses -------------------------------------------===//
//
// Classes are in dimension 1, or 0 of a vector. `reduction` "none" gives one loss for each target,
// "mean" and "sum" a 0-d tensor.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;
using C = DTypeClass;

static bool isReduced(const Inference &in) {
  return in.op.stringAttribute("reduction") != "none";
}

static unsigned classDim(const TensorType &x) {
  return x.rank() == 1 ? 0 : 1;
}

/// The shape of a target that names one class for each element: `x` without its classes.
static Dims targetShape(const TensorType &x) {
  Dims shape = x.shape;
  shape.erase(shape.begin() + classDim(x));
  return shape;
}

/// Checks scores `x`, the target after it, and the class weights after that.
static llvm::Error checkClassLoss(const Inference &in, unsigned x, bool probabilities) {
  RONDO_TRY(in.dtypeIn(x, C::Float));
  RONDO_TRY(in.rankAtLeast(x, 1));
  const TensorType &scores = in.tensor(x);
  RONDO_TRY(in.dtypeIs(x + 2, scores.dtype));
  RONDO_TRY(in.shapeIs(x + 2, scores.shape[classDim(scores)]));
  if (probabilities && isFloat(in.tensor(x + 1).dtype))
    return in.shapeIs(x + 1, scores.shape);
  RONDO_TRY(in.dtypeIn(x + 1, C::Integral));
  RONDO_TRY(in.dtypeIn(x + 1, C::NotBool));
  return in.shapeIs(x + 1, targetShape(scores));
}

/// The incoming gradient has the shape of the loss.
static llvm::Error checkLossGradient(const Inference &in, const Dims &unreduced) {
  return in.shapeIs(0, isReduced(in) ? Dims() : unreduced);
}

static llvm::Error inferClassLoss(Inference &in, bool probabilities) {
  RONDO_TRY(checkClassLoss(in, 0, probabilities));
  const TensorType &x = in.tensor(0);
  return in.fresh(x.dtype, isReduced(in) ? Dims() : targetShape(x));
}

static llvm::Error inferNLLLoss(Inference &in) {
  RONDO_TRY(inferClassLoss(in, /*probabilities=*/false));
  return in.fresh(in.tensor(0).dtype, {});
}

static llvm::Error inferClassLossBackward(Inference &in, bool probabilities) {
  RONDO_TRY(checkClassLoss(in, 1, probabilities));
  RONDO_TRY(checkLossGradient(in, targetShape(in.tensor(1))));
  return in.fresh(in.tensor(1).dtype, in.tensor(1).shape);
}

static llvm::Error inferNLLLossBackward(Inference &in) {
  RONDO_TRY(in.rankIs(4, 0));
  return inferClassLossBackward(in, /*probabilities=*/false);
}

static llvm::Error inferMSELoss(Inference &in) {
  RONDO_TRY(inferPointwise(in, {PointwiseRule::Result::Promoted, C::Float}));
  if (!isReduced(in))
    return llvm::Error::success();
  DType dtype = in.results.pop_back_val().asTensor()->dtype;
  return in.fresh(dtype, {});
}

static llvm::Error inferMSELossBackward(Inference &in) {
  const TensorType &x = in.tensor(1);
  RONDO_TRY(in.dtypeIn(1, C::Float));
  RONDO_TRY(in.shapeIs(2, x.shape));
  RONDO_TRY(checkLossGradient(in, x.shape));
  return in.fresh(x.dtype, x.shape);
}

static OpDef loss(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef operands) {
  OpDef def(name, summary);
  def.in(operands).attr("reduction", Kind::String, "mean");
  def.oneOf("reduction", {"none", "mean", "sum"});
  return def;
}

static OpDef classLoss(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef operands) {
  OpDef def = loss(name, summary, operands);
  def.attr("ignore_index", Kind::Int, -100);
  return def;
}

static OpDef crossEntropy(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef operands) {
  OpDef def = classLoss(name, summary, operands);
  def.attr("label_smoothing", Kind::Number, 0.0).between("label_smoothing", 0, 1);
  return def;
}

void rondo::addLossOps(OpTable &table) {
  table.add(classLoss("nll_loss", "negative log-likelihood, and the sum of the weights it used",
                      "logp, target, weight?")
                .out("loss, total_weight")
                .infer(inferNLLLoss));
  table.add(classLoss("nll_loss_backward", "gradient of nll_loss",
                      "grad, logp, target, weight?, total_weight")
                .infer(inferNLLLossBackward));
  table.add(crossEntropy("cross_entropy",
                         "nll_loss of log_softmax; the target names classes or, floating-point, "
                         "gives their probabilities",
                         "logits, target, weight?")
                .infer([](Inference &in) { return inferClassLoss(in, /*probabilities=*/true); }));
  table.add(
      crossEntropy("cross_entropy_backward", "gradient of cross_entropy",
                   "grad, logits, target, weight?")
          .infer([](Inference &in) { return inferClassLossBackward(in, /*probabilities=*/true); }));
  table.add(loss("mse_loss", "squared difference", "x, target").infer(inferMSELoss));
  table.add(loss("mse_loss_backward", "gradient of mse_loss", "grad, x, target")
                .infer(inferMSELossBackward));
}
