//===- OpCasesIndex.cpp - Reading and updating by index, sorting ----------===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

static Attributes along(int64_t dim) {
  return {{"dim", dim}};
}
/// Out of range on both sides, and in it.
static Arg badIndex(Shape shape) {
  return indices(std::move(shape), {3, -1, 1, 0x1p62, -4, 0});
}
static OpCase inNarrowIndices(OpCase test) {
  for (Arg &arg : test.args)
    if (arg.kind == ArgKind::Index)
      arg = fixed(DType::I32, arg);
  test.name += ", i32 indices";
  return test;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static std::vector<OpCase> gatherCases() {
  OpCase rows{"rows", {random({4, 6}), randomIndex({9, 6}, 0, 4)}, along(0)};
  return {rows,
          inNarrowIndices(rows),
          {"columns", {random({4, 6}), randomIndex({3, 5}, 0, 6)}, along(1)},
          {"a negative dim", {random({4, 6, 3}), randomIndex({4, 33, 3}, 0, 6)}, along(-2)},
          {"out of range", {random({2, 3}), badIndex({1, 6})}, along(1)},
          {"0-d", {random({}), indices({}, {0})}, along(0)},
          {"one element", {random({1}), indices({1}, {0})}, along(0)},
          {"empty", {random({4, 6}), indices({0, 6}, {})}, along(0)},
          {"six dimensions",
           {random({2, 3, 1, 2, 3, 2}), randomIndex({2, 3, 1, 2, 4, 2}, 0, 3)},
           along(4)},
          {"more than a block", {random({5, 300}), randomIndex({5, 1030}, 0, 300)}, along(1)},
          large({"many rows", {random({70000, 3}), randomIndex({70000, 2}, 0, 3)}, along(1)})};
}

static std::vector<OpCase> indexSelectCases() {
  OpCase rows{"rows", {random({4, 6}), randomIndex({9}, 0, 4)}, along(0)};
  return {rows,
          inNarrowIndices(rows),
          {"columns", {random({4, 6}), randomIndex({5}, 0, 6)}, along(-1)},
          {"the middle", {random({4, 6, 3}), randomIndex({33}, 0, 6)}, along(1)},
          {"a 0-d index", {random({4, 6}), indices({}, {2})}, along(0)},
          {"out of range", {random({2, 3}), badIndex({6})}, along(1)},
          {"one element", {random({1}), indices({1}, {0})}, along(0)},
          {"empty", {random({4, 6}), indices({0}, {})}, along(0)},
          {"six dimensions", {random({2, 3, 1, 2, 3, 2}), randomIndex({4}, 0, 3)}, along(1)},
          large({"many rows", {random({300, 3}), randomIndex({70000}, 0, 300)}, along(0)})};
}

static std::vector<OpCase> indexCases() {
  Arg cube = random({4, 5, 6});
  OpCase two{"two dimensions", {cube, randomIndex({7, 1}, -4, 4, 2), randomIndex({3}, -5, 5, 3)}};
  return {
      two,
      inNarrowIndices(two),
      {"the first dimension", {cube, randomIndex({2, 9}, -4, 4)}},
      {"the last dimension", {cube, noArg, noArg, randomIndex({7}, -6, 6)}},
      {"neighbours", {cube, noArg, randomIndex({7}, 0, 5), randomIndex({7}, 0, 6, 2)}},
      {"no neighbours", {cube, randomIndex({7}, 0, 4), noArg, randomIndex({2, 1}, 0, 6, 2)}},
      {"all dimensions",
       {cube, randomIndex({33}, 0, 4), randomIndex({33}, 0, 5), randomIndex({}, 0, 6)}},
      {"out of range", {random({2, 3}), noArg, badIndex({6})}},
      {"out of range of nothing", {random({0, 2}), indices({1}, {0})}},
      {"one element", {random({1}), indices({1}, {-1})}},
      {"empty", {cube, indices({0}, {})}},
      {"six dimensions",
       {random({2, 3, 1, 2, 3, 2}), noArg, randomIndex({4}, 0, 3), noArg, randomIndex({4}, 0, 2)}},
      large({"many rows", {random({300, 3}), randomIndex({70000}, 0, 300)}})};
}

static std::vector<OpCase> embeddingCases() {
  OpCase rows{"rows", {random({9, 6}), randomIndex({4, 3}, 0, 9)}};
  return {rows,
          inNarrowIndices(rows),
          {"padding", {random({9, 6}), randomIndex({33}, 0, 9)}, {{"padding_idx", 3}}},
          {"a 0-d index", {random({9, 6}), indices({}, {2})}},
          {"out of range", {random({3, 2}), badIndex({6})}},
          {"one element", {random({1, 1}), indices({1}, {0})}},
          {"empty", {random({9, 6}), indices({0}, {})}},
          {"five dimensions", {random({9, 3}), randomIndex({2, 3, 1, 2}, 0, 9)}},
          {"long rows", {random({9, 1030}), randomIndex({5}, 0, 9)}},
          large({"many rows", {random({300, 3}), randomIndex({70000}, 0, 300)}})};
}

static std::vector<OpCase> embeddingBackwardCases() {
  auto rows = [](int64_t count, Attributes more = {}) {
    return Attributes{{"num_weights", count}} + more;
  };
  OpCase plain{"rows", {random({4, 3, 6}), randomIndex({4, 3}, 0, 9)}, rows(9)};
  return {plain,
          inNarrowIndices(plain),
          {"padding", {random({33, 6}), randomIndex({33}, 0, 9)}, rows(9, {{"padding_idx", 3}})},
          {"by frequency",
           {random({33, 6}), randomIndex({33}, 0, 9)},
           rows(9, {{"scale_grad_by_freq", true}})},
          {"by frequency, padding",
           {random({33, 6}), randomIndex({33}, 0, 9)},
           rows(9, {{"scale_grad_by_freq", true}, {"padding_idx", 0}})},
          {"a 0-d index", {random({6}), indices({}, {2})}, rows(4)},
          {"out of range", {random({6, 2}), badIndex({6})}, rows(3)},
          {"one element", {random({1, 1}), indices({1}, {0})}, rows(1)},
          {"empty", {random({0, 6}), indices({0}, {})}, rows(3)},
          {"all to one row",
           {positive({1030, 3}), indices({1030}, std::vector<double>(1030, 1))},
           rows(2)},
          {"long rows", {random({5, 1030}), randomIndex({5}, 0, 3)}, rows(3)},
          large({"many rows", {positive({70000, 3}), randomIndex({70000}, 0, 300)}, rows(300)})};
}

static std::vector<OpCase> oneHotCases() {
  auto classes = [](int64_t count) { return Attributes{{"classes", count}}; };
  OpCase rows{"rows", {randomIndex({4, 3}, 0, 5)}, classes(5)};
  return {rows,
          inNarrowIndices(rows),
          {"0-d", {indices({}, {1})}, classes(3)},
          {"out of range", {badIndex({6})}, classes(3)},
          {"one element", {indices({1}, {0})}, classes(1)},
          {"no classes", {indices({2}, {0, 1})}, classes(0)},
          {"empty", {indices({0}, {})}, classes(3)},
          {"five dimensions", {randomIndex({2, 3, 1, 2, 3}, 0, 4)}, classes(4)},
          large({"many rows", {randomIndex({70000}, 0, 3)}, classes(3)})};
}

static void addReading(OpCaseTable &table) {
  table.push_back({"gather", all, gatherCases});
  table.push_back({"index_select", all, indexSelectCases});
  table.push_back({"index", all, indexCases});
  table.push_back({"embedding", all, embeddingCases});
  table.push_back({"embedding_backward", floats, embeddingBackwardCases});
  table.push_back({"one_hot", {DType::I64}, oneHotCases});
}

//===----------------------------------------------------------------------===//
// Updating
//===----------------------------------------------------------------------===//

/// Of two writes to one place the later one stays.
static std::vector<OpCase> scatterCases() {
  OpCase rows{"rows", {random({9, 6}, 1), randomIndex({4, 6}, 0, 9), random({4, 6}, 2)}, along(0)};
  return {rows,
          inNarrowIndices(rows),
          {"twice to one place",
           {random({2, 3}, 1), indices({2, 4}, {2, 0, 2, 2, 1, 1, 1, 0}), random({2, 4}, 2)},
           along(1)},
          {"a larger source",
           {random({4, 6}, 1), randomIndex({3, 5}, 0, 6), random({5, 7}, 2)},
           along(-1)},
          {"the middle",
           {random({4, 6, 3}, 1), randomIndex({4, 33, 3}, 0, 6), random({4, 33, 3}, 2)},
           along(1)},
          {"out of range", {random({2, 3}, 1), badIndex({1, 6}), random({1, 6}, 2)}, along(1)},
          {"0-d", {random({}, 1), indices({}, {0}), random({}, 2)}, along(0)},
          {"one element", {random({1}, 1), indices({1}, {0}), random({1}, 2)}, along(0)},
          {"empty", {random({4, 6}, 1), indices({0, 6}, {}), random({2, 6}, 2)}, along(0)},
          {"six dimensions",
           {random({2, 3, 1, 2, 3, 2}, 1), randomIndex({2, 3, 1, 2, 4, 2}, 0, 3),
            random({2, 3, 1, 2, 4, 2}, 2)},
           along(4)},
          {"many to few places",
           {positive({3, 7}, 1), randomIndex({3, 1030}, 0, 7), positive({3, 1030}, 2)},
           along(1)},
          large({"many rows",
                 {random({70000, 3}, 1), randomIndex({70000, 2}, 0, 3), random({70000, 2}, 2)},
                 along(1)})};
}

static std::vector<OpCase> indexUpdateCases(const Attributes &more) {
  auto dim = [&](int64_t number) { return along(number) + more; };
  OpCase rows{"rows", {random({9, 6}, 1), randomIndex({4}, 0, 9), random({4, 6}, 2)}, dim(0)};
  return {rows,
          inNarrowIndices(rows),
          {"twice to one place",
           {random({2, 3}, 1), indices({4}, {2, 0, 2, 2}), random({2, 4}, 2)},
           dim(-1)},
          {"the middle",
           {random({4, 6, 3}, 1), randomIndex({33}, 0, 6), random({4, 33, 3}, 2)},
           dim(1)},
          {"a 0-d index", {random({2, 3}, 1), indices({}, {2}), random({2, 1}, 2)}, dim(1)},
          {"out of range", {random({2, 3}, 1), badIndex({6}), random({2, 6}, 2)}, dim(1)},
          {"one element", {random({1}, 1), indices({1}, {0}), random({1}, 2)}, dim(0)},
          {"empty", {random({4, 6}, 1), indices({0}, {}), random({0, 6}, 2)}, dim(0)},
          {"six dimensions",
           {random({2, 3, 1, 2, 3, 2}, 1), randomIndex({4}, 0, 3), random({2, 4, 1, 2, 3, 2}, 2)},
           dim(1)},
          {"many to few places",
           {positive({7, 3}, 1), randomIndex({1030}, 0, 7), positive({1030, 3}, 2)},
           dim(0)},
          large({"many rows",
                 {positive({300, 3}, 1), randomIndex({70000}, 0, 300), positive({70000, 3}, 2)},
                 dim(0)})};
}

static std::vector<OpCase> indexPutCases(bool accumulate) {
  Attributes how{{"accumulate", accumulate}};
  Arg cube = random({4, 5, 6});
  OpCase two{"two dimensions",
             {cube, random({7, 3, 6}, 2), randomIndex({7, 1}, -4, 4, 3), randomIndex({3}, -5, 5)},
             how};
  return {two,
          inNarrowIndices(two),
          {"values that broadcast", {cube, random({5, 1}, 2), randomIndex({3}, 0, 4)}, how},
          {"one value", {cube, random({}, 2), noArg, noArg, randomIndex({7}, -6, 6)}, how},
          {"neighbours",
           {cube, random({4, 7}, 2), noArg, randomIndex({7}, 0, 5), randomIndex({7}, 0, 6, 2)},
           how},
          {"no neighbours",
           {cube, random({7, 5}, 2), randomIndex({7}, 0, 4), noArg, randomIndex({7}, 0, 6, 2)},
           how},
          {"all dimensions",
           {cube, random({33}, 2), randomIndex({33}, 0, 4), randomIndex({33}, 0, 5),
            randomIndex({}, 0, 6)},
           how},
          {"out of range", {random({2, 3}), random({2, 6}, 2), noArg, badIndex({6})}, how},
          {"one element", {random({1}), random({1}, 2), indices({1}, {-1})}, how},
          {"empty", {cube, random({0, 5, 6}, 2), indices({0}, {})}, how},
          {"many to few places",
           {positive({7, 3}, 1), positive({1030, 3}, 2), randomIndex({1030}, 0, 7)},
           how},
          large({"many rows",
                 {positive({300, 3}, 1), positive({70000, 3}, 2), randomIndex({70000}, 0, 300)},
                 how})};
}

static std::vector<OpCase> selectScatterCases() {
  auto at = [](int64_t dim, int64_t number) { return Attributes{{"dim", dim}, {"index", number}}; };
  return {{"a row", {random({4, 6}, 1), random({6}, 2)}, at(0, 2)},
          {"a column from the end", {random({4, 6}, 1), random({4}, 2)}, at(-1, -1)},
          {"the middle", {random({4, 6, 3}, 1), random({4, 3}, 2)}, at(1, 5)},
          {"one element", {random({1}, 1), random({}, 2)}, at(0, 0)},
          {"empty", {random({3, 0}, 1), random({0}, 2)}, at(0, 1)},
          {"six dimensions", {random({2, 3, 1, 2, 3, 2}, 1), random({2, 3, 1, 2, 2}, 2)}, at(4, 1)},
          large({"many rows", {random({70000, 3}, 1), random({70000}, 2)}, at(1, 1)})};
}

static std::vector<OpCase> sliceScatterCases() {
  auto range = [](int64_t dim, int64_t start, int64_t end, int64_t step) {
    return Attributes{{"dim", dim}, {"start", start}, {"end", end}, {"step", step}};
  };
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  return {
      {"rows", {random({6, 4}, 1), random({3, 4}, 2)}, range(0, 1, 4, 1)},
      {"every second column", {random({4, 7}, 1), random({4, 3}, 2)}, range(1, 1, most, 2)},
      {"from the end", {random({6, 4}, 1), random({2, 4}, 2)}, range(0, -2, most, 1)},
      {"a huge step", {random({6, 4}, 1), random({1, 4}, 2)}, range(0, -9, 5, most)},
      {"nothing", {random({6, 4}, 1), random({0, 4}, 2)}, range(0, 9, most, 1)},
      {"one element", {random({1}, 1), random({1}, 2)}, range(0, 0, most, 1)},
      {"empty", {random({0, 3}, 1), random({0, 2}, 2)}, range(1, 1, 3, 1)},
      {"six dimensions",
       {random({2, 3, 1, 2, 5, 2}, 1), random({2, 3, 1, 2, 3, 2}, 2)},
       range(-2, 0, 5, 2)},
      large({"many rows", {random({70000, 3}, 1), random({35000, 3}, 2)}, range(0, 1, most, 2)})};
}

static void addUpdating(OpCaseTable &table) {
  for (const char *op : {"scatter", "scatter_add"})
    for (const char *suffix : {"", "_"})
      table.push_back({std::string(op) + suffix, all, scatterCases});
  for (const char *suffix : {"", "_"}) {
    table.push_back({std::string("index_copy") + suffix, all, [] { return indexUpdateCases({}); }});
    table.push_back(
        {std::string("index_add") + suffix, numbers, [] {
           std::vector<OpCase> cases = indexUpdateCases({}) + indexUpdateCases({{"alpha", 2}});
           cases.push_back(
               floatsOnly({"a fraction as alpha",
                           {random({9, 6}, 1), randomIndex({4}, 0, 9), random({4, 6}, 2)},
                           {{"dim", 0}, {"alpha", 0.3}}}));
           return cases;
         }});
    table.push_back({std::string("index_put") + suffix, all,
                     [] { return indexPutCases(false) + indexPutCases(true); }});
  }
  table.push_back({"select_scatter", all, selectScatterCases});
  table.push_back({"slice_scatter", all, sliceScatterCases});
}

//===----------------------------------------------------------------------===//
// Sorting
//===----------------------------------------------------------------------===//

/// Many equal numbers: they keep their order.
static Arg withTies(Shape shape) {
  Arg arg = random(std::move(shape), 5);
  for (double &value : arg.values)
    value = std::round(value * 2) / 2;
  return arg;
}
static OpCase specialRows(Attributes attributes) {
  return floatsOnly(
      {"nan and infinities",
       {given({2, 6}, {2, notANumber, 1, -0.0, inf, -inf, notANumber, 0, notANumber, -1, 1, inf})},
       std::move(attributes)});
}

/// Of rows that are as long as some kernel sorts in one way, and of longer ones.
static constexpr int64_t sortedSizes[] = {1,   2,   5,    32,   33,   128, 129,
                                          512, 513, 1030, 2048, 2049, 5000};

static std::vector<OpCase> sortCases() {
  std::vector<OpCase> cases;
  for (bool descending : {false, true}) {
    auto order = [&](int64_t dim) { return Attributes{{"dim", dim}, {"descending", descending}}; };
    for (int64_t size : sortedSizes)
      cases.push_back({"rows of " + std::to_string(size), {withTies({3, size})}, order(-1)});
    cases =
        cases + std::vector<OpCase>{{"different numbers", {random({3, 100})}, order(1)},
                                    {"columns", {withTies({33, 6})}, order(0)},
                                    {"the middle", {withTies({4, 37, 3})}, order(1)},
                                    {"six dimensions", {withTies({2, 3, 2, 2, 3, 2})}, order(-2)},
                                    {"0-d", {random({})}, order(-1)},
                                    {"one element", {random({1})}, order(0)},
                                    {"empty", {random({0, 3})}, order(1)},
                                    {"empty rows", {random({3, 0})}, order(1)},
                                    specialRows(order(1)),
                                    large({"many rows", {withTies({70000, 3})}, order(1)})};
  }
  return cases;
}

static std::vector<OpCase> topkCases() {
  std::vector<OpCase> cases;
  for (bool largest : {true, false}) {
    auto best = [&](int64_t k, int64_t dim) {
      return Attributes{{"k", k}, {"dim", dim}, {"largest", largest}};
    };
    for (int64_t size : sortedSizes)
      cases.push_back({"rows of " + std::to_string(size),
                       {withTies({3, size})},
                       best(std::min<int64_t>(size, 7), -1)});
    cases =
        cases + std::vector<OpCase>{{"everything", {withTies({3, 20})}, best(20, 1)},
                                    {"nothing", {random({3, 20})}, best(0, 1)},
                                    {"many", {random({2, 1030})}, best(600, 1)},
                                    {"columns", {withTies({33, 6})}, best(4, 0)},
                                    {"the middle", {withTies({4, 37, 3})}, best(5, 1)},
                                    {"six dimensions", {withTies({2, 3, 2, 2, 3, 2})}, best(2, -2)},
                                    {"one element", {random({1})}, best(1, 0)},
                                    {"empty", {random({0, 3})}, best(2, 1)},
                                    specialRows(best(4, 1)),
                                    large({"many rows", {withTies({70000, 3})}, best(2, 1)})};
  }
  return cases;
}

void rondo::addIndexCases(OpCaseTable &table) {
  addReading(table);
  addUpdating(table);
  table.push_back({"sort", all, sortCases});
  table.push_back({"topk", all, topkCases});
}
