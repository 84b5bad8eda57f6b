//===- CoreOpsPointwise.cpp - Element by element ----------------------------===//
//
// Shapes broadcast and dtypes promote as in PyTorch. A 0-d host tensor may be an operand beside
// tensors of another device.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;
using R = PointwiseRule::Result;
using C = DTypeClass;

namespace {
struct UnaryRow {
  const char *name, *summary;
  PointwiseRule rule;
};
struct BinaryRow {
  const char *name, *summary;
  PointwiseRule rule;
  bool commutative = false;
};
} // namespace

static constexpr UnaryRow unaryOps[] = {
    {"neg", "-x", {R::Promoted, C::NotBool}},
    {"abs", "|x|", {R::Promoted}},
    {"sign", "-1, 0 or 1 by the sign of x", {R::Promoted}},
    {"exp", "e to the x", {R::Float}},
    {"log", "natural logarithm", {R::Float}},
    {"log1p", "log(1 + x)", {R::Float}},
    {"expm1", "exp(x) - 1", {R::Float}},
    {"sqrt", "square root", {R::Float}},
    {"rsqrt", "1 / sqrt(x)", {R::Float}},
    {"reciprocal", "1 / x", {R::Float}},
    {"sin", "sine of radians", {R::Float}},
    {"cos", "cosine of radians", {R::Float}},
    {"tanh", "hyperbolic tangent", {R::Float}},
    {"sigmoid", "1 / (1 + exp(-x))", {R::Float}},
    {"erf", "error function", {R::Float}},
    {"floor", "greatest integer not above x", {R::Promoted, C::NotBool}},
    {"ceil", "least integer not below x", {R::Promoted, C::NotBool}},
    {"round", "nearest integer, halves to even", {R::Promoted, C::NotBool}},
    {"relu", "max(x, 0)", {R::Promoted, C::NotBool}},
    {"silu", "x * sigmoid(x)", {R::Promoted, C::Float}},
    {"logical_not", "x is zero", {R::Bool}},
    {"bitwise_not", "every bit inverted; not, for bool", {R::Promoted, C::Integral}},
    {"isnan", "x is not a number", {R::Bool}},
    {"isinf", "x is infinite", {R::Bool}},
};

static constexpr BinaryRow binaryOps[] = {
    {"mul", "a * b", {R::Promoted}, true},
    {"div", "a / b, true division", {R::Float}},
    {"pow", "a to the b", {R::Promoted, C::NotBool}},
    {"maximum", "the greater of a and b; nan if either is", {R::Promoted}, true},
    {"minimum", "the lesser of a and b; nan if either is", {R::Promoted}, true},
    {"remainder", "a - b * floor(a / b)", {R::Promoted, C::NotBool}},
    {"atan2", "angle of the point (b, a)", {R::Float}},
    {"eq", "a == b", {R::Bool}, true},
    {"ne", "a != b", {R::Bool}, true},
    {"lt", "a < b", {R::Bool}},
    {"le", "a <= b", {R::Bool}},
    {"gt", "a > b", {R::Bool}},
    {"ge", "a >= b", {R::Bool}},
    {"logical_and", "both are non-zero", {R::Bool}, true},
    {"logical_or", "one or both are non-zero", {R::Bool}, true},
    {"logical_xor", "exactly one is non-zero", {R::Bool}, true},
    {"bitwise_and", "bit by bit and", {R::Promoted, C::Integral}, true},
    {"bitwise_or", "bit by bit or", {R::Promoted, C::Integral}, true},
    {"bitwise_xor", "bit by bit exclusive or", {R::Promoted, C::Integral}, true},
};

/// Ops with a factor `alpha`. Not commutative: alpha goes with one operand.
static constexpr BinaryRow scaledOps[] = {
    {"add", "a + alpha * b", {R::Promoted}},
    {"sub", "a - alpha * b", {R::Promoted, C::NotBool}},
    {"rsub", "b - alpha * a", {R::Promoted, C::NotBool}},
};

static OpDef binary(const BinaryRow &row) {
  OpDef def(row.name, row.summary);
  def.in("a, b?:number").optional("scalar", Kind::Number);
  if (row.commutative)
    def.commutative();
  def.infer(
      [rule = row.rule](Inference &in) -> llvm::Error {
        RONDO_TRY(in.operandOrAttribute(1, "scalar"));
        return inferPointwise(in, rule);
      },
      DevicePolicy::HostScalars);
  return def;
}

/// A whole-number result cannot be scaled by a fraction.
static llvm::Error checkAlpha(const OpContext &op) {
  const Attribute *alpha = op.attribute("alpha");
  const TensorType *result = op.results().empty() ? nullptr : op.results()[0]->asTensor();
  if (!alpha || !alpha->asFloat() || !result || isFloat(result->dtype))
    return llvm::Error::success();
  return expects("attribute 'alpha' to be an integer for a result of dtype " +
                 dtypeName(result->dtype) + ", got " + alpha->str());
}

static llvm::Error inferClamp(Inference &in) {
  const Attribute *bounds[] = {in.op.attribute("min"), in.op.attribute("max")};
  if (!bounds[0] && !bounds[1])
    return expects("attribute 'min' or 'max', got neither");
  RONDO_TRY(in.dtypeIn(0, C::NotBool));
  const TensorType &x = in.tensor(0);
  Promotion promotion;
  promotion.add(x);
  for (const Attribute *bound : bounds)
    if (bound)
      promotion.add(*bound);
  return in.fresh(promotion.result(), x.shape);
}

