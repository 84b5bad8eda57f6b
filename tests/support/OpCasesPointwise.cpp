//===- OpCasesPointwise.cpp - Ops of two and three operands ---------------===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

/// notANumber, infinities, zeros of both signs, and some numbers.
static const std::vector<double> specialValues{notANumber, inf, -inf, 0.0, -0.0, 1, -1, 2.5};

/// Every special value beside every other.
static OpCase specialPairs(Attributes attributes) {
  std::vector<double> first;
  for (double value : specialValues)
    first.insert(first.end(), specialValues.size(), value);
  return floatsOnly({"nan and infinities",
                     {given({8, 8}, first), given({8}, specialValues)},
                     std::move(attributes)});
}

/// The cases with numbers away from 0 as first operands, whose powers f16 holds.
static std::vector<OpCase> withBases(std::vector<OpCase> cases) {
  for (OpCase &test : cases)
    if (test.args[0].kind == ArgKind::Element)
      for (double &value : test.args[0].values)
        value = std::isfinite(value) && value != 0 ? value + std::copysign(0.25, value) : value;
  return cases;
}

/// What broadcasts to the shape of the first operand.
static std::vector<OpCase> fittingCases(const Attributes &attributes) {
  return {
      {"matrices", {random({5, 7}, 1), random({5, 7}, 2)}, attributes},
      {"a row", {random({5, 7}, 1), random({7}, 2)}, attributes},
      {"a column", {random({3, 5, 7}, 1), random({5, 1}, 2)}, attributes},
      {"a 0-d tensor", {random({4, 3}, 1), random({}, 2)}, attributes},
      {"0-d tensors", {random({}, 1), random({}, 2)}, attributes},
      {"one element", {random({1}, 1), random({1}, 2)}, attributes},
      {"empty", {random({3, 0}, 1), random({3, 1}, 2)}, attributes},
      {"six dimensions", {random({2, 3, 1, 2, 3, 2}, 1), random({3, 1, 2, 1, 2}, 2)}, attributes},
      {"more than a block", {random({5, 1030}, 1), random({5, 1030}, 2)}, attributes},
      large({"many rows", {random({70000, 3}, 1), random({3}, 2)}, attributes})};
}

/// The second operand as a number that is no tensor. Integers are such that every dtype holds the
/// result.
static std::vector<OpCase> numberCases(const Attributes &attributes) {
  auto with = [&](AttributeInit scalar) {
    Attributes more = attributes;
    more.push_back(scalar);
    return more;
  };
  std::vector<OpCase> cases{
      {"an integer attribute", {random({5, 7})}, with({"scalar", 3})},
      {"an i64 scalar", {random({5, 7}), hostScalar(int64_t(2))}, attributes},
      floatsOnly({"a float attribute", {random({5, 7})}, with({"scalar", 1.5})}),
      floatsOnly({"an f64 scalar", {random({5, 7}), hostScalar(-0.75)}, attributes})};
  return cases;
}

/// What an op that makes a new tensor can do besides.
static std::vector<OpCase> freshCases(const Attributes &attributes) {
  return {{"both broadcast", {random({4, 1, 5}, 1), random({3, 1}, 2)}, attributes},
          {"a 0-d tensor first", {random({}, 1), random({4, 3}, 2)}, attributes}};
}
/// Operands of several dtypes.
static std::vector<OpCase> mixedCases(const Attributes &attributes) {
  return {{"with f32", {random({4, 3}, 1), fixed(DType::F32, random({4, 3}, 2))}, attributes},
          {"with f64", {fixed(DType::F64, random({4, 3}, 1)), random({3}, 2)}, attributes},
          {"with i32", {random({4, 3}, 1), fixed(DType::I32, given({3}, {1, -2, 3}))}, attributes},
          {"with a 0-d f64", {random({4, 3}, 1), fixed(DType::F64, given({}, {0.5}))}, attributes}};
}

