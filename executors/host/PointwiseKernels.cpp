//===- PointwiseKernels.cpp - Pointwise ops of two and three operands -----===//
//
// With their in-place twins. Ops of one operand are in UnaryKernels.cpp.
//
//===----------------------------------------------------------------------===//

#include "Pointwise.h"

#include <cmath>

using namespace rondo;
using namespace rondo::host;
using Rule = ComputeRule;

//===----------------------------------------------------------------------===//
// Functions on numbers
//===----------------------------------------------------------------------===//

template <typename T> static bool isNaN(T value) {
  return value != value;
}

/// nan if either is, as PyTorch's.
template <typename T> static T maximumOf(T a, T b) {
  return isNaN(a) || a > b ? a : b;
}
template <typename T> static T minimumOf(T a, T b) {
  return isNaN(a) || a < b ? a : b;
}

/// By repeated squaring, modulo 2^64; a negative power is the integer part of the real one, 0 for a
/// base of 0.
static int64_t powerOf(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1, square = uint64_t(base);
  for (uint64_t rest = uint64_t(exponent); rest != 0; rest >>= 1) {
    if (rest & 1)
      result *= square;
    square *= square;
  }
  return int64_t(result);
}
template <typename T> static T powerOf(T base, T exponent) {
  return std::pow(base, exponent);
}

/// With the sign of b, as Python's %. 0 for integers where b is 0.
static int64_t remainderOf(int64_t a, int64_t b) {
  if (b == 0 || b == -1) // the least integer over -1 would overflow
    return 0;
  int64_t result = a % b;
  return result != 0 && (result < 0) != (b < 0) ? result + b : result;
}
template <typename T> static T remainderOf(T a, T b) {
  T result = std::fmod(a, b);
  return result != 0 && (result < 0) != (b < 0) ? result + b : result;
}

