//===- OpCasesDataMovement.cpp - Joining, repeating, cutting --------------===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

static std::vector<OpCase> catCases() {
  Arg x = random({3, 5}, 1), y = random({3, 2}, 2), z = random({4, 5}, 3);
  std::vector<Arg> many;
  for (int64_t i = 0; i < 40; ++i)
    many.push_back(random({2, i % 5}, i));
  return {{"columns", {x, y, x}, {{"dim", 1}}},
          {"rows", {x, z}},
          {"a negative dim", {x, z}, {{"dim", -2}}},
          {"one operand", {x}, {{"dim", 1}}},
          {"some without elements", {random({0}), x, random({0, 5})}},
          {"empty", {random({0, 5}), random({0, 5})}},
          {"one element", {random({1})}},
          {"many operands", many, {{"dim", 1}}},
          {"the middle", {random({2, 3, 4}, 1), random({2, 5, 4}, 2)}, {{"dim", 1}}},
          {"six dimensions",
           {random({2, 1, 2, 3, 1, 2}, 1), random({2, 1, 2, 2, 1, 2}, 2)},
           {{"dim", 3}}},
          {"with f32", {x, fixed(DType::F32, random({3, 2}, 4))}, {{"dim", 1}}},
          {"with u8", {x, fixed(DType::U8, given({3, 1}, {0, 200, 7}))}, {{"dim", 1}}},
          large({"many rows", {random({70000, 2}, 1), random({70000, 1}, 2)}, {{"dim", 1}}})};
}

static std::vector<OpCase> stackCases() {
  Arg x = random({3, 5}, 1), y = random({3, 5}, 2);
  return {
      {"in front", {x, y}},
      {"in the middle", {x, y, x}, {{"dim", 1}}},
      {"last", {x, y}, {{"dim", -1}}},
      {"one operand", {x}, {{"dim", 2}}},
      {"0-d", {random({}, 1), random({}, 2)}},
      {"one element", {random({1})}},
      {"empty", {random({0, 3}), random({0, 3})}, {{"dim", 1}}},
      {"five dimensions", {random({2, 3, 1, 2, 2}, 1), random({2, 3, 1, 2, 2}, 2)}, {{"dim", 2}}},
      large({"many rows", {random({70000}, 1), random({70000}, 2)}, {{"dim", 1}}})};
}

static std::vector<OpCase> repeatCases() {
  return {{"rows", {random({3, 5})}, {{"repeats", ints({2, 1})}}},
          {"both", {random({3, 5})}, {{"repeats", ints({2, 3})}}},
          {"new dimensions", {random({3, 5})}, {{"repeats", ints({2, 3, 1, 2})}}},
          {"0-d", {random({})}, {{"repeats", ints({3})}}},
          {"0-d as it is", {random({})}, {{"repeats", ints({})}}},
          {"one element", {random({1})}, {{"repeats", ints({1})}}},
          {"never", {random({3, 5})}, {{"repeats", ints({0, 2})}}},
          {"empty", {random({0, 3})}, {{"repeats", ints({2, 2})}}},
          {"six dimensions", {random({2, 1, 3, 1, 2})}, {{"repeats", ints({2, 1, 2, 1, 3, 2})}}},
          large({"many rows", {random({700, 3})}, {{"repeats", ints({100, 1})}}})};
}

static std::vector<OpCase> flipCases() {
  return {{"rows", {random({3, 5})}, {{"dims", ints({0})}}},
          {"columns", {random({3, 5})}, {{"dims", ints({-1})}}},
          {"both", {random({3, 5})}, {{"dims", ints({1, 0})}}},
          {"none", {random({3, 5})}, {{"dims", ints({})}}},
          {"0-d", {random({})}, {{"dims", ints({0})}}},
          {"one element", {random({1})}, {{"dims", ints({0})}}},
          {"empty", {random({0, 3})}, {{"dims", ints({0, 1})}}},
          {"six dimensions", {random({2, 3, 1, 2, 3, 2})}, {{"dims", ints({1, 3, -1})}}},
          large({"many rows", {random({70000, 3})}, {{"dims", ints({0})}}})};
}

static std::vector<OpCase> rollCases() {
  auto along = [](Shape shifts, Shape dims) {
    return Attributes{{"shifts", ints(shifts)}, {"dims", ints(dims)}};
  };
  return {{"forwards", {random({3, 5})}, along({1}, {1})},
          {"backwards, further than the size", {random({3, 5})}, along({-9}, {-1})},
          {"both", {random({3, 5})}, along({2, -1}, {0, 1})},
          {"as a vector", {random({3, 5})}, along({4}, {})},
          {"as a vector, backwards", {random({2, 3, 5})}, along({-31}, {})},
          {"0-d", {random({})}, along({1}, {})},
          {"one element", {random({1})}, along({3}, {0})},
          {"empty", {random({0, 3})}, along({1}, {0})},
          {"six dimensions", {random({2, 3, 1, 2, 3, 2})}, along({1, 2, 1}, {1, 4, 5})},
          large({"many rows", {random({70000, 3})}, along({12345}, {0})})};
}

static std::vector<OpCase> padCases() {
  auto pads = [](Shape list, Attribute value = 3) {
    return Attributes{{"pads", ints(list)}, {"value", value}};
  };
  return {{"around", {random({3, 5})}, pads({1, 2, 2, 1})},
          {"the last", {random({3, 5})}, pads({2, 0})},
          {"cut off", {random({3, 5})}, pads({-1, 1, 0, -2})},
          {"nothing left", {random({3, 5})}, pads({-6, 3})},
          {"nothing", {random({3, 5})}, pads({})},
          floatsOnly({"a fraction", {random({3, 5})}, pads({1, 1}, 0.3)}),
          floatsOnly({"minus infinity", {random({3, 5})}, pads({1, 1}, -inf)}),
          {"one element", {random({1})}, pads({1, 1})},
          {"empty", {random({0, 3})}, pads({1, 1})},
          {"rows of nothing", {random({0, 3})}, pads({1, 1, 2, 0})},
          {"six dimensions", {random({2, 3, 1, 2, 3, 2})}, pads({1, 0, 0, 1, 1, 1, 0, 0, 2, -1})},
          large({"many rows", {random({70000, 3})}, pads({1, 0})})};
}

static std::vector<OpCase> triangleCases() {
  std::vector<OpCase> cases{{"batches", {random({3, 4, 5})}, {{"diagonal", 1}}},
                            {"one element", {random({1, 1})}},
                            {"empty", {random({2, 0})}},
                            {"six dimensions", {random({2, 3, 1, 2, 3, 4})}, {{"diagonal", -1}}},
                            {"more than a block", {random({40, 1030})}, {{"diagonal", 17}}},
                            large({"many rows", {random({70000, 3})}, {{"diagonal", -69000}}})};
  for (int64_t diagonal :
       {int64_t(0), int64_t(2), int64_t(-3), int64_t(-9), int64_t(9),
        std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
    cases.push_back(
        {"diagonal " + std::to_string(diagonal), {random({5, 7})}, {{"diagonal", diagonal}}});
  return cases;
}

void rondo::addDataMovementCases(OpCaseTable &table) {
  table.push_back({"cat", all, catCases});
  table.push_back({"stack", all, stackCases});
  table.push_back({"repeat", all, repeatCases});
  table.push_back({"flip", all, flipCases});
  table.push_back({"roll", all, rollCases});
  table.push_back({"pad", all, padCases});
  table.push_back({"tril", all, triangleCases});
  table.push_back({"triu", all, triangleCases});
}
