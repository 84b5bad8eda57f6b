//===- MatmulKernelsTest.cpp - Products of matrices on the host -----------===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

using Shape = std::vector<int64_t>;

/// numpy's `@` on row-major values, element by element.
std::vector<double> naiveMatmul(const Arg &a, const Arg &b) {
  Shape left = a.shape, right = b.shape;
  if (left.size() == 1)
    left.insert(left.begin(), 1);
  if (right.size() == 1)
    right.push_back(1);
  size_t rank = std::max(left.size(), right.size());
  left.insert(left.begin(), rank - left.size(), 1);
  right.insert(right.begin(), rank - right.size(), 1);
  int64_t m = left[rank - 2], inner = left[rank - 1], n = right[rank - 1], batches = 1;
  for (size_t d = 0; d + 2 < rank; ++d)
    batches *= std::max(left[d], right[d]);
  std::vector<double> out;
  for (int64_t batch = 0; batch < batches; ++batch) {
    int64_t rest = batch, leftAt = 0, rightAt = 0, leftStep = 1, rightStep = 1;
    for (size_t d = rank - 2; d-- > 0;) {
      int64_t size = std::max(left[d], right[d]), index = rest % size;
      rest /= size;
      leftAt += left[d] == 1 ? 0 : index * leftStep;
      rightAt += right[d] == 1 ? 0 : index * rightStep;
      leftStep *= left[d];
      rightStep *= right[d];
    }
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += a.values[(leftAt * m + i) * inner + k] * b.values[(rightAt * inner + k) * n + j];
        out.push_back(sum);
      }
  }
  return out;
}

struct Case {
  const char *op;
  Shape a, b;
};
const Case products[] = {
    {"mm", {3, 4}, {4, 5}},
    {"mm", {1, 1}, {1, 1}},
    {"mm", {2, 0}, {0, 3}},
    {"mm", {0, 2}, {2, 3}},
    {"mm", {40, 33}, {33, 50}},
    {"bmm", {2, 3, 4}, {2, 4, 5}},
    {"bmm", {0, 3, 4}, {0, 4, 5}},
    {"matmul", {4}, {4}},
    {"matmul", {0}, {0}},
    {"matmul", {3, 4}, {4}},
    {"matmul", {4}, {4, 5}},
    {"matmul", {2, 3, 4}, {4}},
    {"matmul", {4}, {2, 4, 5}},
    {"matmul", {3, 4}, {2, 4, 5}},
    {"matmul", {2, 1, 3, 4}, {5, 4, 2}},
    {"matmul", {2, 1, 3, 4}, {1, 3, 4, 2}},
};

// Every form of product equals the sum over the inner dimension, in every dtype and layout.
TEST(MatmulKernels, ProductsEqualTheFormula) {
  for (const Case &test : products) {
    SCOPED_TRACE(test.op);
    Arg a = randomArg(test.a, 1), b = randomArg(test.b, 2);
    EXPECT_LE(relativeError(resultsOf(test.op, {a, b})[0], naiveMatmul(a, b)), 1e-14);
    expectSameInAllDTypesAndLayouts(test.op, {a, b}, {}, {}, /*slack=*/4);
    expectSameInAllResultLayouts(test.op, {a, b});
  }
}

// addmm and baddbmm scale the product and a bias that broadcasts.
TEST(MatmulKernels, BiasIsScaledAndBroadcast) {
  struct {
    const char *op;
    Shape bias, a, b;
  } cases[] = {{"addmm", {3, 5}, {3, 4}, {4, 5}},
               {"addmm", {5}, {3, 4}, {4, 5}},
               {"addmm", {}, {3, 4}, {4, 5}},
               {"addmm", {3, 1}, {3, 0}, {0, 5}},
               {"baddbmm", {3, 5}, {2, 3, 4}, {2, 4, 5}},
               {"baddbmm", {2, 1, 5}, {2, 3, 4}, {2, 4, 5}}};
  for (const auto &test : cases) {
    Arg bias = randomArg(test.bias, 3), a = randomArg(test.a, 1), b = randomArg(test.b, 2);
    std::vector<double> expected = naiveMatmul(a, b);
    Shape shape(test.a.begin(), test.a.end());
    shape.back() = test.b.back();
    Tensor biasTensor = tensorOf(DType::F64, test.bias, bias.values);
    auto strides = broadcastStrides(biasTensor.ref(), shape);
    std::vector<double> biases =
        host::toDense<double>({biasTensor.data(), DType::F64, shape, strides});
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = 0.5 * biases[i] - 2 * expected[i];
    llvm::SmallVector<AttributeInit, 2> attributes{{"beta", 0.5}, {"alpha", -2}};
    EXPECT_LE(relativeError(resultsOf(test.op, {bias, a, b}, attributes)[0], expected), 1e-14);
    expectSameInAllDTypesAndLayouts(test.op, {bias, a, b}, attributes, {}, /*slack=*/4);
    expectSameInAllResultLayouts(test.op, {bias, a, b}, attributes);
  }
}

