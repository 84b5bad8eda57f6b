//===- OpCasesMatmul.cpp - Products of matrices ---------------------------===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

/// Rows, columns and inner sizes of products: at and beside the sizes of tiles.
static const Shape sizes[] = {{3, 4, 5},    {1, 1, 7},     {7, 1, 1},     {1, 9, 1},   {16, 16, 16},
                              {33, 17, 65}, {64, 128, 32}, {129, 70, 33}, {5, 66, 257}};

static std::string nameOf(const Shape &mnk) {
  return std::to_string(mnk[0]) + "x" + std::to_string(mnk[1]) + "x" + std::to_string(mnk[2]);
}

static std::vector<OpCase> mmCases() {
  std::vector<OpCase> cases{{"one element", {random({1, 1}, 1), random({1, 1}, 2)}},
                            {"empty", {random({0, 3}, 1), random({3, 4}, 2)}},
                            {"no columns", {random({4, 3}, 1), random({3, 0}, 2)}},
                            {"nothing to sum", {random({2, 0}, 1), random({0, 3}, 2)}},
                            large({"many rows", {random({70000, 3}, 1), random({3, 4}, 2)}})};
  for (const Shape &mnk : sizes)
    cases.push_back({nameOf(mnk), {random({mnk[0], mnk[2]}, 1), random({mnk[2], mnk[1]}, 2)}});
  return cases;
}

static std::vector<OpCase> bmmCases() {
  std::vector<OpCase> cases{
      {"one element", {random({1, 1, 1}, 1), random({1, 1, 1}, 2)}},
      {"empty", {random({0, 2, 3}, 1), random({0, 3, 4}, 2)}},
      {"nothing to sum", {random({2, 2, 0}, 1), random({2, 0, 3}, 2)}},
      large({"many batches", {random({70000, 1, 2}, 1), random({70000, 2, 1}, 2)}})};
  for (const Shape &mnk : sizes)
    cases.push_back(
        {nameOf(mnk), {random({3, mnk[0], mnk[2]}, 1), random({3, mnk[2], mnk[1]}, 2)}});
  return cases;
}

static std::vector<OpCase> matmulCases() {
  std::vector<std::pair<Shape, Shape>> shapes{{{5}, {5}},
                                              {{3, 5}, {5}},
                                              {{5}, {5, 3}},
                                              {{4, 3, 5}, {5}},
                                              {{5}, {4, 5, 3}},
                                              {{3, 5}, {5, 7}},
                                              {{4, 3, 5}, {5, 7}},
                                              {{3, 5}, {4, 5, 7}},
                                              {{4, 3, 5}, {4, 5, 7}},
                                              {{2, 1, 3, 5}, {4, 5, 7}},
                                              {{2, 1, 1, 3, 2, 5}, {2, 3, 1, 5, 4}},
                                              {{257}, {257}},
                                              {{33, 1030}, {1030}},
                                              {{2, 3, 33, 65}, {2, 3, 65, 17}},
                                              {{0}, {0}},
                                              {{2, 0}, {0}}};
  std::vector<OpCase> cases{{"one element", {random({1}, 1), random({1}, 2)}},
                            {"empty", {random({0, 3}, 1), random({3}, 2)}}};
  for (const auto &[a, b] : shapes)
    cases.push_back({ints(a).str() + " by " + ints(b).str(), {random(a, 1), random(b, 2)}});
  return cases;
}

/// With every factor of alpha and beta; `batch` of matrices.
static std::vector<OpCase> biasCases(const Shape &batch) {
  auto matrix = [&](Shape shape, uint64_t seed) { return random(batch + shape, seed); };
  auto product = [&](std::string name, Arg bias, Shape mnk, Attributes attributes = {}) {
    return OpCase{std::move(name),
                  {std::move(bias), matrix({mnk[0], mnk[2]}, 1), matrix({mnk[2], mnk[1]}, 2)},
                  std::move(attributes)};
  };
  std::vector<OpCase> cases{
      product("a full bias", matrix({3, 4}, 3), {3, 4, 5}),
      product("a column", random({3, 1}, 3), {3, 4, 5}),
      product("a 0-d bias", random({}, 3), {3, 4, 5}),
      product("factors", random({4}, 3), {3, 4, 5}, {{"alpha", 2}, {"beta", 3}}),
      product("no bias", given({4}, std::vector<double>(4, 1)), {3, 4, 5}, {{"beta", 0}}),
      floatsOnly(product("nan in a bias that is not read",
                         given({4}, std::vector<double>(4, notANumber)), {3, 4, 5}, {{"beta", 0}})),
      floatsOnly(
          product("fractions", random({4}, 3), {33, 4, 17}, {{"alpha", 0.3}, {"beta", -0.5}})),
      product("nothing to sum", random({4}, 3), {3, 4, 0}, {{"beta", 2}}),
      product("one element", random({1}, 3), {1, 1, 1}),
      product("empty", random({4}, 3), {0, 4, 5})};
  for (const Shape &mnk : sizes)
    cases.push_back(product(nameOf(mnk), random({mnk[1]}, 3), mnk));
  return cases;
}

static std::vector<OpCase> linearCases() {
  std::vector<OpCase> cases{
      {"a vector", {random({5}, 1), random({4, 5}, 2), random({4}, 3)}},
      {"no bias", {random({3, 5}, 1), random({4, 5}, 2)}},
      {"batches", {random({2, 3, 5}, 1), random({4, 5}, 2), random({4}, 3)}},
      {"six dimensions", {random({2, 1, 3, 1, 2, 5}, 1), random({4, 5}, 2), random({4}, 3)}},
      {"nothing to sum", {random({3, 0}, 1), random({4, 0}, 2), random({4}, 3)}},
      {"one element", {random({1, 1}, 1), random({1, 1}, 2), random({1}, 3)}},
      {"empty", {random({0, 5}, 1), random({4, 5}, 2), random({4}, 3)}}};
  for (const Shape &mnk : sizes)
    cases.push_back(
        {nameOf(mnk),
         {random({mnk[0], mnk[2]}, 1), random({mnk[1], mnk[2]}, 2), random({mnk[1]}, 3)}});
  return cases;
}

void rondo::addMatmulCases(OpCaseTable &table) {
  table.push_back({"mm", numbers, mmCases});
  table.push_back({"bmm", numbers, bmmCases});
  table.push_back({"matmul", numbers, matmulCases});
  table.push_back({"addmm", numbers, [] { return biasCases({}); }});
  table.push_back({"baddbmm", numbers, [] { return biasCases({3}); }});
  table.push_back({"linear", numbers, linearCases});
}
