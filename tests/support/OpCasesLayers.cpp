//===- OpCasesLayers.cpp - Normalisation and attention --------------------===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

namespace {
struct NormSizes {
  const char *name;
  Shape shape, normalized;
};
} // namespace

static const NormSizes normSizes[] = {{"rows of 5", {3, 5}, {5}},
                                      {"rows of 33", {4, 33}, {33}},
                                      {"rows of 257", {3, 257}, {257}},
                                      {"rows of 1030", {3, 1030}, {1030}},
                                      {"rows of 5000", {2, 5000}, {5000}},
                                      {"one row", {7}, {7}},
                                      {"rows in batches", {2, 3, 4}, {4}},
                                      {"two dimensions", {2, 3, 4}, {3, 4}},
                                      {"six dimensions", {2, 3, 1, 2, 3, 2}, {3, 2}},
                                      {"columns longer than a block", {1030, 3}, {3}},
                                      {"one element", {1, 1}, {1}},
                                      {"empty", {0, 4}, {4}},
                                      {"many rows", {70000, 3}, {3}}};

/// Layer norm if `centred`, else RMS norm: with its weights or without.
static std::vector<OpCase> normCases(bool centred) {
  std::vector<OpCase> cases;
  auto add = [&](std::string name, const NormSizes &sizes, std::vector<Arg> parameters,
                 double eps) {
    cases.push_back({std::move(name),
                     std::vector{random(sizes.shape, 1)} + parameters,
                     {{"normalized_shape", ints(sizes.normalized)}, {"eps", eps}}});
    cases.back().isLarge = sizes.shape[0] == 70000;
    cases.back().leastNorm = 1e-2; // centred, one element is 0
  };
  for (const NormSizes &sizes : normSizes) {
    std::vector<Arg> parameters{random(sizes.normalized, 2), random(sizes.normalized, 3)};
    parameters.resize(centred ? 2 : 1);
    add(sizes.name, sizes, parameters, 1e-2);
  }
  add("no weights", normSizes[0], {}, 1e-5);
  if (centred) {
    add("weights alone", normSizes[1], {random({33}, 2)}, 1e-5);
    add("a bias alone", normSizes[1], {noArg, random({33}, 3)}, 1e-5);
  }
  return cases;
}

/// For every mask of gradients, in the order of `NormSizes` and of the masks.
static std::vector<OpCase> normGradientCases(bool centred) {
  const char *forward = centred ? "layer_norm" : "rms_norm";
  std::vector<OpCase> cases;
  auto add = [&](std::string name, const NormSizes &sizes, bool weighted, Attributes more) {
    Attributes attributes{{"normalized_shape", ints(sizes.normalized)}};
    Arg x = random(sizes.shape, 1);
    std::vector<Arg> parameters;
    if (weighted)
      parameters = {random(sizes.normalized, 2), random(sizes.normalized, 3)};
    parameters.resize(weighted ? (centred ? 2 : 1) : 0);
    std::vector<std::vector<double>> results =
        hostResults(forward, std::vector{x} + parameters, attributes);
    Shape rows = sizes.shape;
    std::fill(rows.end() - sizes.normalized.size(), rows.end(), 1);
    std::vector<Arg> args{random(sizes.shape, 4), x};
    for (size_t i = 1; i < results.size(); ++i)
      args.push_back(given(rows, results[i], ArgKind::Statistic));
    cases.push_back({std::move(name), args + parameters, attributes + more});
    cases.back().isLarge = sizes.shape[0] == 70000;
    cases.back().leastNorm = 1; // centred, one element has no gradient
  };
  for (const NormSizes &sizes : normSizes)
    add(sizes.name, sizes, true, {});
  unsigned numGradients = centred ? 3 : 2;
  for (unsigned bits = 0; bits < 1u << numGradients; ++bits) {
    std::vector<bool> mask;
    for (unsigned i = 0; i < numGradients; ++i)
      mask.push_back(bits >> i & 1);
    add("mask " + std::to_string(bits), normSizes[1], true, {{"mask", bools(mask)}});
  }
  std::vector<bool> onlyX(numGradients, false);
  onlyX[0] = true;
  add("no weights", normSizes[1], false, {{"mask", bools(onlyX)}});
  return cases;
}

void rondo::addNormalizationCases(OpCaseTable &table) {
  for (bool centred : {true, false}) {
    std::string op = centred ? "layer_norm" : "rms_norm";
    table.push_back({op, floats, [centred] { return normCases(centred); }});
    table.push_back({op + "_backward", floats, [centred] { return normGradientCases(centred); }});
  }
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// Queries [batch.., l, e], keys [batch.., s, e], values [batch.., s, v].
struct AttentionSizes {
  const char *name;
  Shape batch;
  int64_t l, s, e, v;
  Attributes attributes = {};
  ArgKind mask = ArgKind::None; ///< Mask: of bool; Element: added
  Shape maskShape = {};
};
} // namespace