// A bias whose factor is 0 is not looked at; one whose factor is not is.
TEST(MatmulKernels, BiasOfFactorZeroIsIgnored) {
  Arg bias{{2}, {std::nan(""), INFINITY}}, a = randomArg({3, 4}, 1), b = randomArg({4, 2}, 2);
  EXPECT_LE(relativeError(resultsOf("addmm", {bias, a, b}, {{"beta", 0}})[0], naiveMatmul(a, b)),
            1e-14);
  EXPECT_TRUE(std::isnan(resultsOf("addmm", {bias, a, b})[0][0]));
}

// linear multiplies with the transposed weight, for vectors and batches, with and without bias.
TEST(MatmulKernels, LinearEqualsTheFormula) {
  for (Shape shape : {Shape{4}, Shape{3, 4}, Shape{2, 3, 4}, Shape{0, 4}, Shape{2, 2, 1, 4}}) {
    Arg x = randomArg(shape, 1), w = randomArg({5, 4}, 2), bias = randomArg({5}, 3);
    Arg transposed{{4, 5}, {}};
    for (int k = 0; k < 4; ++k)
      for (int n = 0; n < 5; ++n)
        transposed.values.push_back(w.values[n * 4 + k]);
    std::vector<double> expected = naiveMatmul(x, transposed);
    EXPECT_LE(relativeError(resultsOf("linear", {x, w})[0], expected), 1e-14);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] += bias.values[i % 5];
    EXPECT_LE(relativeError(resultsOf("linear", {x, w, bias})[0], expected), 1e-14);
    // Sums of f32 are rounded at each step, and what is left of them may be small.
    expectSameInAllDTypesAndLayouts("linear", {x, w, bias}, {}, {}, /*slack=*/4);
    expectSameInAllResultLayouts("linear", {x, w, bias});
  }
}

// Sums of 16-bit floats are formed in f32: 4096 ones add up, which neither format could do.
TEST(MatmulKernels, SixteenBitSumsAreFormedInF32) {
  std::vector<double> ones(4096, 1);
  for (DType dtype : {DType::F16, DType::BF16}) {
    Tensor a = tensorOf(dtype, {1, 4096}, ones), b = tensorOf(dtype, {4096, 1}, ones);
    EXPECT_EQ(valuesOf(runOp("mm", {a, b})[0]), std::vector<double>{4096});
  }
}

// Integers are exact, and modulo their size where they overflow.
TEST(MatmulKernels, IntegersWrap) {
  for (DType dtype : {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64}) {
    Tensor a = tensorOf(dtype, {1, 2}, {3, 2}), b = tensorOf(dtype, {2, 1}, {4, 5});
    EXPECT_EQ(valuesOf(runOp("mm", {a, b})[0]), std::vector<double>{22});
    Tensor bias = tensorOf(dtype, {1}, {7});
    EXPECT_EQ(valuesOf(runOp("addmm", {bias, a, b}, {{"alpha", 2}})[0]), std::vector<double>{51});
  }
  Tensor large = tensorOf(DType::I8, {1, 1}, {100});
  EXPECT_EQ(valuesOf(runOp("mm", {large, large})[0]), std::vector<double>{16}); // 10000 mod 256
  Tensor huge = tensorOf(DType::I64, {1, 1}, {0x1p62});
  EXPECT_EQ(valuesOf(runOp("mm", {huge, huge})[0]), std::vector<double>{0});
}

// Dtypes without a kernel are declined by name, those with one are not.
TEST(MatmulKernels, DeclinesDTypes) {
  auto why = [](DType dtype) { return whyDeclined("mm", {{dtype, {2, 2}}, {dtype, {2, 2}}}); };
  EXPECT_EQ(why(DType::Bool), "has no host kernel for dtype bool");
  EXPECT_EQ(why(DType::F8E4M3), "has no host kernel for dtype f8e4m3");
  EXPECT_EQ(why(DType::BF16), "");
}

} // namespace