/// Integers next to host scalars that neither f32 nor f64 holds.
static std::vector<OpCase> largeIntegerCases() {
  auto around = [](double power) {
    return fixed(DType::I64, given({2, 2}, {power, power + 2, -power, 3}));
  };
  return {{"an i64 scalar of 25 bits", {around(0x1p24), hostScalar((int64_t(1) << 24) + 1)}},
          {"an i64 scalar of 54 bits", {around(0x1p53), hostScalar((int64_t(1) << 53) + 1)}}};
}

static std::vector<OpCase> binaryCases(Attributes attributes = {}, bool mixes = true) {
  std::vector<OpCase> cases =
      fittingCases(attributes) + numberCases(attributes) + freshCases(attributes);
  if (mixes) {
    cases = cases + mixedCases(attributes);
    cases.push_back(specialPairs(attributes));
    cases.push_back(floatsOnly({"a bool scalar", {random({5, 7}), hostScalar(true)}, attributes}));
  }
  return cases;
}
static std::vector<OpCase> inPlaceCases(Attributes attributes = {}) {
  std::vector<OpCase> cases = fittingCases(attributes) + numberCases(attributes);
  cases.push_back(floatsOnly(
      {"a wider operand", {random({4, 3}, 1), fixed(DType::F64, random({4, 3}, 2))}, attributes}));
  cases.push_back(specialPairs(attributes));
  return cases;
}

static void addBinary(OpCaseTable &table) {
  for (const char *op : {"add", "sub", "rsub"})
    table.push_back({op, op == std::string("add") ? all : numbers, [] {
                       return binaryCases() + fittingCases({{"alpha", 2}}) +
                              numberCases({{"alpha", -3}}) + largeIntegerCases() +
                              std::vector{floatsOnly({"a fraction as alpha",
                                                      {random({5, 7}, 1), random({5, 7}, 2)},
                                                      {{"alpha", 0.3}}})};
                     }});
  for (const char *op : {"mul", "div", "maximum", "minimum", "atan2", "eq", "ne", "lt", "le", "gt",
                         "ge", "logical_and", "logical_or", "logical_xor"})
    table.push_back({op, all, [] { return binaryCases() + largeIntegerCases(); }});
  table.push_back({"pow", numbers, [] { return withBases(binaryCases()); }});
  table.push_back({"remainder", numbers, [] { return binaryCases(); }});
  for (const char *op : {"bitwise_and", "bitwise_or", "bitwise_xor"})
    table.push_back({op, integral, [] { return binaryCases({}, /*mixes=*/false); }});
  for (const char *op : {"add_", "sub_"})
    table.push_back(
        {op, numbers, [] {
           return inPlaceCases() + fittingCases({{"alpha", 2}}) + numberCases({{"alpha", -3}});
         }});
  table.push_back({"mul_", numbers, [] { return inPlaceCases(); }});
  table.push_back({"pow_", numbers, [] { return withBases(inPlaceCases()); }});
  table.push_back({"div_", floats, [] { return inPlaceCases(); }});
}

//===----------------------------------------------------------------------===//
// Three operands
//===----------------------------------------------------------------------===//

static std::vector<OpCase> whereCases() {
  return {
      {"matrices", {mask({5, 7}), random({5, 7}, 2), random({5, 7}, 3)}},
      {"all broadcast", {mask({4, 1, 1}), random({3, 1}, 2), random({5}, 3)}},
      {"0-d tensors", {mask({}), random({}, 2), random({}, 3)}},
      {"one element", {mask({1}), random({1}, 2), random({1}, 3)}},
      {"empty", {mask({0, 3}), random({3}, 2), random({1, 1}, 3)}},
      {"six dimensions",
       {mask({2, 3, 1, 2, 1, 2}), random({3, 2, 1, 3, 1}, 2), random({2, 1, 1, 1, 3, 1}, 3)}},
      {"with f32", {mask({4, 3}), random({4, 3}, 2), fixed(DType::F32, random({3}, 3))}},
      {"with a 0-d f64", {mask({4, 3}), random({4, 3}, 2), fixed(DType::F64, given({}, {0.5}))}},
      floatsOnly(
          {"nan and infinities", {mask({8, 1}, 5), given({8}, specialValues), random({8, 8}, 3)}}),
      {"more than a block", {mask({1030}), random({5, 1030}, 2), random({5, 1}, 3)}},
      large({"many rows", {mask({70000, 1}), random({3}, 2), random({70000, 3}, 3)}})};
}

