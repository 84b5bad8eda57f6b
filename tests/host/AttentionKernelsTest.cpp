//===- AttentionKernelsTest.cpp - Attention on the host -------------------===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

using Shape = std::vector<int64_t>;
using Attributes = llvm::SmallVector<AttributeInit, 4>;
constexpr const char *forward = "scaled_dot_product_attention";
constexpr const char *backward = "scaled_dot_product_attention_backward";
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Sizes, options and mask of one attention. Batches are `batch`; a mask broadcasts to [..., L, S].
struct Case {
  const char *name;
  Shape batch;
  int64_t l, s, e, v;
  bool causal = false;
  std::optional<double> scale = std::nullopt;
  ArgKind mask = ArgKind::None; ///< Mask: of bool; Element: added
  Shape maskShape = {};
};
const Case cases[] = {
    {"plain", {2, 3}, 4, 5, 3, 2},
    {"one matrix", {}, 4, 5, 3, 2},
    {"causal", {2}, 4, 4, 3, 3, true},
    {"causal, more keys", {2}, 3, 5, 3, 3, true},
    {"causal, more queries", {2}, 5, 3, 3, 3, true},
    {"scale", {2}, 3, 4, 2, 2, false, 0.3},
    {"bool mask", {2, 2}, 3, 4, 2, 2, false, std::nullopt, ArgKind::Mask, {2, 1, 3, 4}},
    {"float mask", {2, 2}, 3, 4, 2, 2, false, std::nullopt, ArgKind::Element, {2, 3, 4}},
    {"mask of keys", {2}, 3, 4, 2, 2, true, 0.5, ArgKind::Element, {4}},
    {"mask of queries", {2}, 3, 4, 2, 2, false, std::nullopt, ArgKind::Element, {3, 1}},
    {"one element", {1, 1}, 1, 1, 1, 1},
    {"no batches", {0, 2}, 3, 3, 2, 2},
    {"no queries", {2}, 0, 3, 2, 2},
    {"no keys", {2}, 3, 0, 2, 2},
};

Shape shapeOf(const Case &test, int64_t rows, int64_t columns) {
  Shape shape = test.batch;
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

struct Inputs {
  Arg q, k, v, mask;
};
Inputs inputsOf(const Case &test) {
  Inputs in{randomArg(shapeOf(test, test.l, test.e), 1),
            randomArg(shapeOf(test, test.s, test.e), 2),
            randomArg(shapeOf(test, test.s, test.v), 3), noArg};
  if (test.mask != ArgKind::None)
    in.mask = randomArg(test.maskShape, 4, test.mask);
  if (test.mask == ArgKind::Mask)
    for (size_t i = 0; i < in.mask.values.size(); ++i)
      in.mask.values[i] = i % 3 != 1;
  return in;
}
Attributes attributesOf(const Case &test) {
  Attributes attributes{{"causal", test.causal}};
  if (test.scale)
    attributes.push_back({"scale", *test.scale});
  return attributes;
}

/// The mask as what is added to each score, [batches, L, S].
std::vector<double> addedMask(const Case &test, const Arg &mask) {
  Shape shape = shapeOf(test, test.l, test.s);
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  if (mask.kind == ArgKind::None)
    return std::vector<double>(count, 0);
  Tensor tensor = tensorOf(DType::F64, mask.shape, mask.values);
  auto strides = broadcastStrides(tensor.ref(), shape);
  auto added = host::toDense<double>({tensor.data(), DType::F64, shape, strides});
  if (mask.kind == ArgKind::Mask)
    for (double &x : added)
      x = x != 0 ? 0 : -infinity;
  return added;
}

/// out and logsumexp, sum by sum.
std::vector<std::vector<double>> naiveAttention(const Case &test, const Inputs &in) {
  std::vector<double> added = addedMask(test, in.mask), out, sums;
  double scale = test.scale.value_or(1 / std::sqrt(double(test.e)));
  int64_t batches = 1;
  for (int64_t size : test.batch)
    batches *= size;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t i = 0; i < test.l; ++i) {
      std::vector<double> weights(test.s, 0);
      double sum = 0;
      for (int64_t j = 0; j < test.s; ++j) {
        double score = added[(b * test.l + i) * test.s + j];
        for (int64_t e = 0; e < test.e; ++e)
          score += scale * in.q.values[(b * test.l + i) * test.e + e] *
                   in.k.values[(b * test.s + j) * test.e + e];
        if (!test.causal || j <= i)
          sum += weights[j] = std::exp(score);
      }
      sums.push_back(std::log(sum));
      for (int64_t c = 0; c < test.v; ++c) {
        double value = 0;
        for (int64_t j = 0; j < test.s; ++j)
          value += sum == 0 ? 0 : weights[j] / sum * in.v.values[(b * test.s + j) * test.v + c];
        out.push_back(value);
      }
    }
  return {out, sums};
}

