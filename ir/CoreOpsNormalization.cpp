//===- CoreOpsNormalization.cpp - Layer, RMS and batch norm ---------------===//
//
// Statistics of 16-bit floats are kept in f32. Weights have the dtype of the input or, beside a
// 16-bit input, f32.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;
using C = DTypeClass;

/// Operand `i`, a weight or a running statistic, has `shape` and a dtype that goes with `x`.
static llvm::Error checkParameter(const Inference &in, unsigned i, const TensorType &x,
                                  llvm::ArrayRef<Dim> shape) {
  const TensorType *type = in.optionalTensor(i);
  if (!type)
    return llvm::Error::success();
  RONDO_TRY(in.shapeIs(i, shape));
  if (type->dtype == x.dtype || type->dtype == statisticsDType(x.dtype))
    return llvm::Error::success();
  return in.expectsOperand(i, "of the dtype of the input, " + dtypeName(x.dtype));
}

/// `normalized_shape`, which the shape of operand `i` must end with.
static llvm::Expected<Dims> normalizedShape(const Inference &in, unsigned i) {
  RONDO_TRY(in.dtypeIn(i, C::Float));
  llvm::Expected<Dims> normalized = in.sizes("normalized_shape");
  if (!normalized)
    return normalized;
  llvm::ArrayRef<Dim> shape = in.tensor(i).shape;
  if (normalized->empty() || normalized->size() > shape.size() ||
      shape.take_back(normalized->size()) != llvm::ArrayRef<Dim>(*normalized))
    return expects("attribute 'normalized_shape' to be the last sizes of " + shapeText(shape) +
                   ", got " + shapeText(*normalized));
  return normalized;
}

/// One statistic for each row of `x`: its shape with the last `count` sizes 1.
static Dims statisticsShape(const TensorType &x, unsigned count) {
  Dims shape = x.shape;
  std::fill(shape.end() - count, shape.end(), Dim(1));
  return shape;
}

/// Forward: `numParameters` operands after x, `numStatistics` results after out.
static llvm::Error inferNorm(Inference &in, unsigned numParameters, unsigned numStatistics) {
  RONDO_LET(normalized, normalizedShape(in, 0));
  const TensorType &x = in.tensor(0);
  for (unsigned i = 1; i <= numParameters; ++i)
    RONDO_TRY(checkParameter(in, i, x, normalized));
  RONDO_TRY(in.fresh(x.dtype, x.shape));
  for (unsigned i = 0; i < numStatistics; ++i)
    RONDO_TRY(in.fresh(statisticsDType(x.dtype), statisticsShape(x, normalized.size())));
  return llvm::Error::success();
}

/// Backward of operands grad, x, the statistics, w and, with two parameters, b. One result for x
/// and each parameter whose mask is true.
static llvm::Error inferNormBackward(Inference &in, unsigned numParameters,
                                     unsigned numStatistics) {
  RONDO_LET(normalized, normalizedShape(in, 1));
  RONDO_LET(mask, in.mask("mask", 1 + numParameters));
  const TensorType &x = in.tensor(1);
  RONDO_TRY(in.shapeIs(0, x.shape));
  for (unsigned i = 2; i < 2 + numStatistics; ++i)
    RONDO_TRY(in.shapeIs(i, statisticsShape(x, normalized.size())));
  unsigned firstParameter = 2 + numStatistics;
  for (unsigned i = 0; i < numParameters; ++i)
    RONDO_TRY(checkParameter(in, firstParameter + i, x, normalized));
  if (mask[0])
    RONDO_TRY(in.fresh(x.dtype, x.shape));
  for (unsigned i = 0; i < numParameters; ++i) {
    if (!mask[1 + i])
      continue;
    const TensorType *parameter = in.optionalTensor(firstParameter + i);
    if (!parameter)
      return expects(in.operandText(firstParameter + i) + " for its gradient, got none");
    RONDO_TRY(in.fresh(parameter->dtype, parameter->shape));
  }
  return llvm::Error::success();
}

/// The number of channels of operand `i`: its second size.
static llvm::Expected<Dim> channels(const Inference &in, unsigned i) {
  RONDO_TRY(in.dtypeIn(i, C::Float));
  RONDO_TRY(in.rankAtLeast(i, 2));
  return in.tensor(i).shape[1];
}