static std::vector<OpCase> maskedFillCases() {
  return {{"an attribute", {random({5, 7}), mask({5, 7})}, {{"scalar", 3}}},
          floatsOnly({"minus infinity", {random({5, 7}), mask({7})}, {{"scalar", -inf}}}),
          floatsOnly({"an f64 scalar", {random({5, 7}), mask({5, 1}), hostScalar(0.75)}}),
          {"an i64 scalar", {random({5, 7}), mask({5, 1}), hostScalar(int64_t(3))}},
          {"a bool scalar", {random({5, 7}), mask({5, 1}), hostScalar(true)}},
          {"a 0-d tensor", {random({2, 5, 7}), mask({5, 1}), random({}, 3)}},
          {"0-d tensors", {random({}), mask({}, 3)}, {{"scalar", 1}}},
          {"one element", {random({1}), mask({1}, 3)}, {{"scalar", 1}}},
          {"empty", {random({0, 3}), mask({1, 3})}, {{"scalar", 1}}},
          {"six dimensions", {random({2, 3, 1, 2, 3, 2}), mask({3, 1, 2, 1, 2})}, {{"scalar", 2}}},
          {"more than a block", {random({5, 1030}), mask({1030})}, {{"scalar", 2}}},
          large({"many rows", {random({70000, 3}), mask({70000, 1})}, {{"scalar", 2}}})};
}

/// lerp takes one dtype.
static std::vector<OpCase> lerpCases() {
  return {{"matrices", {random({5, 7}, 1), random({5, 7}, 2), random({5, 7}, 3)}},
          {"weights that broadcast", {random({4, 5, 7}, 1), random({5, 7}, 2), random({7}, 3)}},
          {"a small weight", {random({5, 7}, 1), random({7}, 2)}, {{"scalar", 0.25}}},
          {"a large weight", {random({5, 7}, 1), random({5, 1}, 2)}, {{"scalar", 0.75}}},
          {"an f64 scalar", {random({5, 7}, 1), random({5, 7}, 2), hostScalar(0.3)}},
          {"a 0-d tensor", {random({5, 7}, 1), random({5, 7}, 2), random({}, 3)}},
          {"0-d tensors", {random({}, 1), random({}, 2), random({}, 3)}},
          {"one element", {random({1}, 1), random({1}, 2), random({1}, 3)}},
          {"empty", {random({0, 3}, 1), random({3}, 2), random({1, 3}, 3)}},
          {"six dimensions",
           {random({2, 3, 1, 2, 3, 2}, 1), random({3, 1, 2, 1, 2}, 2), random({3, 1}, 3)}},
          {"nan and infinities",
           {given({8, 8}, randomValues(64, 1)), given({8, 1}, specialValues), random({8}, 3)}},
          large({"many rows", {random({70000, 3}, 1), random({3}, 2)}, {{"scalar", 0.1}}})};
}

