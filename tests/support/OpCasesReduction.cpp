//===- OpCasesReduction.cpp - Reductions, running sums and softmax --------===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

using Make = Arg (*)(Shape, uint64_t);

/// About 1: products of many stay about 1.
static Arg nearOne(Shape shape, uint64_t seed) {
  Arg arg = random(std::move(shape), seed);
  for (double &value : arg.values)
    value = 1 + value / 64;
  return arg;
}
/// Few different numbers, so that many are equal.
static Arg withTies(Shape shape, uint64_t seed) {
  Arg arg = random(std::move(shape), seed);
  for (double &value : arg.values)
    value = std::round(value * 2) / 2;
  return arg;
}
/// Mostly zeros.
static Arg sparse(Shape shape, uint64_t seed) {
  Arg arg = random(std::move(shape), seed);
  for (double &value : arg.values)
    value = value > 1.75 ? value : 0;
  return arg;
}

static Attributes with(Attributes attributes, Attributes more) {
  return attributes + more;
}

/// Rows of nan and infinities.
static OpCase specialRows(Attributes attributes) {
  return floatsOnly(
      {"nan and infinities",
       {given({6, 4}, {1, notANumber, 2, 3,  inf, 1,   notANumber, 2,  1,    inf,  2,    -1,
                       1, -inf,       2, -1, 1,   inf, -inf,       -1, -inf, -inf, -inf, -inf})},
       std::move(attributes)});
}

/// Rows of every size at which kernels change how they work.
static std::vector<OpCase> rowCases(Make make, const Attributes &rows) {
  std::vector<OpCase> cases;
  for (int64_t size : {1, 5, 32, 33, 257, 1030, 5000})
    cases.push_back({"rows of " + std::to_string(size), {make({3, size}, size)}, rows});
  cases.push_back(large({"many rows", {make({70000, 3}, 1)}, rows}));
  return cases;
}

/// Over `dims`, in every way to name them.
static std::vector<OpCase> dimsCases(Make make, const Attributes &more, bool hasEmpty = true) {
  auto dims = [&](Shape list, bool keepdim = false) {
    return with({{"dims", ints(list)}, {"keepdim", keepdim}}, more);
  };
  std::vector<OpCase> cases = rowCases(make, dims({1}));
  cases = cases +
          std::vector<OpCase>{{"all", {make({5, 7}, 1)}, more},
                              {"all, kept", {make({5, 7}, 1)}, dims({}, true)},
                              {"columns", {make({6, 33}, 1)}, dims({0})},
                              {"long columns", {make({1030, 5}, 1)}, dims({-2}, true)},
                              {"the middle", {make({4, 37, 3}, 1)}, dims({1})},
                              {"the outer ones", {make({4, 5, 6}, 1)}, dims({0, -1}, true)},
                              {"not in order", {make({4, 5, 6}, 1)}, dims({2, 0})},
                              {"six dimensions", {make({2, 3, 2, 2, 3, 2}, 1)}, dims({1, 3, 5})},
                              {"many elements", {make({130, 257}, 1)}, more},
                              {"0-d", {make({}, 1)}, more},
                              {"0-d, a dim", {make({}, 1)}, dims({-1}, true)},
                              {"one element", {make({1}, 1)}, dims({0})},
                              {"empty", {make({0, 3}, 1)}, dims({1})}};
  if (hasEmpty) {
    cases.push_back({"no elements", {make({3, 0}, 1)}, dims({1})});
    cases.push_back({"no elements at all", {make({0}, 1)}, more});
  }
  return cases;
}

/// A few of them, for an attribute that changes what is computed but not how it is reduced.
static std::vector<OpCase> someDimsCases(Make make, const Attributes &more) {
  std::vector<OpCase> cases;
  for (OpCase &test : dimsCases(make, more))
    for (const char *name : {"rows of 257", "long columns", "the outer ones", "one element",
                             "empty", "no elements", "all"})
      if (test.name == name)
        cases.push_back(std::move(test));
  return cases;
}

/// With the dtype of the result given.
static std::vector<OpCase> dtypeCases(Make make, std::vector<DType> dtypes) {
  std::vector<OpCase> cases;
  for (DType dtype : dtypes)
    cases.push_back({"in " + dtypeName(dtype).str(),
                     {make({5, 33}, 1)},
                     {{"dims", ints({1})}, {"dtype", dtype}}});
  return cases;
}

/// `var` of one element is nan, which is tested, too.
static std::vector<OpCase> varCases() {
  std::vector<OpCase> cases = dimsCases(random, {});
  for (Attribute correction : {Attribute(0), Attribute(2.5)})
    cases = cases + someDimsCases(random, {{"correction", correction}});
  cases.push_back(specialRows({{"dims", ints({1})}}));
  Arg shifted = random({4, 257});
  for (double &value : shifted.values)
    value += 64;
  cases.push_back({"far from 0", {shifted}, {{"dims", ints({1})}}});
  for (OpCase &test : cases)
    test.leastNorm = 1e-2; // equal elements have no variance
  return cases;
}

static std::vector<OpCase> normCases() {
  std::vector<OpCase> cases = dimsCases(random, {});
  for (Attribute p : {Attribute(2), Attribute(1), Attribute(0), Attribute(3), Attribute(0.5),
                      Attribute(inf), Attribute(-inf)}) {
    cases = cases + someDimsCases(random, {{"p", p}});
    cases.push_back(specialRows({{"p", p}, {"dims", ints({1})}}));
  }
  return cases;
}

