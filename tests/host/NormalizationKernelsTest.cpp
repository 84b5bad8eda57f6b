//===- NormalizationKernelsTest.cpp - Layer and RMS norm on the host ------===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

using Shape = std::vector<int64_t>;

struct Case {
  Shape shape;
  Shape normalized;
};
const Case cases[] = {{{3, 4}, {4}}, {{2, 3, 4}, {3, 4}}, {{2, 3, 4}, {4}},
                      {{5}, {5}},    {{0, 4}, {4}},       {{1, 1}, {1}}};

Attribute listOf(const Shape &values) {
  return Attribute(llvm::ArrayRef<int64_t>(values));
}
Attribute maskOf(std::vector<bool> values) {
  Attribute::List list;
  for (bool value : values)
    list.emplace_back(value);
  return list;
}
/// One statistic for each row.
Shape statisticsShape(const Case &test) {
  Shape shape = test.shape;
  std::fill(shape.end() - test.normalized.size(), shape.end(), 1);
  return shape;
}

/// Result, means and reciprocal deviations; around 0 instead of the mean for RMS norm.
std::vector<std::vector<double>> naiveNorm(const Arg &x, const Arg &w, const Arg &b, double eps,
                                           bool centred) {
  size_t n = w.values.size();
  std::vector<double> out, means, rstds;
  for (size_t first = 0; first + n <= x.values.size(); first += n) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < n; ++i)
      mean += centred ? x.values[first + i] / double(n) : 0;
    for (size_t i = 0; i < n; ++i)
      variance += std::pow(x.values[first + i] - mean, 2) / double(n);
    means.push_back(mean);
    rstds.push_back(1 / std::sqrt(variance + eps));
    for (size_t i = 0; i < n; ++i)
      out.push_back((x.values[first + i] - mean) / std::sqrt(variance + eps) * w.values[i] +
                    (centred ? b.values[i] : 0));
  }
  if (centred)
    return {out, means, rstds};
  return {out, rstds};
}

// Both norms and their statistics equal the formula, in every dtype and layout.
TEST(NormalizationKernels, ForwardEqualsTheFormula) {
  for (const Case &test : cases) {
    Arg x = randomArg(test.shape, 1), w = randomArg(test.normalized, 2),
        b = randomArg(test.normalized, 3);
    llvm::SmallVector<AttributeInit, 2> attributes{{"normalized_shape", listOf(test.normalized)},
                                                   {"eps", 0.01}};
    for (bool centred : {true, false}) {
      const char *op = centred ? "layer_norm" : "rms_norm";
      std::vector<Arg> args{x, w};
      if (centred)
        args.push_back(b);
      auto expected = naiveNorm(x, w, b, 0.01, centred), actual = resultsOf(op, args, attributes);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i)
        expectNear(actual[i], expected[i], 1e-13);
      expectSameInAllDTypesAndLayouts(op, args, attributes);
      expectSameInAllResultLayouts(op, args, attributes);
    }
  }
}

// Without weights the result is that of weights 1 and 0, and not that of others.
TEST(NormalizationKernels, WeightsAreOptional) {
  Arg x = randomArg({3, 4}, 1), ones{{4}, {1, 1, 1, 1}}, zeros{{4}, {0, 0, 0, 0}};
  llvm::SmallVector<AttributeInit, 1> attributes{{"normalized_shape", listOf({4})}};
  auto bare = resultsOf("layer_norm", {x}, attributes);
  EXPECT_EQ(bare, resultsOf("layer_norm", {x, ones, zeros}, attributes));
  EXPECT_EQ(bare, resultsOf("layer_norm", {x, noArg, zeros}, attributes));
  EXPECT_NE(bare, resultsOf("layer_norm", {x, ones, ones}, attributes));
  EXPECT_EQ(resultsOf("rms_norm", {x}, attributes), resultsOf("rms_norm", {x, ones}, attributes));
}

// The backwards are the gradients of the forward, in every dtype and layout.
TEST(NormalizationKernels, BackwardsAreTheGradients) {
  for (const Case &test : cases) {
    if (test.shape == Shape{1, 1})
      continue; // of layer norm it is 0, which has no relative error
    Arg x = randomArg(test.shape, 1), w = randomArg(test.normalized, 2),
        b = randomArg(test.normalized, 3), grad = randomArg(test.shape, 4);
    AttributeInit shape{"normalized_shape", listOf(test.normalized)};
    for (bool centred : {true, false}) {
      std::string op = centred ? "layer_norm" : "rms_norm";
      std::vector<Arg> args{x, w}, backward{grad, x};
      if (centred)
        args.push_back(b);
      auto forward = resultsOf(op, args, {shape});
      for (size_t i = 1; i < forward.size(); ++i)
        backward.push_back({statisticsShape(test), forward[i], ArgKind::Statistic});
      backward.insert(backward.end(), args.begin() + 1, args.end());
      auto gradients = resultsOf(op + "_backward", backward, {shape});
      ASSERT_EQ(gradients.size(), args.size());
      for (unsigned i = 0; i < args.size(); ++i)
        EXPECT_LE(relativeError(gradients[i], numericGradient(op, args, i, grad.values, {shape})),
                  numericTolerance)
            << op << " operand " << i;
      expectSameInAllDTypesAndLayouts(op + "_backward", backward, {shape});
      expectSameInAllResultLayouts(op + "_backward", backward, {shape});
    }
  }
}

// `mask` picks gradients: those that are results are the same as when all are.
TEST(NormalizationKernels, MaskPicksGradients) {
  Arg grad = randomArg({3, 4}, 1), x = randomArg({3, 4}, 2), mean = randomArg({3, 1}, 3),
      rstd = randomArg({3, 1}, 4), w = randomArg({4}, 5), b = randomArg({4}, 6);
  AttributeInit shape{"normalized_shape", listOf({4})};
  std::vector<Arg> args{grad, x, mean, rstd, w, b};
  auto all = resultsOf("layer_norm_backward", args, {shape});
  for (unsigned bits = 0; bits < 8; ++bits) {
    std::vector<std::vector<double>> expected;
    for (unsigned i = 0; i < 3; ++i)
      if (bits >> i & 1)
        expected.push_back(all[i]);
    AttributeInit mask{"mask", maskOf({bool(bits & 1), bool(bits & 2), bool(bits & 4)})};
    EXPECT_EQ(resultsOf("layer_norm_backward", args, {shape, mask}), expected);
  }
  AttributeInit onlyWeight{"mask", maskOf({false, true})};
  std::vector<Arg> rms{grad, x, rstd, w};
  EXPECT_EQ(resultsOf("rms_norm_backward", rms, {shape, onlyWeight})[0],
            resultsOf("rms_norm_backward", rms, {shape})[1]);
}

// Batch norm is left to others, with the executor's words; layer norm is not.
TEST(NormalizationKernels, BatchNormIsDeclined) {
  EXPECT_NE(whyDeclined("batch_norm", {{DType::F32, {2, 3}}}, {{"training", true}})
                .find("no kernel for 'batch_norm'"),
            std::string::npos);
  AttributeInit shape{"normalized_shape", listOf({3})};
  EXPECT_EQ(whyDeclined("layer_norm", {{DType::F32, {2, 3}}}, {shape}), "");
  EXPECT_EQ(whyDeclined("layer_norm", {{DType::F8E4M3, {2, 3}}}, {shape}),
            "has no host kernel for dtype f8e4m3");
}

} // namespace