/// From the nearer end, so that a weight of 1 gives exactly b.
template <typename T> static T lerpOf(T a, T b, T weight) {
  return weight < T(0.5) ? a + weight * (b - a) : b - (b - a) * (T(1) - weight);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static void addArithmetic(HostExecutor &executor) {
  bool inPlace = true;
  addPointwise(executor,
               {.op = "add",
                .rows = onNumbers<3>(
                    [](auto a, auto b, auto alpha) { return wrapAdd(a, wrapMul(alpha, b)); }),
                .parameters = {"alpha"}},
               inPlace);
  addPointwise(executor,
               {.op = "sub",
                .rows = onNumbers<3>(
                    [](auto a, auto b, auto alpha) { return wrapSub(a, wrapMul(alpha, b)); }),
                .parameters = {"alpha"}},
               inPlace);
  addPointwise(executor, {.op = "rsub",
                          .rows = onNumbers<3>([](auto a, auto b, auto alpha) {
                            return wrapSub(b, wrapMul(alpha, a));
                          }),
                          .parameters = {"alpha"}});
  addPointwise(executor,
               {.op = "mul", .rows = onNumbers<2>([](auto a, auto b) { return wrapMul(a, b); })},
               inPlace);
  addPointwise(
      executor,
      {.op = "div", .rule = Rule::Float, .rows = onFloats<2>([](auto a, auto b) { return a / b; })},
      inPlace);
  addPointwise(executor,
               {.op = "pow", .rows = onNumbers<2>([](auto a, auto b) { return powerOf(a, b); })},
               inPlace);
  addPointwise(executor, {.op = "remainder",
                          .rows = onNumbers<2>([](auto a, auto b) { return remainderOf(a, b); })});
  addPointwise(executor, {.op = "atan2",
                          .rule = Rule::Float,
                          .rows = onFloats<2>([](auto a, auto b) { return std::atan2(a, b); })});
}

static void addComparisons(HostExecutor &executor) {
  auto add = [&](llvm::StringRef op, Rule rule, RowFunctions rows) {
    addPointwise(executor, {.op = op, .rule = rule, .rows = rows});
  };
  add("maximum", Rule::Promoted, onNumbers<2>([](auto a, auto b) { return maximumOf(a, b); }));
  add("minimum", Rule::Promoted, onNumbers<2>([](auto a, auto b) { return minimumOf(a, b); }));
  add("eq", Rule::Compare, onNumbers<2>([](auto a, auto b) { return a == b; }));
  add("ne", Rule::Compare, onNumbers<2>([](auto a, auto b) { return a != b; }));
  add("lt", Rule::Compare, onNumbers<2>([](auto a, auto b) { return a < b; }));
  add("le", Rule::Compare, onNumbers<2>([](auto a, auto b) { return a <= b; }));
  add("gt", Rule::Compare, onNumbers<2>([](auto a, auto b) { return a > b; }));
  add("ge", Rule::Compare, onNumbers<2>([](auto a, auto b) { return a >= b; }));
  add("logical_and", Rule::Logical, onIntegers<2>([](auto a, auto b) { return a & b; }));
  add("logical_or", Rule::Logical, onIntegers<2>([](auto a, auto b) { return a | b; }));
  add("logical_xor", Rule::Logical, onIntegers<2>([](auto a, auto b) { return a ^ b; }));
  add("bitwise_and", Rule::Promoted, onIntegers<2>([](auto a, auto b) { return a & b; }));
  add("bitwise_or", Rule::Promoted, onIntegers<2>([](auto a, auto b) { return a | b; }));
  add("bitwise_xor", Rule::Promoted, onIntegers<2>([](auto a, auto b) { return a ^ b; }));
}

static void addTernary(HostExecutor &executor) {
  bool inPlace = true;
  addPointwise(executor, {.op = "where",
                          .rows = onNumbers<3>([](auto condition, auto a, auto b) {
                            return condition != 0 ? a : b;
                          }),
                          .condition = 0});
  addPointwise(
      executor,
      {.op = "masked_fill",
       .rule = Rule::First,
       .rows = onNumbers<3>([](auto x, auto mask, auto value) { return mask != 0 ? value : x; }),
       .condition = 1},
      inPlace);
  addPointwise(executor,
               {.op = "addcmul",
                .rows = onNumbers<4>([](auto x, auto a, auto b, auto value) {
                  return wrapAdd(x, wrapMul(wrapMul(value, a), b));
                }),
                .parameters = {"value"}},
               inPlace);
  addPointwise(
      executor,
      {.op = "addcdiv",
       .rows = onFloats<4>([](auto x, auto a, auto b, auto value) { return x + value * a / b; }),
       .parameters = {"value"}},
      inPlace);
  addPointwise(
      executor,
      {.op = "lerp", .rule = Rule::First, .rows = onFloats<3>([](auto a, auto b, auto weight) {
                                            return lerpOf(a, b, weight);
                                          })},
      inPlace);
}

/// One pass over memory: what is overwritten is looked at and not used.
static llvm::Expected<HostKernelFn> makeAccumulate(const OpContext &op) {
  return makePointwise(op, {.op = "accumulate_",
                            .rows = onNumbers<3>([](auto x, auto src, auto first) {
                              return first != 0 ? src : wrapAdd(x, src);
                            }),
                            .condition = 2});
}

/// With the bounds that are given. A nan as a number or a bound gives nan.
static llvm::Expected<HostKernelFn> makeClamp(const OpContext &op) {
  PointwiseSpec spec{.op = "clamp", .parametersPromote = true};
  bool hasMin = op.attribute("min"), hasMax = op.attribute("max");
  if (hasMin && hasMax) {
    spec.rows =
        onNumbers<3>([](auto x, auto min, auto max) { return minimumOf(maximumOf(x, min), max); });
    spec.parameters = {"min", "max"};
  } else if (hasMin) {
    spec.rows = onNumbers<2>([](auto x, auto min) { return maximumOf(x, min); });
    spec.parameters = {"min"};
  } else {
    spec.rows = onNumbers<2>([](auto x, auto max) { return minimumOf(x, max); });
    spec.parameters = {"max"};
  }
  return makePointwise(op, spec);
}

void host::addPointwiseKernels(HostExecutor &executor) {
  addArithmetic(executor);
  addComparisons(executor);
  addTernary(executor);
  addKernel(executor, {.op = "clamp", .make = makeClamp, .isElementwise = true});
  addKernel(executor, {.op = "clamp_", .make = makeClamp});
  addKernel(executor, {.op = "accumulate_", .make = makeAccumulate});
}