static llvm::Error inferCast(Inference &in) {
  return in.fresh(in.dtypeOr("dtype", in.tensor(0).dtype), in.tensor(0).shape);
}

static llvm::Error inferToDevice(Inference &in) {
  if (const Device *device = in.op.attribute("device")->asDevice())
    in.device = *device;
  return in.fresh(in.tensor(0).dtype, in.tensor(0).shape);
}

static llvm::Error inferWhere(Inference &in) {
  RONDO_TRY(in.dtypeIs(0, DType::Bool));
  return inferPointwise(in, {R::Promoted, C::Any, /*firstPromoted=*/1});
}

static llvm::Error inferMaskedFill(Inference &in) {
  RONDO_TRY(in.operandOrAttribute(2, "scalar"));
  RONDO_TRY(in.dtypeIs(1, DType::Bool));
  RONDO_TRY(in.rankIs(2, 0));
  return inferPointwise(in, {R::First});
}

static llvm::Error inferLerp(Inference &in) {
  RONDO_TRY(in.operandOrAttribute(2, "scalar"));
  RONDO_TRY(in.oneDType());
  return inferPointwise(in, {R::First, C::Float});
}

static void addUnaryOps(OpTable &table) {
  for (const UnaryRow &row : unaryOps)
    table.add(OpDef(row.name, row.summary).in("x").pointwise(row.rule));
  table.add(OpDef("softplus", "log(1 + exp(beta * x)) / beta; x where beta * x > threshold")
                .in("x")
                .attr("beta", Kind::Number, 1.0)
                .attr("threshold", Kind::Number, 20.0)
                .pointwise({R::Promoted, C::Float}));
  table.add(OpDef("leaky_relu", "x where x > 0, else slope * x")
                .in("x")
                .attr("slope", Kind::Number, 0.01)
                .pointwise({R::Promoted, C::Float}));
  table.add(OpDef("gelu", "x * P(X <= x) for a standard normal X, exact or by tanh")
                .in("x")
                .attr("approximate", Kind::String, "none")
                .oneOf("approximate", {"none", "tanh"})
                .pointwise({R::Promoted, C::Float}));
  table.add(OpDef("clamp", "min(max(x, min), max); a bound may be left out")
                .in("x")
                .optional("min", Kind::Number)
                .optional("max", Kind::Number)
                .infer(inferClamp));
  table.add(
      OpDef("cast", "x in another dtype").in("x").attr("dtype", Kind::DType).infer(inferCast));
  table.add(OpDef("to_device", "x copied to another device")
                .in("x")
                .attr("device", Kind::Device)
                .infer(inferToDevice));
}

static void addBinaryOps(OpTable &table) {
  for (const BinaryRow &row : scaledOps)
    table.add(binary(row).attr("alpha", Kind::Number, 1).verify(checkAlpha));
  for (const BinaryRow &row : binaryOps)
    table.add(binary(row));
}

static void addTernaryOps(OpTable &table) {
  auto policy = DevicePolicy::HostScalars;
  table.add(
      OpDef("where", "a where condition, else b").in("condition, a, b").infer(inferWhere, policy));
  table.add(OpDef("masked_fill", "value (a 0-d tensor, a scalar or `scalar`) where mask, else x")
                .in("x, mask, value?:number")
                .optional("scalar", Kind::Number)
                .infer(inferMaskedFill, policy));
  table.add(OpDef("addcmul", "x + value * a * b")
                .in("x, a, b")
                .attr("value", Kind::Number, 1)
                .pointwise({R::Promoted}));
  table.add(OpDef("addcdiv", "x + value * a / b")
                .in("x, a, b")
                .attr("value", Kind::Number, 1)
                .pointwise({R::Promoted, C::Float}));
  table.add(OpDef("lerp", "a + weight * (b - a); the weight a tensor, a scalar or `scalar`")
                .in("a, b, weight?:number")
                .optional("scalar", Kind::Number)
                .infer(inferLerp, policy));
}

static void addBackwardOps(OpTable &table) {
  PointwiseRule floats{R::Promoted, C::Float};
  table.add(OpDef("threshold_backward", "grad where x > threshold, else 0")
                .in("grad, x")
                .attr("threshold", Kind::Number, 0)
                .pointwise({R::Promoted}));
  table.add(OpDef("gelu_backward", "gradient of gelu at x")
                .in("grad, x")
                .attr("approximate", Kind::String, "none")
                .oneOf("approximate", {"none", "tanh"})
                .pointwise(floats));
  table.add(OpDef("leaky_relu_backward", "grad where x > 0, else slope * grad")
                .in("grad, x")
                .attr("slope", Kind::Number, 0.01)
                .pointwise(floats));
  table.add(OpDef("silu_backward", "gradient of silu at x").in("grad, x").pointwise(floats));
  table.add(OpDef("tanh_backward", "grad * (1 - out * out)").in("grad, out").pointwise(floats));
  table.add(OpDef("sigmoid_backward", "grad * out * (1 - out)").in("grad, out").pointwise(floats));
}

void rondo::addPointwiseOps(OpTable &table) {
  addBinaryOps(table);
  addUnaryOps(table);
  addTernaryOps(table);
  addBackwardOps(table);
}
