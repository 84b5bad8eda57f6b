//===- UnaryKernels.cpp - Pointwise ops of one operand --------------------===//

#include "Pointwise.h"

#include <cmath>

using namespace rondo;
using namespace rondo::host;
using Rule = ComputeRule;

namespace {
struct UnaryRow {
  const char *op;
  Rule rule;
  RowFunctions rows;
  bool inPlace = false;
};
} // namespace

template <typename T> static T sigmoidOf(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// Applies `fn` to floats; integers stay as they are.
template <typename T, typename Fn> static T onFraction(T x, Fn fn) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return fn(x);
}

/// Rules of sign, rounding and truth, for all dtypes.
static constexpr UnaryRow numberOps[] = {
    {"neg", Rule::Promoted, onNumbers<1>([](auto x) {
       return std::is_integral_v<decltype(x)> ? wrapSub(decltype(x)(0), x) : -x;
     })},
    {"abs", Rule::Promoted, onNumbers<1>([](auto x) {
       if constexpr (std::is_integral_v<decltype(x)>)
         return x < 0 ? wrapSub(decltype(x)(0), x) : x;
       else
         return std::fabs(x);
     })},
    {"sign", Rule::Promoted, onNumbers<1>([](auto x) { return (x > 0) - (x < 0); })},
    {"floor", Rule::Promoted,
     onNumbers<1>([](auto x) { return onFraction(x, [](auto y) { return std::floor(y); }); })},
    {"ceil", Rule::Promoted,
     onNumbers<1>([](auto x) { return onFraction(x, [](auto y) { return std::ceil(y); }); })},
    // The rounding mode is the default one, halves to even.
    {"round", Rule::Promoted,
     onNumbers<1>([](auto x) { return onFraction(x, [](auto y) { return std::nearbyint(y); }); })},
    {"relu", Rule::Promoted, onNumbers<1>([](auto x) { return x <= 0 ? decltype(x)(0) : x; }),
     /*inPlace=*/true},
    {"logical_not", Rule::Logical, onIntegers<1>([](auto x) { return x == 0; })},
    {"isnan", Rule::Promoted, onNumbers<1>([](auto x) { return x != x; })},
    {"isinf", Rule::Promoted, onNumbers<1>([](auto x) {
       using Limits = std::numeric_limits<decltype(x)>;
       return Limits::has_infinity && (x == Limits::infinity() || x == -Limits::infinity());
     })},
};

static constexpr UnaryRow floatOps[] = {
    {"exp", Rule::Float, onFloats<1>([](auto x) { return std::exp(x); })},
    {"log", Rule::Float, onFloats<1>([](auto x) { return std::log(x); })},
    {"log1p", Rule::Float, onFloats<1>([](auto x) { return std::log1p(x); })},
    {"expm1", Rule::Float, onFloats<1>([](auto x) { return std::expm1(x); })},
    {"sqrt", Rule::Float, onFloats<1>([](auto x) { return std::sqrt(x); }), /*inPlace=*/true},
    {"rsqrt", Rule::Float, onFloats<1>([](auto x) { return decltype(x)(1) / std::sqrt(x); })},
    {"reciprocal", Rule::Float, onFloats<1>([](auto x) { return decltype(x)(1) / x; })},
    {"sin", Rule::Float, onFloats<1>([](auto x) { return std::sin(x); })},
    {"cos", Rule::Float, onFloats<1>([](auto x) { return std::cos(x); })},
    {"tanh", Rule::Float, onFloats<1>([](auto x) { return std::tanh(x); })},
    {"sigmoid", Rule::Float, onFloats<1>([](auto x) { return sigmoidOf(x); })},
    {"erf", Rule::Float, onFloats<1>([](auto x) { return std::erf(x); })},
    {"silu", Rule::Promoted,
     onFloats<1>([](auto x) { return x / (decltype(x)(1) + std::exp(-x)); })},
};

/// Every bit inverted; for bool, not.
static llvm::Expected<HostKernelFn> makeBitwiseNot(const OpContext &op) {
  PointwiseSpec spec{.op = "bitwise_not"};
  if (op.tensor(0)->dtype == DType::Bool)
    spec.rows = onIntegers<1>([](auto x) { return x ^ 1; });
  else
    spec.rows = onIntegers<1>([](auto x) { return ~x; });
  return makePointwise(op, spec);
}

/// x * P(X <= x), exactly by the error function, or by the approximation with tanh of Hendrycks and
/// Gimpel, arXiv:1606.08415.
static llvm::Expected<HostKernelFn> makeGelu(const OpContext &op) {
  PointwiseSpec spec{.op = "gelu"};
  if (op.stringAttribute("approximate") == "tanh")
    spec.rows = onFloats<1>([](auto x) {
      using T = decltype(x);
      T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x); // sqrt(2 / pi)
      return T(0.5) * x * (T(1) + std::tanh(inner));
    });
  else
    spec.rows = onFloats<1>([](auto x) {
      using T = decltype(x);
      return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))); // sqrt(1 / 2)
    });
  return makePointwise(op, spec);
}

void host::addUnaryKernels(HostExecutor &executor) {
  for (const UnaryRow &row : numberOps)
    addPointwise(executor, {.op = row.op, .rule = row.rule, .rows = row.rows}, row.inPlace);
  for (const UnaryRow &row : floatOps)
    addPointwise(executor, {.op = row.op, .rule = row.rule, .rows = row.rows}, row.inPlace);
  addPointwise(executor, {.op = "softplus",
                          .rows = onFloats<3>([](auto x, auto beta, auto threshold) {
                            return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
                          }),
                          .parameters = {"beta", "threshold"}});
  addPointwise(executor,
               {.op = "leaky_relu",
                .rows = onFloats<2>([](auto x, auto slope) { return x > 0 ? x : slope * x; }),
                .parameters = {"slope"}});
  addKernel(executor, {.op = "bitwise_not", .make = makeBitwiseNot, .isElementwise = true});
  addKernel(executor, {.op = "gelu", .make = makeGelu, .isElementwise = true});
}