static std::vector<OpCase> argCases() {
  auto along = [](int64_t dim, bool keepdim = false) {
    return Attributes{{"dim", dim}, {"keepdim", keepdim}};
  };
  std::vector<OpCase> cases = rowCases(random, along(1)) + rowCases(withTies, along(-1));
  return cases + std::vector<OpCase>{{"all", {random({5, 7})}},
                                     {"all, kept", {withTies({5, 7}, 1)}, {{"keepdim", true}}},
                                     {"columns", {withTies({33, 6}, 1)}, along(0, true)},
                                     {"the middle", {withTies({4, 37, 3}, 1)}, along(1)},
                                     {"six dimensions", {random({2, 3, 2, 2, 3, 2})}, along(-3)},
                                     {"many elements", {withTies({300, 257}, 1)}},
                                     {"0-d", {random({})}},
                                     {"one element", {random({1})}, along(0)},
                                     {"empty", {random({0, 3})}, along(1)},
                                     specialRows(along(1))};
}

/// Along a dimension, a row at a time.
static std::vector<OpCase> alongCases(Make make, const Attributes &more = {}) {
  auto along = [&](int64_t dim) { return with({{"dim", dim}}, more); };
  return rowCases(make, along(-1)) +
         std::vector<OpCase>{{"columns", {make({33, 6}, 1)}, along(0)},
                             {"the middle", {make({4, 37, 3}, 1)}, along(1)},
                             {"six dimensions", {make({2, 3, 2, 2, 3, 2}, 1)}, along(-3)},
                             {"0-d", {make({}, 1)}, along(0)},
                             {"one element", {make({1}, 1)}, along(0)},
                             {"empty", {make({0, 3}, 1)}, along(1)},
                             {"empty rows", {make({3, 0}, 1)}, along(1)}};
}

static std::vector<OpCase> cumsumCases() {
  std::vector<OpCase> cases = alongCases(positive);
  for (DType dtype : {DType::F32, DType::F64, DType::I32})
    cases.push_back(
        {"in " + dtypeName(dtype).str(), {positive({5, 33})}, {{"dim", 1}, {"dtype", dtype}}});
  cases.push_back(specialRows({{"dim", 1}}));
  return cases;
}

void rondo::addReductionCases(OpCaseTable &table) {
  AttributeInit rows{"dims", ints({1})};
  table.push_back({"sum", all, [rows] {
                     return dimsCases(positive, {}) +
                            dtypeCases(positive, {DType::F32, DType::F64, DType::I64, DType::I32}) +
                            std::vector{specialRows({rows})};
                   }});
  table.push_back({"prod", all, [rows] {
                     return dimsCases(nearOne, {}) + dtypeCases(nearOne, {DType::F64}) +
                            std::vector{specialRows({rows})};
                   }});
  table.push_back({"mean", floats, [rows] {
                     return dimsCases(positive, {}) +
                            dtypeCases(positive, {DType::F32, DType::F64}) +
                            std::vector{specialRows({rows})};
                   }});
  table.push_back({"var", floats, varCases});
  table.push_back({"norm", floats, normCases});
  table.push_back({"logsumexp", all,
                   [rows] { return dimsCases(random, {}) + std::vector{specialRows({rows})}; }});
  for (const char *op : {"amax", "amin"})
    table.push_back({op, all, [rows] {
                       return dimsCases(random, {}, /*hasEmpty=*/false) +
                              std::vector{specialRows({rows})};
                     }});
  for (const char *op : {"any", "all"})
    table.push_back({op, all, [rows] {
                       return dimsCases(random, {}) + dimsCases(sparse, {}) +
                              std::vector{specialRows({rows})};
                     }});
  for (const char *op : {"argmax", "argmin"})
    table.push_back({op, all, argCases});
  table.push_back({"cumsum", all, cumsumCases});
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

static std::vector<OpCase> softmaxCases() {
  std::vector<OpCase> cases = alongCases(random);
  for (DType dtype : {DType::F32, DType::F64})
    cases.push_back(
        {"in " + dtypeName(dtype).str(), {random({5, 33})}, {{"dim", 1}, {"dtype", dtype}}});
  Arg far = random({3, 33});
  for (double &value : far.values)
    value = value * 50 + 1000;
  cases.push_back({"far from 0", {far}, {{"dim", -1}}});
  cases.push_back(specialRows({{"dim", 1}}));
  return cases;
}

/// The result of `forward`, then a gradient in front of it.
static std::vector<OpCase> softmaxGradientCases(const char *forward) {
  std::vector<OpCase> cases = alongCases(random);
  for (OpCase &test : cases) {
    Arg out = test.args[0];
    out.values = hostResults(forward, test.args, test.attributes)[0];
    test.args = {random(out.shape, 7), out};
    test.leastNorm = 1e-2; // one element has no gradient
  }
  return cases;
}

void rondo::addSoftmaxCases(OpCaseTable &table) {
  for (const char *op : {"softmax", "log_softmax", "safe_softmax"})
    table.push_back({op, floats, softmaxCases});
  for (const char *op : {"softmax", "log_softmax"})
    table.push_back(
        {std::string(op) + "_backward", floats, [op] { return softmaxGradientCases(op); }});
}
