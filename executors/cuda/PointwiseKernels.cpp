//===- PointwiseKernels.cpp - Pointwise ops of two and three operands -----===//
//
// With their in-place twins. Ops of one operand are in UnaryKernels.cpp.
//
//===----------------------------------------------------------------------===//

#include "Pointwise.h"

using namespace rondo;
using namespace rondo::cuda;
using Rule = ComputeRule;

static void addArithmetic(CUDAExecutor &executor) {
  bool inPlace = true;
  PointwiseRule withAlpha{.parameters = {"alpha"}};
  addPointwise(executor, {"add", pointwise::add(), withAlpha}, inPlace);
  addPointwise(executor, {"sub", pointwise::sub(), withAlpha}, inPlace);
  addPointwise(executor, {"rsub", pointwise::rsub(), withAlpha});
  addPointwise(executor, {"mul", pointwise::mul()}, inPlace);
  addPointwise(executor, {"div", pointwise::div(), {Rule::Float}}, inPlace);
  addPointwise(executor, {"pow", pointwise::pow()}, inPlace);
  addPointwise(executor, {"remainder", pointwise::remainder()});
  addPointwise(executor, {"atan2", pointwise::atan2(), {Rule::Float}});
  addPointwise(executor, {"bitwise_and", pointwise::bitAnd()});
  addPointwise(executor, {"bitwise_or", pointwise::bitOr()});
  addPointwise(executor, {"bitwise_xor", pointwise::bitXor()});
}

static void addComparisons(CUDAExecutor &executor) {
  addPointwise(executor, {"maximum", pointwise::maximum()});
  addPointwise(executor, {"minimum", pointwise::minimum()});
  addPointwise(executor, {"eq", pointwise::eq(), {Rule::Compare}});
  addPointwise(executor, {"ne", pointwise::ne(), {Rule::Compare}});
  addPointwise(executor, {"lt", pointwise::lt(), {Rule::Compare}});
  addPointwise(executor, {"le", pointwise::le(), {Rule::Compare}});
  addPointwise(executor, {"gt", pointwise::gt(), {Rule::Compare}});
  addPointwise(executor, {"ge", pointwise::ge(), {Rule::Compare}});
  addPointwise(executor, {"logical_and", pointwise::bitAnd(), {Rule::Logical}});
  addPointwise(executor, {"logical_or", pointwise::bitOr(), {Rule::Logical}});
  addPointwise(executor, {"logical_xor", pointwise::bitXor(), {Rule::Logical}});
}

static void addTernary(CUDAExecutor &executor) {
  bool inPlace = true;
  PointwiseRule withValue{.parameters = {"value"}};
  addPointwise(executor, {"where", pointwise::where(), {.condition = 0}});
  addPointwise(executor,
               {"masked_fill", pointwise::maskedFill(), {.compute = Rule::First, .condition = 1}},
               inPlace);
  addPointwise(executor, {"addcmul", pointwise::addcmul(), withValue}, inPlace);
  addPointwise(executor, {"addcdiv", pointwise::addcdiv(), withValue}, inPlace);
  addPointwise(executor, {"lerp", pointwise::lerp(), {Rule::First}}, inPlace);
}

/// One pass over memory: what is overwritten is looked at and not used.
static llvm::Expected<CUDAKernelFn> makeAccumulate(const OpContext &op) {
  return makePointwise(op, {"accumulate_", pointwise::accumulate(), {.condition = 2}});
}

/// With the bounds that are given.
static llvm::Expected<CUDAKernelFn> makeClamp(const OpContext &op) {
  bool hasMin = op.attribute("min"), hasMax = op.attribute("max");
  PointwiseSpec spec{"clamp"};
  spec.rule.parametersPromote = true;
  if (hasMin && hasMax) {
    spec.kernels = pointwise::clamp();
    spec.rule.parameters = {"min", "max"};
  } else if (hasMin) {
    spec.kernels = pointwise::clampMin();
    spec.rule.parameters = {"min"};
  } else {
    spec.kernels = pointwise::clampMax();
    spec.rule.parameters = {"max"};
  }
  return makePointwise(op, spec);
}

void cuda::addPointwiseKernels(CUDAExecutor &executor) {
  addArithmetic(executor);
  addComparisons(executor);
  addTernary(executor);
  addKernel(executor, {.op = "clamp", .make = makeClamp, .isElementwise = true});
  addKernel(executor, {.op = "clamp_", .make = makeClamp});
  addKernel(executor, {.op = "accumulate_", .make = makeAccumulate});
}
