//===- SoftmaxKernelsTest.cpp - Softmax on the host -----------------------===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

using Shape = std::vector<int64_t>;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// softmax, or its logarithm, along a dimension that splits the shape into [outer, size, inner].
std::vector<double> naiveSoftmax(const Arg &x, size_t dim, bool log) {
  int64_t inner = 1, size = x.shape.empty() ? 1 : x.shape[dim];
  for (size_t d = dim + 1; d < x.shape.size(); ++d)
    inner *= x.shape[d];
  std::vector<double> out;
  for (int64_t i = 0; i < int64_t(x.values.size()); ++i) {
    int64_t first = i / (size * inner) * size * inner + i % inner;
    double sum = 0;
    for (int64_t k = 0; k < size; ++k)
      sum += std::exp(x.values[first + k * inner]);
    out.push_back(log ? x.values[i] - std::log(sum) : std::exp(x.values[i]) / sum);
  }
  return out;
}

struct Case {
  Shape shape;
  int dim;
  size_t wrapped;
};
const Case cases[] = {{{3, 4}, 1, 1},    {{3, 4}, 0, 0},    {{2, 3, 4}, -2, 1}, {{5}, 0, 0},
                      {{}, 0, 0},        {{1}, -1, 0},      {{0, 3}, 1, 1},     {{3, 0}, 1, 1},
                      {{2, 1, 3}, 1, 1}, {{2, 3, 4}, -3, 0}};

// All forms equal the formula along any dimension, in every dtype and layout.
TEST(SoftmaxKernels, EqualsTheFormula) {
  for (const Case &test : cases) {
    Arg x = randomArg(test.shape, 1);
    for (const char *op : {"softmax", "safe_softmax", "log_softmax"}) {
      bool log = llvm::StringRef(op) == "log_softmax";
      expectNear(resultsOf(op, {x}, {{"dim", test.dim}})[0], naiveSoftmax(x, test.wrapped, log),
                 1e-14);
      expectSameInAllDTypesAndLayouts(op, {x}, {{"dim", test.dim}});
      expectSameInAllResultLayouts(op, {x}, {{"dim", test.dim}});
    }
  }
}

// The gradients are those of the forward, in every dtype and layout.
TEST(SoftmaxKernels, BackwardsAreTheGradients) {
  for (const Case &test : cases) {
    Arg x = randomArg(test.shape, 1), grad = randomArg(test.shape, 2);
    for (std::string op : {"softmax", "log_softmax"}) {
      llvm::SmallVector<AttributeInit, 1> dim{{"dim", test.dim}};
      Arg out{test.shape, resultsOf(op, {x}, dim)[0]};
      expectNear(resultsOf(op + "_backward", {grad, out}, dim)[0],
                 numericGradient(op, {x}, 0, grad.values, dim), numericTolerance);
      expectSameInAllDTypesAndLayouts(op + "_backward", {grad, out}, dim);
      expectSameInAllResultLayouts(op + "_backward", {grad, out}, dim);
    }
  }
}

// Large values do not overflow, infinities give what their limits say, nan spreads along its row
// and no further.
TEST(SoftmaxKernels, ExtremeValues) {
  double nan = std::nan("");
  Arg x{{4, 2}, {1000, 1000, -infinity, 0, -infinity, -infinity, nan, -infinity}};
  llvm::SmallVector<AttributeInit, 1> dim{{"dim", 1}};
  EXPECT_EQ(relativeError(resultsOf("softmax", {x}, dim)[0], {0.5, 0.5, 0, 1, nan, nan, nan, nan}),
            0);
  EXPECT_EQ(relativeError(resultsOf("safe_softmax", {x}, dim)[0], {0.5, 0.5, 0, 1, 0, 0, nan, nan}),
            0);
  EXPECT_LE(relativeError(resultsOf("log_softmax", {x}, dim)[0],
                          {-std::log(2), -std::log(2), -infinity, 0, nan, nan, nan, nan}),
            1e-14);
}

// `dtype` is what the operand is cast to before anything is computed.
TEST(SoftmaxKernels, CastsFirst) {
  // 257 is no bf16: it becomes 256.
  Tensor x = tensorOf(DType::F32, {2}, {257, 256});
  auto run = [&](DType dtype) {
    return valuesOf(runOp("softmax", {x}, {{"dim", 0}, {"dtype", dtype}})[0]);
  };
  EXPECT_EQ(run(DType::BF16), (std::vector<double>{0.5, 0.5}));
  EXPECT_NEAR(run(DType::F64)[0], 1 / (1 + std::exp(-1)), 1e-15);
  Tensor integers = tensorOf(DType::I64, {2}, {3, 3});
  EXPECT_EQ(valuesOf(runOp("softmax", {integers}, {{"dim", 0}, {"dtype", DType::F32}})[0]),
            (std::vector<double>{0.5, 0.5}));
}

// 8-bit floats are declined, f16 is not.
TEST(SoftmaxKernels, DeclinesDTypes) {
  EXPECT_EQ(whyDeclined("softmax", {{DType::F8E5M2, {2}}}, {{"dim", 0}}),
            "has no host kernel for dtype f8e5m2");
  EXPECT_EQ(whyDeclined("softmax", {{DType::F16, {2}}}, {{"dim", 0}}), "");
}

} // namespace