static std::vector<AttentionSizes> attentionSizes() {
  Attributes causal{{"causal", true}};
  ArgKind bools = ArgKind::Mask, added = ArgKind::Element;
  std::vector<AttentionSizes> sizes{
      {"four dimensions", {2, 3}, 9, 9, 8, 8},
      {"three dimensions", {3}, 5, 7, 16, 16},
      {"one matrix", {}, 4, 6, 3, 5},
      {"five dimensions", {2, 1, 2}, 4, 6, 8, 8},
      {"causal", {2, 2}, 33, 33, 8, 8, causal},
      {"causal, more keys", {2}, 5, 37, 8, 8, causal},
      {"causal, more queries", {2}, 37, 5, 8, 8, causal},
      {"a scale", {2}, 5, 7, 8, 8, {{"scale", 0.3}}},
      {"values of another size", {2}, 5, 7, 8, 24},
      {"a bool mask", {2, 2}, 9, 17, 8, 8, {}, bools, {2, 1, 9, 17}},
      {"a bool mask of keys", {2, 2}, 9, 17, 8, 8, {}, bools, {17}},
      {"an added mask", {2, 2}, 9, 17, 8, 8, {}, added, {2, 9, 17}},
      {"an added mask of keys", {2}, 9, 17, 8, 8, causal, added, {17}},
      {"an added mask of queries", {2}, 9, 17, 8, 8, {}, added, {9, 1}},
      {"a full added mask", {2, 2}, 5, 7, 8, 8, {{"scale", 0.5}}, added, {2, 2, 5, 7}},
      {"one element", {1, 1}, 1, 1, 1, 1},
      {"one key", {2}, 5, 1, 8, 8},
      {"no batches", {0, 2}, 3, 3, 8, 8},
      {"empty", {2}, 0, 3, 8, 8},
      {"no keys", {2}, 3, 0, 8, 8}};
  for (int64_t size : {8, 16, 32, 40, 64, 80, 96, 128})
    sizes.push_back({"heads", {1, 2}, 18, 35, size, size, causal});
  sizes.push_back({"long", {1, 1}, 130, 200, 64, 64});
  return sizes;
}

static Shape attentionShape(const AttentionSizes &sizes, int64_t rows, int64_t columns) {
  return sizes.batch + Shape{rows, columns};
}

/// Queries, keys, values and mask.
static std::vector<Arg> attentionInputs(const AttentionSizes &sizes) {
  std::vector<Arg> args{random(attentionShape(sizes, sizes.l, sizes.e), 1),
                        random(attentionShape(sizes, sizes.s, sizes.e), 2),
                        random(attentionShape(sizes, sizes.s, sizes.v), 3)};
  if (sizes.mask == ArgKind::Mask)
    args.push_back(mask(sizes.maskShape, 4));
  else if (sizes.mask == ArgKind::Element)
    args.push_back(random(sizes.maskShape, 4));
  else
    args.push_back(noArg);
  return args;
}

static std::string attentionName(const AttentionSizes &sizes) {
  return sizes.name == std::string("heads") ? "heads of " + std::to_string(sizes.e) : sizes.name;
}

static constexpr const char *attention = "scaled_dot_product_attention";

static std::vector<OpCase> attentionCases() {
  std::vector<OpCase> cases;
  for (const AttentionSizes &sizes : attentionSizes())
    cases.push_back({attentionName(sizes), attentionInputs(sizes), sizes.attributes});
  std::vector<Arg> args = attentionInputs({"", {2}, 5, 7, 8, 8});
  for (const Shape &shape : {Shape{2, 8}, Shape{2, 5, 1}, Shape{2, 32, 1}})
    cases.push_back(
        {"logsumexp of " + ints(shape).str(), args, {{"logsumexp_shape", ints(shape)}}});
  args[3] = mask({5, 1}, 6);
  cases.push_back({"rows without keys", args});
  args[3] = given({5, 1}, {0, -inf, 0, -inf, 0});
  cases.push_back({"rows of minus infinity", args});
  args.push_back(rng(0x123456789, 1000));
  args[3] = noArg;
  for (double p : {0.4, 1.0})
    cases.push_back({"dropout", args, {{"dropout_p", p}, {"offset", 3}}});
  cases.push_back({"causal with dropout", args, {{"dropout_p", 0.4}, {"causal", true}}});
  return cases;
}

/// The backward of a case: with what the forward gave.
static OpCase attentionGradient(OpCase test, const Attributes &forward, Attributes backward) {
  const std::vector<Arg> &in = test.args;
  std::vector<std::vector<double>> results =
      hostResults(attention, {in[0], in[1], in[2], in[3]}, forward);
  Shape shape = in[0].shape, rows = in[0].shape;
  shape.back() = in[2].shape.back();
  rows.pop_back();
  std::vector<Arg> args{random(shape, 5),
                        in[0],
                        in[1],
                        in[2],
                        given(shape, results[0]),
                        given(rows, results[1], ArgKind::Statistic)};
  args.insert(args.end(), in.begin() + 3, in.end());
  test.args = args;
  test.attributes = std::move(backward);
  test.leastNorm = 1; // one key has no gradient of scores
  return test;
}

static std::vector<OpCase> attentionGradientCases() {
  std::vector<OpCase> cases;
  for (const AttentionSizes &sizes : attentionSizes()) {
    OpCase test{attentionName(sizes), attentionInputs(sizes)};
    bool maskGrad = sizes.mask == ArgKind::Element;
    cases.push_back(attentionGradient(test, sizes.attributes,
                                      sizes.attributes + Attributes{{"mask_grad", maskGrad}}));
    if (maskGrad) {
      test.name += " without a gradient";
      cases.push_back(attentionGradient(test, sizes.attributes, sizes.attributes));
    }
  }
  OpCase dropout{"dropout", attentionInputs({"", {2}, 5, 7, 8, 8})};
  dropout.args.push_back(rng(0x123456789, 1000));
  cases.push_back(attentionGradient(dropout, {}, {{"dropout_p", 0.4}, {"offset", 3}}));
  return cases;
}

void rondo::addAttentionCases(OpCaseTable &table) {
  table.push_back({attention, floats, attentionCases});
  table.push_back({std::string(attention) + "_backward", floats, attentionGradientCases});
}
