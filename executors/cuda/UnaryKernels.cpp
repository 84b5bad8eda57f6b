//===- UnaryKernels.cpp - Pointwise ops of one operand --------------------===//

#include "Pointwise.h"

using namespace rondo;
using namespace rondo::cuda;
using Rule = ComputeRule;

/// Every bit inverted; for bool, not.
static llvm::Expected<CUDAKernelFn> makeBitwiseNot(const OpContext &op) {
  if (op.tensor(0)->dtype == DType::Bool)
    return makePointwise(op, {"bitwise_not", pointwise::logicalNot()});
  return makePointwise(op, {"bitwise_not", pointwise::bitwiseNot()});
}

static llvm::Expected<CUDAKernelFn> makeGelu(const OpContext &op) {
  if (op.stringAttribute("approximate") == "tanh")
    return makePointwise(op, {"gelu", pointwise::geluTanh()});
  return makePointwise(op, {"gelu", pointwise::geluErf()});
}

void cuda::addUnaryKernels(CUDAExecutor &executor) {
  bool inPlace = true;
  addPointwise(executor, {"neg", pointwise::neg()});
  addPointwise(executor, {"abs", pointwise::abs()});
  addPointwise(executor, {"sign", pointwise::sign()});
  addPointwise(executor, {"floor", pointwise::floor()});
  addPointwise(executor, {"ceil", pointwise::ceil()});
  addPointwise(executor, {"round", pointwise::round()});
  addPointwise(executor, {"relu", pointwise::relu()}, inPlace);
  addPointwise(executor, {"logical_not", pointwise::logicalNot(), {Rule::Logical}});
  addPointwise(executor, {"isnan", pointwise::isnan()});
  addPointwise(executor, {"isinf", pointwise::isinf()});
  addPointwise(executor, {"exp", pointwise::exp(), {Rule::Float}});
  addPointwise(executor, {"log", pointwise::log(), {Rule::Float}});
  addPointwise(executor, {"log1p", pointwise::log1p(), {Rule::Float}});
  addPointwise(executor, {"expm1", pointwise::expm1(), {Rule::Float}});
  addPointwise(executor, {"sqrt", pointwise::sqrt(), {Rule::Float}}, inPlace);
  addPointwise(executor, {"rsqrt", pointwise::rsqrt(), {Rule::Float}});
  addPointwise(executor, {"reciprocal", pointwise::reciprocal(), {Rule::Float}});
  addPointwise(executor, {"sin", pointwise::sin(), {Rule::Float}});
  addPointwise(executor, {"cos", pointwise::cos(), {Rule::Float}});
  addPointwise(executor, {"tanh", pointwise::tanh(), {Rule::Float}});
  addPointwise(executor, {"sigmoid", pointwise::sigmoid(), {Rule::Float}});
  addPointwise(executor, {"erf", pointwise::erf(), {Rule::Float}});
  addPointwise(executor, {"silu", pointwise::silu()});
  addPointwise(executor,
               {"softplus", pointwise::softplus(), {.parameters = {"beta", "threshold"}}});
  addPointwise(executor, {"leaky_relu", pointwise::leakyRelu(), {.parameters = {"slope"}}});
  addKernel(executor, {.op = "bitwise_not", .make = makeBitwiseNot, .isElementwise = true});
  addKernel(executor, {.op = "gelu", .make = makeGelu, .isElementwise = true});
}
