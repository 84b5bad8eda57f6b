//===- UnaryKernelsTest.cpp -----------------------------------------------===//
//
// Pointwise ops of one operand, casts, and gradients.
//
//===----------------------------------------------------------------------===//

#include "PointwiseTesting.h"

using namespace rondo;
using namespace rondo::pointwise_testing;

namespace {

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

const Shape shapes[] = {{3, 4}, {2, 3, 2}, {}, {0, 3}, {1}, {700}};

using Unary = double (*)(double);
struct UnaryCase {
  const char *op;
  Unary formula;
  bool takesIntegers = true;
  bool positive = false;
  std::vector<AttributeInit> attributes = {};
};

double gelu(double x) {
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}
double geluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu(double x) {
  return x / (1 + std::exp(-x));
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

std::vector<UnaryCase> unaryCases() {
  return {
      {"neg", [](double x) { return -x; }},
      {"abs", [](double x) { return std::fabs(x); }},
      {"sign", [](double x) { return double((x > 0) - (x < 0)); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"log", [](double x) { return std::log(x); }, true, true},
      {"log1p", [](double x) { return std::log1p(x); }, true, true},
      {"expm1", [](double x) { return std::expm1(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }, true, true},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, true, true},
      {"reciprocal", [](double x) { return 1 / x; }, true, true},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"sigmoid", sigmoid},
      {"erf", [](double x) { return std::erf(x); }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"round", [](double x) { return std::nearbyint(x); }},
      {"relu", [](double x) { return std::max(x, 0.0); }},
      {"silu", silu, false},
      {"logical_not", [](double x) { return double(x == 0); }},
      {"isnan", [](double x) { return double(std::isnan(x)); }},
      {"isinf", [](double x) { return double(std::isinf(x)); }},
      {"softplus", [](double x) { return std::log1p(std::exp(x)); }, false},
      {"softplus",
       [](double x) { return 3 * x > 1 ? x : std::log1p(std::exp(3 * x)) / 3; },
       false,
       false,
       {{"beta", 3}, {"threshold", 1.0}}},
      {"leaky_relu",
       [](double x) { return x > 0 ? x : 0.25 * x; },
       false,
       false,
       {{"slope", 0.25}}},
      {"gelu", gelu, false},
      {"gelu", geluTanh, false, false, {{"approximate", "tanh"}}},
      {"clamp",
       [](double x) { return std::min(std::max(x, -1.0), 1.0); },
       true,
       false,
       {{"min", -1}, {"max", 1}}},
      {"clamp", [](double x) { return std::max(x, 1.0); }, true, false, {{"min", 1}}},
      {"clamp", [](double x) { return std::min(x, 1.0); }, true, false, {{"max", 1}}},
      {"clamp", [](double x) { return std::min(x, 0.5); }, true, false, {{"max", 0.5}}},
  };
}

/// An op of one operand gives its formula's value for every element, in every layout, as a float
/// and, where it takes them, of integers.
TEST(UnaryKernels, UnaryOpsComputeTheirFormula) {
  for (const UnaryCase &test : unaryCases()) {
    std::vector<DType> dtypes(std::begin(floats), std::end(floats));
    if (test.takesIntegers)
      dtypes.insert(dtypes.end(), std::begin(integers), std::end(integers));
    for (DType dtype : dtypes) {
      for (Layout layout : allLayouts) {
        SCOPED_TRACE(describe(test.op, dtype, layout));
        bool isNegated = test.op == std::string("neg") || !test.attributes.empty();
        if (dtype == DType::U8 && isNegated)
          continue; // wraps
        for (const Shape &shape : llvm::ArrayRef<Shape>(shapes).take_front(
                 layout == Layout::Contiguous ? std::size(shapes) : 2)) {
          Tensor x = numbers(dtype, shape, 7, layout);
          if (test.positive) {
            std::vector<double> values = valuesOf(x);
            for (double &value : values)
              value = std::fabs(value) + 0.5;
            x = withLayout(tensorOf(dtype, shape, values), layout);
          }
          expectElements(
              test.op, {x}, shape, [&](auto in) { return test.formula(in(0)); }, test.attributes);
        }
      }
    }
  }
}

/// bool is a number of 0 or 1, and `not` for bitwise_not.
TEST(UnaryKernels, UnaryOpsOfBool) {
  Tensor x = tensorOf(DType::Bool, {2}, {0, 1});
  EXPECT_EQ(valuesOf(runOp("bitwise_not", {x})[0]), (std::vector<double>{1, 0}));
  EXPECT_EQ(valuesOf(runOp("logical_not", {x})[0]), (std::vector<double>{1, 0}));
  EXPECT_EQ(valuesOf(runOp("abs", {x})[0]), (std::vector<double>{0, 1}));
  EXPECT_EQ(valuesOf(runOp("sign", {x})[0]), (std::vector<double>{0, 1}));
  EXPECT_LE(relativeError(valuesOf(runOp("exp", {x})[0]), {1, std::exp(1.0)}), 1e-7);
  EXPECT_EQ(valuesOf(runOp("bitwise_not", {tensorOf(DType::U8, {2}, {0, 5})})[0]),
            (std::vector<double>{255, 250}));
}

/// Halves are rounded to even, a nan stays one, infinities are found, signs are those of PyTorch.
TEST(UnaryKernels, UnaryOpsOfSpecialNumbers) {
  for (DType dtype : floats) {
    SCOPED_TRACE(dtypeName(dtype).str());
    auto run = [&](const char *op, std::vector<double> values,
                   std::vector<AttributeInit> attributes = {}) {
      return valuesOf(
          runOp(op, {tensorOf(dtype, {int64_t(values.size())}, values)}, attributes)[0]);
    };
    using List = std::vector<double>;
    EXPECT_EQ(run("round", {0.5, 1.5, 2.5, -0.5, -1.5}), (List{0, 2, 2, 0, -2}));
    EXPECT_EQ(run("isnan", {notANumber, inf, 1}), (List{1, 0, 0}));
    EXPECT_EQ(run("isinf", {notANumber, inf, -inf, 1}), (List{0, 1, 1, 0}));
    EXPECT_EQ(run("sign", {notANumber, -inf}), (List{0, -1}));
    EXPECT_EQ(run("softplus", {21, 100}), (List{21, 100}));
    EXPECT_EQ(run("sigmoid", {-inf, inf}), (List{0, 1}));
    for (const char *op : {"relu", "neg", "abs", "floor", "gelu", "exp", "sqrt"})
      EXPECT_TRUE(std::isnan(run(op, {notANumber})[0])) << op;
    EXPECT_TRUE(std::isnan(run("clamp", {notANumber}, {{"min", 0}, {"max", 1}})[0]));
    EXPECT_TRUE(std::isnan(run("clamp", {1}, {{"min", notANumber}})[0]));
    EXPECT_EQ(run("clamp", {0}, {{"min", 3}, {"max", 1}})[0], 1);
  }
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// A cast to bool asks whether a number is not 0, one to an integer drops the fraction, any other
/// rounds.
TEST(UnaryKernels, CastConverts) {
  std::vector<double> values = {-1.5, -0.25, 0, 1, 2.75, 100};
  for (DType from : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I8}) {
    for (DType to :
         {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I8, DType::Bool}) {
      for (Layout layout : allLayouts) {
        SCOPED_TRACE(describe(dtypeName(from), to, layout));
        Tensor x = withLayout(tensorOf(from, {2, 3}, values), layout);
        std::vector<double> expected = valuesOf(x);
        for (double &value : expected)
          value = to == DType::Bool ? value != 0 : isFloat(to) ? value : std::trunc(value);
        EXPECT_LE(relativeError(valuesOf(runOp("cast", {x}, {{"dtype", to}})[0]), expected),
                  toleranceOf(to));
      }
    }
  }
}

/// What the target cannot hold has a defined result.
TEST(UnaryKernels, CastOfOutOfRangeNumbers) {
  auto cast = [](DType from, double value, DType to) {
    return valuesOf(runOp("cast", {tensorOf(from, {1}, {value})}, {{"dtype", to}})[0])[0];
  };
  EXPECT_EQ(cast(DType::F32, notANumber, DType::Bool), 1);
  EXPECT_EQ(cast(DType::F32, 1e30, DType::I64), double(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(cast(DType::F32, 300, DType::U8), 44);
  EXPECT_EQ(cast(DType::F64, 1e300, DType::F32), inf);
  EXPECT_EQ(cast(DType::F32, 1e6, DType::F16), inf);
  EXPECT_EQ(cast(DType::I64, -1, DType::U8), 255);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// A gradient is the incoming one times the derivative, which central differences of the forward
/// formula give.
TEST(UnaryKernels, GradientsAreDerivatives) {
  struct {
    const char *op;
    Unary forward;
    bool ofResult;
    std::vector<AttributeInit> attributes;
  } cases[] = {
      {"gelu_backward", gelu, false, {}},
      {"gelu_backward", geluTanh, false, {{"approximate", "tanh"}}},
      {"silu_backward", silu, false, {}},
      {"tanh_backward", [](double x) { return std::tanh(x); }, true, {}},
      {"sigmoid_backward", sigmoid, true, {}},
      {"leaky_relu_backward",
       [](double x) { return x > 0 ? x : 0.25 * x; },
       false,
       {{"slope", 0.25}}},
      {"threshold_backward",
       [](double x) { return std::max(x, 0.5); },
       false,
       {{"threshold", 0.5}}},
  };
  for (const auto &test : cases) {
    for (DType dtype : {DType::F64, DType::F32, DType::BF16}) {
      for (Layout layout : allLayouts) {
        SCOPED_TRACE(describe(test.op, dtype, layout));
        Shape shape = {4, 5};
        std::vector<double> x = randomValues(20, 9), operand = x;
        if (test.ofResult)
          std::transform(x.begin(), x.end(), operand.begin(), test.forward);
        Tensor grad = numbers(dtype, shape, 10, layout);
        Tensor input = tensorOf(dtype, shape, test.ofResult ? operand : x);
        if (!test.ofResult)
          x = valuesOf(input);
        std::vector<double> expected = valuesOf(grad);
        for (size_t i = 0; i < x.size(); ++i)
          expected[i] *= (test.forward(x[i] + 1e-5) - test.forward(x[i] - 1e-5)) / 2e-5;
        Value out = runOp(test.op, {grad, input}, test.attributes)[0];
        EXPECT_LE(relativeError(valuesOf(out), expected), std::max(1e-8, 2 * toleranceOf(dtype)));
      }
    }
  }
}

/// At the threshold nothing passes; above it, or at a notANumber, the gradient does.
TEST(UnaryKernels, ThresholdBackwardAtTheThreshold) {
  Tensor grad = tensorOf(DType::F32, {4}, {1, 2, 3, 4});
  Tensor x = tensorOf(DType::F32, {4}, {0, -1, 0.5, notANumber});
  EXPECT_EQ(valuesOf(runOp("threshold_backward", {grad, x})[0]), (std::vector<double>{0, 0, 3, 4}));
}

} // namespace
