//===- OpCasesLoss.cpp - Losses -------------------------------------------===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

static constexpr const char *reductions[] = {"none", "mean", "sum"};

namespace {
/// Scores [C], [N, C] or [N, C, d..] and classes; -1 is ignored.
struct LossSizes {
  const char *name;
  Shape scores;
  Arg target;

  int64_t classes() const { return scores[scores.size() > 1 ? 1 : 0]; }
  /// The shape of the losses that are not reduced.
  Shape losses() const {
    Shape shape = scores;
    shape.erase(shape.begin() + (scores.size() > 1 ? 1 : 0));
    return shape;
  }
};
} // namespace

static std::vector<LossSizes> lossSizes() {
  return {{"a vector", {4}, indices({}, {2})},
          {"rows", {3, 4}, indices({3}, {1, -1, 3})},
          {"inner dimensions", {2, 3, 4}, randomIndex({2, 4}, -1, 3)},
          {"six dimensions", {2, 3, 2, 1, 2, 2}, randomIndex({2, 2, 1, 2, 2}, -1, 3)},
          {"1030 classes", {5, 1030}, randomIndex({5}, 0, 1030)},
          {"1030 rows", {1030, 5}, randomIndex({1030}, -1, 5)},
          {"one element", {1, 1}, indices({1}, {0})},
          {"everything ignored", {2, 3}, indices({2}, {-1, -1})},
          {"empty", {0, 3}, indices({0}, {})},
          {"i32 classes", {3, 4}, fixed(DType::I32, indices({3}, {1, -1, 3}))},
          {"classes out of range", {3, 2}, indices({3}, {1, 2, -7})},
          {"many rows", {70000, 3}, randomIndex({70000}, 0, 3)}};
}

/// An incoming gradient for losses of this shape.
static Arg incoming(const Shape &losses, llvm::StringRef reduction) {
  return positive(reduction == "none" ? losses : Shape(), 7);
}

/// Calls `add(name, sizes, weight, attributes)` for all sizes, reductions, with weights and
/// without.
static void
forEachLoss(llvm::function_ref<void(std::string, const LossSizes &, Arg, Attributes)> add) {
  for (const LossSizes &sizes : lossSizes())
    for (llvm::StringRef reduction : reductions)
      for (bool weighted : {false, true})
        add((sizes.name + (", " + reduction) + (weighted ? ", weighted" : "")).str(), sizes,
            weighted ? positive({sizes.classes()}, 2) : noArg,
            {{"reduction", reduction}, {"ignore_index", -1}});
}

static OpCase caseOf(std::string name, const LossSizes &sizes, std::vector<Arg> args,
                     Attributes attributes) {
  OpCase test{std::move(name), std::move(args), std::move(attributes)};
  test.isLarge = sizes.scores[0] == 70000;
  test.leastNorm = 1e-2; // one class has no loss
  if (test.name == "one element, mean" || test.name == "empty, sum")
    test.name = test.name.substr(0, test.name.find(','));
  return test;
}

static std::vector<OpCase> nllCases() {
  std::vector<OpCase> cases;
  forEachLoss([&](std::string name, const LossSizes &sizes, Arg weight, Attributes attributes) {
    cases.push_back(caseOf(std::move(name), sizes, {random(sizes.scores, 1), sizes.target, weight},
                           attributes));
  });
  return cases;
}

static std::vector<OpCase> nllGradientCases() {
  std::vector<OpCase> cases;
  forEachLoss([&](std::string name, const LossSizes &sizes, Arg weight, Attributes attributes) {
    Arg logp = random(sizes.scores, 1);
    auto forward = hostResults("nll_loss", {logp, sizes.target, weight}, attributes);
    Arg grad = incoming(sizes.losses(), *attributes[0].second.asString());
    cases.push_back(caseOf(std::move(name), sizes,
                           {grad, logp, sizes.target, weight, given({}, forward[1])}, attributes));
  });
  return cases;
}

/// Targets that are probabilities.
static std::vector<LossSizes> probabilitySizes() {
  std::vector<LossSizes> sizes;
  for (const Shape &shape : {Shape{4}, Shape{3, 5}, Shape{2, 3, 4}, Shape{5, 1030}, Shape{1030, 5}})
    sizes.push_back({"probabilities", shape, positive(shape, 3)});
  return sizes;
}

/// Of classes and of probabilities; with `wantsGradient` of the backward.
static std::vector<OpCase> crossEntropyCases(bool wantsGradient) {
  std::vector<OpCase> cases;
  auto add = [&](std::string name, const LossSizes &sizes, Arg weight, Attributes attributes) {
    std::vector<Arg> args{random(sizes.scores, 1), sizes.target, weight};
    if (wantsGradient)
      args.insert(args.begin(), incoming(sizes.losses(), *attributes[0].second.asString()));
    cases.push_back(caseOf(std::move(name), sizes, args, attributes));
  };
  forEachLoss(add);
  forEachLoss([&](std::string name, const LossSizes &sizes, Arg weight, Attributes attributes) {
    if (sizes.scores.size() > 1 && countOf(sizes.scores) < 30)
      for (double smoothing : {0.3, 1.0})
        add(name + ", smoothed", sizes, weight,
            attributes + Attributes{{"label_smoothing", smoothing}});
  });
  for (const LossSizes &sizes : probabilitySizes())
    for (llvm::StringRef reduction : reductions)
      for (double smoothing : {0.0, 0.3})
        for (bool weighted : {false, true}) {
          if (countOf(sizes.scores) > 1000 && !weighted)
            continue;
          add("probabilities of " + ints(sizes.scores).str(), sizes,
              weighted ? positive({sizes.classes()}, 2) : noArg,
              {{"reduction", reduction}, {"label_smoothing", smoothing}});
        }
  return cases;
}

static std::vector<OpCase> mseCases(bool wantsGradient) {
  std::vector<OpCase> cases;
  for (llvm::StringRef reduction : reductions) {
    auto add = [&](std::string name, Shape shape, bool isLarge = false) {
      std::vector<Arg> args{random(shape, 1), random(shape, 2)};
      if (wantsGradient)
        args.insert(args.begin(), incoming(shape, reduction));
      cases.push_back({std::move(name), args, {{"reduction", reduction}}});
      cases.back().isLarge = isLarge;
    };
    add("rows", {3, 5});
    add("0-d", {});
    add("one element", {1});
    add("empty", {0, 3});
    add("six dimensions", {2, 3, 1, 2, 3, 2});
    add("more than a block", {5, 1030});
    add("many rows", {70000, 3}, true);
    if (!wantsGradient)
      cases.push_back({"both broadcast",
                       {random({4, 1, 5}, 1), random({3, 1}, 2)},
                       {{"reduction", reduction}}});
  }
  return cases;
}

void rondo::addLossCases(OpCaseTable &table) {
  table.push_back({"nll_loss", floats, nllCases});
  table.push_back({"nll_loss_backward", floats, nllGradientCases});
  table.push_back({"cross_entropy", floats, [] { return crossEntropyCases(false); }});
  table.push_back({"cross_entropy_backward", floats, [] { return crossEntropyCases(true); }});
  table.push_back({"mse_loss", floats, [] { return mseCases(false); }});
  table.push_back({"mse_loss_backward", floats, [] { return mseCases(true); }});
}
