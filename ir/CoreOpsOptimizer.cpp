//===- CoreOpsOptimizer.cpp - Parameter updates in place ------------------===//
//
// The learning rate is attribute `lr`, or an operand: a scalar or a 0-d tensor. An update whose
// operand `found_inf` (CoreOpsGradient.cpp) is not 0 writes nothing, which the device decides.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;

/// Operands up to `last` are floats of the parameter's shape, and all but the gradient, operand 1,
/// can be written.
static llvm::Error checkStates(const Inference &in, unsigned last) {
  for (unsigned i = 0; i <= last; ++i) {
    const TensorType *state = in.optionalTensor(i);
    if (!state)
      continue;
    RONDO_TRY(in.dtypeIn(i, DTypeClass::Float));
    RONDO_TRY(in.shapeIs(i, in.tensor(0).shape));
    if (i != 1 && overlapsItself(*state))
      return in.expectsOperand(i, "whose elements do not overlap");
  }
  return llvm::Error::success();
}

/// Operand `i`, if it is there, is one f32 where the parameter is.
static llvm::Error checkFoundInf(const Inference &in, unsigned i) {
  RONDO_TRY(in.dtypeIs(i, DType::F32));
  RONDO_TRY(in.oneElement(i));
  const TensorType *foundInf = in.optionalTensor(i);
  if (foundInf && foundInf->device != in.tensor(0).device)
    return in.expectsOperand(i, "on the parameter's device, " + deviceName(in.tensor(0).device));
  return llvm::Error::success();
}

static llvm::Error inferSGD(Inference &in) {
  constexpr unsigned momentum = 2, rate = 3, foundInf = 4;
  RONDO_TRY(in.operandOrAttribute(rate, "lr"));
  RONDO_TRY(in.rankIs(rate, 0));
  RONDO_TRY(checkStates(in, momentum));
  RONDO_TRY(checkFoundInf(in, foundInf));
  in.results.emplace_back(*in.op.operand(0));
  if (in.has(momentum))
    in.results.emplace_back(*in.op.operand(momentum));
  else if (in.op.numberAttribute("momentum") != 0)
    return expects(in.operandText(momentum) + " when 'momentum' is not 0, got none");
  return llvm::Error::success();
}

static llvm::Error inferAdam(Inference &in) {
  constexpr unsigned firstMoment = 2, secondMoment = 3, step = 4, rate = 5, foundInf = 6;
  RONDO_TRY(in.operandOrAttribute(rate, "lr"));
  RONDO_TRY(in.rankIs(rate, 0));
  RONDO_TRY(in.rankIs(step, 0));
  RONDO_TRY(checkStates(in, secondMoment));
  RONDO_TRY(checkFoundInf(in, foundInf));
  for (unsigned i : {0U, firstMoment, secondMoment})
    in.results.emplace_back(*in.op.operand(i));
  return llvm::Error::success();
}

void rondo::addOptimizerOps(OpTable &table) {
  OpDef sgd("sgd_", "a step of stochastic gradient descent, with momentum if its buffer is given; "
                    "none if found_inf is not 0");
  table.add(sgd.in("param, grad, momentum_buffer?, lr?:number, found_inf?")
                .optional("lr", Kind::Number)
                .attr("momentum", Kind::Number, 0.0)
                .attr("dampening", Kind::Number, 0.0)
                .attr("weight_decay", Kind::Number, 0.0)
                .attr("nesterov", Kind::Bool, false)
                .variadicOut("param, momentum_buffer")
                .renames({{0, 0}, {2, 1}})
                .infer(inferSGD, DevicePolicy::HostScalars));
  OpDef adam("adam_", "a step of Adam, or with `decoupled` weight decay of AdamW; step counts from "
                      "1 and is not changed; none if found_inf is not 0");
  table.add(adam.in("param, grad, m, v, step:number, lr?:number, found_inf?")
                .optional("lr", Kind::Number)
                .attr("beta1", Kind::Number, 0.9)
                .attr("beta2", Kind::Number, 0.999)
                .attr("eps", Kind::Number, 1e-8)
                .attr("weight_decay", Kind::Number, 0.0)
                .attr("decoupled", Kind::Bool, false)
                .between("beta1", 0, 1)
                .between("beta2", 0, 1)
                .out("param, m, v")
                .renames({{0, 0}, {2, 1}, {3, 2}})
                .infer(inferAdam, DevicePolicy::HostScalars));
}