// Result and logsumexp equal the formula, in every dtype and layout.
TEST(AttentionKernels, ForwardEqualsTheFormula) {
  for (const Case &test : cases) {
    SCOPED_TRACE(test.name);
    Inputs in = inputsOf(test);
    std::vector<Arg> args{in.q, in.k, in.v, in.mask};
    auto actual = resultsOf(forward, args, attributesOf(test)), expected = naiveAttention(test, in);
    ASSERT_EQ(actual.size(), 2u);
    EXPECT_LE(relativeError(actual[0], expected[0]), 1e-13);
    EXPECT_LE(relativeError(actual[1], expected[1]), 1e-13);
    expectSameInAllDTypesAndLayouts(forward, args, attributesOf(test));
    expectSameInAllResultLayouts(forward, args, attributesOf(test));
  }
}

// The gradients, that of the mask among them, are those of the forward, in every dtype and layout.
TEST(AttentionKernels, BackwardIsTheGradient) {
  for (const Case &test : cases) {
    SCOPED_TRACE(test.name);
    Inputs in = inputsOf(test);
    std::vector<Arg> args{in.q, in.k, in.v, in.mask};
    Attributes attributes = attributesOf(test);
    auto results = resultsOf(forward, args, attributes);
    Arg grad = randomArg(shapeOf(test, test.l, test.v), 5), out{grad.shape, results[0]};
    Shape rows = test.batch;
    rows.push_back(test.l);
    Arg sums{rows, results[1], ArgKind::Statistic};
    unsigned count = test.mask == ArgKind::Element ? 4 : 3;
    Attributes all = attributes;
    all.push_back({"mask_grad", count == 4});
    std::vector<Arg> operands{grad, in.q, in.k, in.v, out, sums, in.mask};
    auto gradients = resultsOf(backward, operands, all);
    ASSERT_EQ(gradients.size(), count);
    for (unsigned i = 0; i < count; ++i)
      expectNear(gradients[i], numericGradient(forward, args, i, grad.values, attributes),
                 numericTolerance);
    expectSameInAllDTypesAndLayouts(backward, operands, all);
    expectSameInAllResultLayouts(backward, operands, all);
  }
}

// A row in which everything is masked gives 0 and a logsumexp of -inf, and no gradient.
TEST(AttentionKernels, RowsWithoutKeysAreZero) {
  Arg q = randomArg({2, 2}, 1), k = randomArg({2, 2}, 2), v = randomArg({2, 2}, 3);
  Arg bools{{2, 1}, {0, 1}, ArgKind::Mask}, numbers{{2, 1}, {-infinity, 0}};
  for (const Arg &mask : {bools, numbers}) {
    auto results = resultsOf(forward, {q, k, v, mask});
    EXPECT_EQ(results[0][0], 0);
    EXPECT_EQ(results[1][0], -infinity);
    EXPECT_NE(results[0][2], 0);
    EXPECT_TRUE(std::isfinite(results[1][1]));
    auto gradients =
        resultsOf(backward, {q, q, k, v, {{2, 2}, results[0]}, {{2}, results[1]}, mask});
    EXPECT_EQ(gradients[0][0], 0);
    EXPECT_NE(gradients[0][2], 0);
    for (const auto &gradient : gradients)
      for (double x : gradient)
        EXPECT_TRUE(std::isfinite(x));
  }
}

// logsumexp may be longer than the queries, padded with infinity, or have a last size of 1; the
// backward takes either. Other shapes are declined.
TEST(AttentionKernels, ShapesOfLogSumExp) {
  Arg q = randomArg({2, 3, 2}, 1), k = randomArg({2, 4, 2}, 2), v = randomArg({2, 4, 2}, 3);
  auto listOf = [](Shape shape) { return Attribute(llvm::ArrayRef<int64_t>(shape)); };
  auto plain = resultsOf(forward, {q, k, v});
  auto expected = resultsOf(backward, {q, q, k, v, {{2, 3, 2}, plain[0]}, {{2, 3}, plain[1]}});
  for (const Shape &shape : {Shape{2, 8}, Shape{2, 3, 1}, Shape{2, 8, 1}}) {
    auto results = resultsOf(forward, {q, k, v}, {{"logsumexp_shape", listOf(shape)}});
    EXPECT_EQ(results[0], plain[0]);
    int64_t length = shape[1];
    ASSERT_EQ(results[1].size(), size_t(2 * length));
    for (int64_t i = 0; i < 2 * length; ++i)
      EXPECT_EQ(results[1][i], i % length < 3 ? plain[1][i / length * 3 + i % length] : INFINITY);
    EXPECT_EQ(resultsOf(backward, {q, q, k, v, {{2, 3, 2}, plain[0]}, {shape, results[1]}}),
              expected);
  }
  std::pair<DType, Shape> type{DType::F32, {2, 3, 2}};
  for (const Shape &shape : {Shape{2, 2}, Shape{3, 3}, Shape{2, 3, 2}, Shape{0}})
    EXPECT_NE(whyDeclined(forward, {type, type, type}, {{"logsumexp_shape", listOf(shape)}})
                  .find("has no host kernel for logsumexp of type f32"),
              std::string::npos);
  EXPECT_EQ(whyDeclined(forward, {type, type, type}, {{"logsumexp_shape", listOf({2, 3})}}), "");
}

