//===- OpCasesUnary.cpp - Creation, copies and ops of one operand ---------===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static std::vector<OpCase> shapeCases(const Attributes &attributes) {
  std::vector<OpCase> cases;
  for (auto [name, shape] :
       std::initializer_list<std::pair<const char *, Shape>>{{"a matrix", {5, 7}},
                                                             {"0-d", {}},
                                                             {"one element", {1}},
                                                             {"empty", {3, 0}},
                                                             {"six dimensions", {2, 3, 1, 2, 3, 2}},
                                                             {"more than a block", {5, 1030}}}) {
    cases.push_back({name, {}, attributes});
    cases.back().attributes.push_back({"shape", ints(shape)});
  }
  return cases;
}

static std::vector<OpCase> arangeCases() {
  return {{"an end", {}, {{"end", 10}}},
          {"a start", {}, {{"start", 3}, {"end", 9}}},
          {"a step", {}, {{"start", 2}, {"end", 100}, {"step", 7}}},
          {"downwards", {}, {{"start", 20}, {"end", 1}, {"step", -3}}},
          {"one element", {}, {{"end", 1}}},
          {"empty", {}, {{"start", 3}, {"end", 3}}},
          floatsOnly({"fractions", {}, {{"start", 0.5}, {"end", 3.0}, {"step", 0.25}}}),
          {"more than a block", {}, {{"end", 1030}}}};
}

static std::vector<OpCase> eyeCases() {
  return {{"square", {}, {{"n", 5}}},
          {"wide", {}, {{"n", 3}, {"m", 7}}},
          {"high", {}, {{"n", 40}, {"m", 33}}},
          {"one element", {}, {{"n", 1}}},
          {"empty", {}, {{"n", 0}, {"m", 3}}}};
}

