//===- CoreOpsGradient.cpp - Gradients between backward and update --------===//
//
// Loss scaling and clipping without the host. `found_inf`, one f32, is 0 until a gradient turns out
// not to be finite; it then lets updates (CoreOpsOptimizer.cpp) do nothing and the scale shrink:
//
//   %found: f32[] = full() {dtype = f32, shape = [], value = 0.0}
//   %inverse: f32[] = reciprocal(%scale)
//   %found1: f32[], %g1: f32[8], %h1: f32[4] = unscale_(%found, %inverse, %g, %h)
//   %norm: f32[] = global_norm(%g1, %h1)
//   %g2: f32[8], %h2: f32[4] = clip_(%norm, %g1, %h1) {max_norm = 1.0}
//   %finite: bool[] = eq(%found1) {scalar = 0.0}
//   %step1: i64[] = add_(%step, %finite)
//   %p1: f32[8], %m1: f32[8], %v1: f32[8] = adam_(%p, %g2, %m, %v, %step1, %lr, %found1)
//   %scale1: f32[], %tracker1: i32[] = update_scale_(%scale, %tracker, %found1)
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

#include <cmath>

using namespace rondo;
using Kind = AttributeKind;

/// The gradients are the operands from `first`: at least one, floats.
static llvm::Error checkGradients(const Inference &in, unsigned first) {
  if (in.op.numOperands() == first)
    return expects("at least one gradient, got none");
  for (unsigned i = first; i < in.op.numOperands(); ++i)
    RONDO_TRY(in.dtypeIn(i, DTypeClass::Float));
  return llvm::Error::success();
}

/// As checkGradients; they can be written, and become the next results.
static llvm::Error renameGradients(Inference &in, unsigned first) {
  RONDO_TRY(checkGradients(in, first));
  for (unsigned i = first; i < in.op.numOperands(); ++i) {
    if (overlapsItself(in.tensor(i)))
      return in.expectsOperand(i, "whose elements do not overlap");
    in.results.emplace_back(*in.op.operand(i));
  }
  return llvm::Error::success();
}

/// Adds the effects of the gradients after the one at `first`, which result `result` renames.
static EffectsFn writesGradientsAfter(unsigned first, unsigned result) {
  return [=](const OpContext &op, Effects &effects) {
    for (unsigned i = first + 1; i < op.numOperands(); ++i) {
      effects.addWrite(i);
      effects.views.push_back({i, i - first + result});
    }
  };
}

static llvm::Error isOneOf(const Inference &in, unsigned i, DType dtype) {
  RONDO_TRY(in.dtypeIs(i, dtype));
  return in.oneElement(i);
}

static llvm::Error inferUnscale(Inference &in) {
  constexpr unsigned foundInf = 0, inverse = 1, gradients = 2;
  RONDO_TRY(isOneOf(in, foundInf, DType::F32));
  RONDO_TRY(isOneOf(in, inverse, DType::F32));
  in.results.emplace_back(*in.op.operand(foundInf));
  return renameGradients(in, gradients);
}

static llvm::Error inferGlobalNorm(Inference &in) {
  RONDO_TRY(checkGradients(in, 0));
  double p = in.op.numberAttribute("p");
  if (p != 2 && p != HUGE_VAL)
    return expects("attribute 'p' to be 2 or inf, got " + in.op.attribute("p")->str());
  DType dtype = DType::F32;
  for (unsigned i = 0; i < in.op.numOperands(); ++i)
    if (in.tensor(i).dtype == DType::F64)
      dtype = DType::F64;
  return in.fresh(dtype, {});
}

static llvm::Error inferClip(Inference &in) {
  constexpr unsigned norm = 0, gradients = 1;
  RONDO_TRY(in.dtypeIn(norm, DTypeClass::Float));
  RONDO_TRY(in.oneElement(norm));
  return renameGradients(in, gradients);
}

static llvm::Error inferUpdateScale(Inference &in) {
  constexpr unsigned scale = 0, tracker = 1, foundInf = 2;
  RONDO_TRY(isOneOf(in, scale, DType::F32));
  RONDO_TRY(isOneOf(in, tracker, DType::I32));
  RONDO_TRY(isOneOf(in, foundInf, DType::F32));
  RONDO_LET(interval, in.constant("growth_interval"));
  if (interval > std::numeric_limits<int32_t>::max())
    return expects("attribute 'growth_interval' to fit 32 bits, got " + llvm::Twine(interval));
  for (unsigned i : {scale, tracker})
    in.results.emplace_back(*in.op.operand(i));
  return llvm::Error::success();
}

void rondo::addGradientOps(OpTable &table) {
  table.add(OpDef("unscale_", "grads times inv_scale; found_inf becomes 1 if one of their elements "
                              "was not finite, and else stays as it is")
                .in("found_inf, inv_scale, grads*")
                .variadicOut("found_inf, grads")
                .renames({{0, 0}, {2, 1}})
                .effects(writesGradientsAfter(2, 1))
                .infer(inferUnscale));
  table.add(OpDef("global_norm", "p-norm, for a p of 2 or inf, of the elements of all grads")
                .in("grads*")
                .attr("p", Kind::Number, 2.0)
                .infer(inferGlobalNorm));
  table.add(OpDef("clip_", "grads times max_norm / (norm + 1e-6) where that is below 1")
                .in("norm, grads*")
                .attr("max_norm", Kind::Number)
                .atLeast("max_norm", 0)
                .variadicOut("grads")
                .renames({{1, 0}})
                .effects(writesGradientsAfter(1, 0))
                .infer(inferClip));
  table.add(OpDef("update_scale_",
                  "scale times backoff_factor if found_inf is not 0, or times growth_factor after "
                  "growth_interval calls in a row where it is 0")
                .in("scale, growth_tracker, found_inf")
                .attr("growth_factor", Kind::Number, 2.0)
                .attr("backoff_factor", Kind::Number, 0.5)
                .attr("growth_interval", Kind::Int, 2000)
                .atLeast("growth_factor", 1)
                .between("backoff_factor", 0, 1)
                .atLeast("growth_interval", 1)
                .out("scale, growth_tracker")
                .renames({{0, 0}, {1, 1}})
                .infer(inferUpdateScale));
}