static llvm::Error inferBatchNorm(Inference &in) {
  RONDO_LET(count, channels(in, 0));
  const TensorType &x = in.tensor(0);
  for (unsigned i = 1; i <= 4; ++i)
    RONDO_TRY(checkParameter(in, i, x, count));
  bool training = in.op.boolAttribute("training");
  for (unsigned i = 3; i <= 4; ++i)
    if (!training && !in.has(i))
      return expects(in.operandText(i) + " when 'training' is false, got none");
  RONDO_TRY(in.fresh(x.dtype, x.shape));
  for (unsigned i = 0; i < 2; ++i)
    RONDO_TRY(in.fresh(statisticsDType(x.dtype), {training ? count : Dim(0)}));
  for (unsigned i = 3; i <= 4; ++i)
    if (const TensorType *running = in.optionalTensor(i))
      RONDO_TRY(in.fresh(running->dtype, running->shape));
  return llvm::Error::success();
}

static llvm::Error inferBatchNormBackward(Inference &in) {
  RONDO_LET(count, channels(in, 1));
  RONDO_LET(mask, in.mask("mask", 3));
  const TensorType &x = in.tensor(1);
  RONDO_TRY(in.shapeIs(0, x.shape));
  bool training = in.op.boolAttribute("training");
  for (unsigned i = 2; i <= 6; ++i) {
    bool unused = !training && i >= 5; // nothing is saved outside training
    if (!unused)
      RONDO_TRY(checkParameter(in, i, x, count));
  }
  const TensorType *weight = in.optionalTensor(2);
  DType weightDType = weight ? weight->dtype : x.dtype;
  if (mask[0])
    RONDO_TRY(in.fresh(x.dtype, x.shape));
  for (unsigned i = 1; i < 3; ++i)
    if (mask[i])
      RONDO_TRY(in.fresh(weightDType, {count}));
  return llvm::Error::success();
}

static void addLayerNormOps(OpTable &table) {
  table.add(OpDef("layer_norm", "(x - mean) * rstd * w + b over the last dimensions")
                .in("x, w?, b?")
                .attr("normalized_shape", Kind::IntList)
                .attr("eps", Kind::Number, 1e-5)
                .out("out, mean, rstd")
                .infer([](Inference &in) { return inferNorm(in, 2, 2); }));
  table.add(OpDef("layer_norm_backward", "gradients of layer_norm whose mask is true")
                .in("grad, x, mean, rstd, w?, b?")
                .attr("normalized_shape", Kind::IntList)
                .attr("mask", Kind::BoolList, Attribute::List{true, true, true})
                .variadicOut("grad_x, grad_w, grad_b")
                .infer([](Inference &in) { return inferNormBackward(in, 2, 2); }));
  table.add(OpDef("rms_norm", "x * rstd * w over the last dimensions")
                .in("x, w?")
                .attr("normalized_shape", Kind::IntList)
                .attr("eps", Kind::Number, 1e-5)
                .out("out, rstd")
                .infer([](Inference &in) { return inferNorm(in, 1, 1); }));
  table.add(OpDef("rms_norm_backward", "gradients of rms_norm whose mask is true")
                .in("grad, x, rstd, w?")
                .attr("normalized_shape", Kind::IntList)
                .attr("mask", Kind::BoolList, Attribute::List{true, true})
                .variadicOut("grad_x, grad_w")
                .infer([](Inference &in) { return inferNormBackward(in, 1, 1); }));
}

static void addBatchNormOps(OpTable &table) {
  table.add(OpDef("batch_norm",
                  "normalises each channel, by the batch's statistics when training, else by the "
                  "running ones; new running statistics for those given")
                .in("x, w?, b?, running_mean?, running_var?")
                .attr("training", Kind::Bool)
                .attr("momentum", Kind::Number, 0.1)
                .attr("eps", Kind::Number, 1e-5)
                .variadicOut("out, save_mean, save_invstd, new_running_mean, new_running_var")
                .infer(inferBatchNorm));
  table.add(OpDef("batch_norm_backward", "gradients of batch_norm whose mask is true")
                .in("grad, x, w?, running_mean?, running_var?, save_mean?, save_invstd?")
                .attr("training", Kind::Bool)
                .attr("eps", Kind::Number, 1e-5)
                .attr("mask", Kind::BoolList, Attribute::List{true, true, true})
                .variadicOut("grad_x, grad_w, grad_b")
                .infer(inferBatchNormBackward));
}

void rondo::addNormalizationOps(OpTable &table) {
  addLayerNormOps(table);
  addBatchNormOps(table);
}