void rondo::addCreationCases(OpCaseTable &table) {
  OpCases full{
      "full", all, [] {
        std::vector<OpCase> cases = shapeCases({{"value", 3}});
        for (double value : {0.3, notANumber, -inf})
          cases.push_back(floatsOnly({"a float", {}, {{"value", value}, {"shape", ints({3, 5})}}}));
        return cases;
      }};
  OpCases empty{"empty", all, [] { return shapeCases({}); }, OpCheck::Nothing};
  OpCases arange{"arange", numbers, arangeCases}, eye{"eye", all, eyeCases};
  for (OpCases *cases : {&full, &empty, &arange, &eye}) {
    cases->takesDType = cases->takesDevice = true;
    table.push_back(std::move(*cases));
  }
  OpCases constant{"constant", {DType::F64}, [] {
                     return std::vector<OpCase>{{"one element", {}, {{"value", 7}}},
                                                {"a float", {}, {{"value", 1.5}}},
                                                {"a bool", {}, {{"value", true}}}};
                   }};
  constant.lacks = "empty: it makes one number";
  table.push_back(constant);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static std::vector<OpCase> shapesOf(Arg (*make)(Shape, uint64_t), const Attributes &attributes) {
  return {{"a matrix", {make({5, 7}, 1)}, attributes},
          {"0-d", {make({}, 1)}, attributes},
          {"one element", {make({1}, 1)}, attributes},
          {"empty", {make({0, 3}, 1)}, attributes},
          {"five dimensions", {make({2, 3, 1, 2, 3}, 1)}, attributes},
          {"six dimensions", {make({2, 3, 2, 2, 1, 2}, 1)}, attributes},
          {"more than a block", {make({5, 1030}, 1)}, attributes},
          large({"many rows", {make({70000, 3}, 1)}, attributes})};
}
static OpCase specials(Attributes attributes = {}) {
  return floatsOnly({"nan and infinities",
                     {given({11}, {notANumber, inf, -inf, 0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5})},
                     std::move(attributes)});
}

static std::vector<OpCase> castCases() {
  std::vector<OpCase> cases;
  for (DType to : all) {
    auto name = dtypeName(to).str();
    for (OpCase &test : shapesOf(random, {{"dtype", to}}))
      if (test.isLarge ? to == DType::F32 : true) {
        test.name += " to " + name;
        cases.push_back(std::move(test));
      }
    cases.push_back(specials({{"dtype", to}}));
  }
  cases.push_back({"empty", {random({0, 3})}, {{"dtype", DType::F32}}});
  cases.push_back({"one element", {random({1})}, {{"dtype", DType::F32}}});
  return cases;
}

static std::vector<OpCase> copyCases() {
  std::vector<OpCase> cases{
      {"matrices", {random({5, 7}, 1), random({5, 7}, 2)}},
      {"a row", {random({5, 7}, 1), random({7}, 2)}},
      {"a 0-d tensor", {random({5, 7}, 1), random({}, 2)}},
      {"0-d tensors", {random({}, 1), random({}, 2)}},
      {"one element", {random({1}, 1), random({1}, 2)}},
      {"empty", {random({0, 3}, 1), random({3}, 2)}},
      {"six dimensions", {random({2, 3, 1, 2, 3, 2}, 1), random({3, 1, 2, 1, 2}, 2)}},
      large({"many rows", {random({70000, 3}, 1), random({3}, 2)}})};
  for (DType from : all)
    cases.push_back({"from " + dtypeName(from).str(),
                     {random({5, 7}, 1), fixed(from, given({7}, {0, 1, 3, 2, 0, 7, 1}))}});
  return cases;
}

static std::vector<OpCase> fillCases() {
  return {{"an attribute", {random({5, 7})}, {{"scalar", 5}}},
          floatsOnly({"a fraction", {random({5, 7})}, {{"scalar", 0.3}}}),
          {"an i64 scalar", {random({5, 7}), hostScalar(int64_t(7))}},
          {"an f64 scalar", {random({5, 7}), hostScalar(6.5)}},
          {"a bool scalar", {random({5, 7}), hostScalar(true)}},
          {"a 0-d tensor", {random({5, 7}), random({}, 2)}},
          {"a 0-d f64", {random({5, 7}), fixed(DType::F64, given({}, {2.5}))}},
          {"0-d", {random({})}, {{"scalar", 5}}},
          {"one element", {random({1})}, {{"scalar", 5}}},
          {"empty", {random({0, 3})}, {{"scalar", 5}}},
          {"six dimensions", {random({2, 3, 1, 2, 3, 2})}, {{"scalar", 2}}},
          large({"many rows", {random({70000, 3})}, {{"scalar", 2}}})};
}

static void addCopies(OpCaseTable &table) {
  table.push_back({"clone", all, [] {
                     return shapesOf(random, {}) + shapesOf(random, {{"contiguous", false}}) +
                            std::vector{specials()};
                   }});
  table.push_back({"contiguous", all, [] { return shapesOf(random, {}); }});
  OpCases toDevice{"to_device", all, [] { return shapesOf(random, {}); }};
  toDevice.takesDevice = true;
  table.push_back(toDevice);
  table.push_back({"cast", all, castCases});
  table.push_back({"copy_", all, copyCases});
  table.push_back({"fill_", all, fillCases});
  table.push_back({"zero_", all, [] { return shapesOf(random, {}); }});
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void rondo::addUnaryCases(OpCaseTable &table) {
  addCopies(table);
  auto add = [&](const char *op, const std::vector<DType> &dtypes, Arg (*make)(Shape, uint64_t),
                 std::vector<Attributes> options = {{}}) {
    table.push_back({op, dtypes, [make, options] {
                       std::vector<OpCase> cases;
                       for (const Attributes &attributes : options)
                         cases =
                             cases + shapesOf(make, attributes) + std::vector{specials(attributes)};
                       return cases;
                     }});
  };
  for (const char *op : {"neg", "floor", "ceil", "round", "relu", "relu_"})
    add(op, numbers, random);
  for (const char *op : {"abs", "sign", "exp", "expm1", "sin", "cos", "tanh", "sigmoid", "erf",
                         "logical_not", "isnan", "isinf"})
    add(op, all, random);
  for (const char *op : {"log", "log1p", "sqrt", "rsqrt", "reciprocal"})
    add(op, all, positive);
  add("sqrt_", floats, positive);
  add("silu", floats, random);
  add("bitwise_not", integral, random);
  add("softplus", floats, random, {{}, {{"beta", 2.0}, {"threshold", 1.0}}});
  add("leaky_relu", floats, random, {{}, {{"slope", 0.2}}});
  add("gelu", floats, random, {{}, {{"approximate", "tanh"}}});
  for (const char *op : {"clamp", "clamp_"}) {
    add(op, numbers, random, {{{"min", -1}}, {{"max", 1}}, {{"min", -1}, {"max", 1}}});
    auto integerCases = table.back().cases;
    table.back().cases = [integerCases] {
      std::vector<OpCase> cases = integerCases();
      cases.push_back(
          floatsOnly({"fractions as bounds", {random({5, 7})}, {{"min", -0.3}, {"max", 0.7}}}));
      cases.push_back(floatsOnly(
          {"bounds in the wrong order", {random({5, 7})}, {{"min", 0.5}, {"max", -0.5}}}));
      cases.push_back(floatsOnly({"nan as a bound", {random({5, 7})}, {{"min", notANumber}}}));
      return cases;
    };
  }
}