/// Attention with dropout: operands without absent ones, and a state.
struct Dropout {
  Arg q = randomArg({2, 3, 2}, 1), k = randomArg({2, 4, 2}, 2), v = randomArg({2, 4, 2}, 3);
  RNGState state{0x123456789, 1000};

  std::vector<std::vector<double>> forward(double p, int64_t offset) {
    std::vector<OperandInit> operands = operandsOf({q, k, v, noArg}, DType::F64);
    operands.emplace_back(state);
    std::vector<std::vector<double>> values;
    for (const Value &value : runOp(::forward, operands, {{"dropout_p", p}, {"offset", offset}}))
      values.push_back(valuesOf(value));
    return values;
  }
};

// Dropout drops the weights that the op dropout would drop with the same state and offset, scales
// the others, and leaves logsumexp alone.
TEST(AttentionKernels, DropoutDrawsAsTheOpDropout) {
  Dropout test;
  test.v = {{2, 4, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1,
                        1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};
  auto weights = resultsOf(forward, {test.q, test.k, test.v});
  std::vector<double> patterns[2];
  for (int64_t offset : {0, 7}) {
    std::vector<OperandInit> operands{tensorOf(DType::F64, {2, 3, 4}, std::vector<double>(24, 1))};
    operands.emplace_back(test.state);
    std::vector<double> kept =
        valuesOf(runOp("dropout", operands, {{"p", 0.5}, {"offset", offset}})[1]);
    auto results = test.forward(0.5, offset);
    for (size_t i = 0; i < kept.size(); ++i)
      EXPECT_NEAR(results[0][i], kept[i] * weights[0][i] * 2, 1e-15);
    EXPECT_EQ(results[1], weights[1]);
    patterns[offset != 0] = kept;
  }
  EXPECT_NE(patterns[0], patterns[1]);
  EXPECT_EQ(test.forward(1, 0)[0], std::vector<double>(24, 0));
}

// The backward draws the forward's numbers again.
TEST(AttentionKernels, BackwardWithDropoutIsTheGradient) {
  Dropout test;
  Arg grad = randomArg({2, 3, 2}, 5);
  auto results = test.forward(0.4, 3);
  std::vector<OperandInit> operands = operandsOf(
      {grad, test.q, test.k, test.v, {{2, 3, 2}, results[0]}, {{2, 3}, results[1]}, noArg},
      DType::F64);
  operands.emplace_back(test.state);
  std::vector<Value> gradients = runOp(backward, operands, {{"dropout_p", 0.4}, {"offset", 3}});
  ASSERT_EQ(gradients.size(), 3u);
  Arg *inputs[] = {&test.q, &test.k, &test.v};
  for (unsigned i = 0; i < 3; ++i) {
    std::vector<double> expected;
    for (double &x : inputs[i]->values) {
      auto loss = [&](double moved) {
        double saved = std::exchange(x, moved), sum = 0;
        std::vector<double> out = test.forward(0.4, 3)[0];
        for (size_t at = 0; at < out.size(); ++at)
          sum += out[at] * grad.values[at];
        x = saved;
        return sum;
      };
      expected.push_back((loss(x + 1e-5) - loss(x - 1e-5)) / 2e-5);
    }
    expectNear(valuesOf(gradients[i]), expected, numericTolerance);
  }
}

// 8-bit floats are declined, bf16 is not.
TEST(AttentionKernels, DeclinesDTypes) {
  auto why = [](DType dtype) {
    std::pair<DType, Shape> type{dtype, {2, 2}};
    return whyDeclined(forward, {type, type, type});
  };
  EXPECT_EQ(why(DType::F8E4M3), "has no host kernel for dtype f8e4m3");
  EXPECT_EQ(why(DType::BF16), "");
}

} // namespace