/// addcmul; with `second` the last operand of addcdiv, which is not near 0.
static std::vector<OpCase> fusedCases(Arg (*second)(Shape, uint64_t)) {
  return {
      {"matrices", {random({5, 7}, 1), random({5, 7}, 2), second({5, 7}, 3)}},
      {"a factor", {random({5, 7}, 1), random({5, 7}, 2), second({5, 7}, 3)}, {{"value", -2}}},
      floatsOnly(
          {"a fraction", {random({5, 7}, 1), random({7}, 2), second({5, 1}, 3)}, {{"value", 0.3}}}),
      {"0-d tensors", {random({}, 1), random({}, 2), second({}, 3)}},
      {"one element", {random({1}, 1), random({1}, 2), second({1}, 3)}},
      {"empty", {random({0, 3}, 1), random({3}, 2), second({1, 3}, 3)}},
      {"six dimensions",
       {random({2, 3, 1, 2, 3, 2}, 1), random({3, 1, 2, 1, 2}, 2), second({3, 1}, 3)}},
      {"more than a block", {random({5, 1030}, 1), random({1030}, 2), second({5, 1}, 3)}},
      large({"many rows", {random({70000, 3}, 1), random({3}, 2), second({70000, 1}, 3)}})};
}

/// The flag of accumulate_.
static Arg flag(bool isSet) {
  return {{}, {isSet ? 1.0 : 0.0}, ArgKind::Mask};
}

static std::vector<OpCase> accumulateCases() {
  std::vector<OpCase> cases;
  for (bool first : {false, true}) {
    const std::string name = first ? "overwriting: " : "";
    const std::vector<OpCase> more = {
        {name + "matrices", {random({5, 7}, 1), random({5, 7}, 2), flag(first)}},
        {name + "0-d tensors", {random({}, 1), random({}, 2), flag(first)}},
        {name + "one element", {random({1}, 1), random({1}, 2), flag(first)}},
        {name + "empty", {random({0, 3}, 1), random({0, 3}, 2), flag(first)}},
        {name + "six dimensions",
         {random({2, 3, 1, 2, 3, 2}, 1), random({2, 3, 1, 2, 3, 2}, 2), flag(first)}},
        {name + "with f32", {random({4, 3}, 1), fixed(DType::F32, random({4, 3}, 2)), flag(first)}},
        floatsOnly({name + "nan and infinities",
                    {given({8}, specialValues), random({8}, 2), flag(first)}}),
        {name + "more than a block", {random({5, 1031}, 1), random({5, 1031}, 2), flag(first)}},
        large({name + "many rows", {random({70000, 3}, 1), random({70000, 3}, 2), flag(first)}})};
    cases = cases + more;
  }
  return cases;
}

static void addTernary(OpCaseTable &table) {
  table.push_back({"where", all, whereCases});
  table.push_back({"masked_fill", all, maskedFillCases});
  table.push_back({"masked_fill_", all, maskedFillCases});
  for (const char *op : {"lerp", "lerp_"})
    table.push_back({op, floats, lerpCases});
  table.push_back({"accumulate_", floats, accumulateCases});
  for (const char *op : {"addcmul", "addcmul_"})
    table.push_back({op, numbers, [] { return fusedCases(random); }});
  for (const char *op : {"addcdiv", "addcdiv_"})
    table.push_back({op, floats, [] { return fusedCases(positive); }});
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static std::vector<OpCase> gradientCases(std::vector<Attributes> options) {
  std::vector<OpCase> cases;
  for (const Attributes &attributes : options)
    cases = cases + fittingCases(attributes) + std::vector{specialPairs(attributes)};
  return cases;
}

static void addGradients(OpCaseTable &table) {
  table.push_back({"threshold_backward", numbers, [] {
                     return gradientCases({{}, {{"threshold", 1}}});
                   }});
  table.push_back({"leaky_relu_backward", floats, [] {
                     return gradientCases({{}, {{"slope", 0.2}}});
                   }});
  table.push_back({"gelu_backward", floats, [] {
                     return gradientCases({{}, {{"approximate", "tanh"}}});
                   }});
  for (const char *op : {"silu_backward", "tanh_backward", "sigmoid_backward"})
    table.push_back({op, floats, [] { return gradientCases({{}}); }});
}

void rondo::addPointwiseCases(OpCaseTable &table) {
  addBinary(table);
  addTernary(table);
  addGradients(table);
}
