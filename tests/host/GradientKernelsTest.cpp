//===- GradientKernelsTest.cpp - Loss scaling and clipping on the host ----===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity(),
                 notANumber = std::numeric_limits<double>::quiet_NaN();

Tensor one(double value, DType dtype = DType::F32) {
  return tensorOf(dtype, {}, {value});
}
std::vector<Values> valuesOf(const std::vector<Value> &results) {
  std::vector<Values> values;
  for (const Value &result : results)
    values.push_back(rondo::valuesOf(*result.asTensor()));
  return values;
}

const Arg first = randomArg({2, 3}, 1), second = randomArg({4}, 2), empty{{0}, {}};

// unscale_ multiplies all gradients and leaves the flag alone if they are finite, in every dtype
// and layout.
TEST(GradientKernels, Unscale) {
  for (DType dtype : floatDTypes)
    for (Layout layout : {Layout::Contiguous, Layout::Transposed, Layout::Sliced})
      for (double flag : {0.0, 1.0}) {
        std::vector<OperandInit> operands{one(flag), one(0.25)};
        std::vector<Values> expected{{flag}};
        for (const Arg &arg : {first, second, empty}) {
          Tensor gradient = withLayout(tensorOf(dtype, arg.shape, arg.values), layout);
          expected.push_back(rondo::valuesOf(gradient));
          for (double &x : expected.back())
            x *= 0.25; // exactly
          operands.push_back(gradient);
        }
        EXPECT_EQ(valuesOf(runOp("unscale_", operands)), expected);
      }
}

// One element of one gradient that is infinite or nan sets the flag; the largest number does not.
TEST(GradientKernels, UnscaleFindsWhatIsNotFinite) {
  auto flag = [](DType dtype, double element) {
    return valuesOf(runOp("unscale_", {one(0), one(2), tensorOf(dtype, {2}, {1, 2}),
                                       tensorOf(dtype, {2}, {1, element})}))[0];
  };
  for (DType dtype : floatDTypes)
    for (double element : {inf, -inf, notANumber})
      EXPECT_EQ(flag(dtype, element), Values{1}) << dtypeName(dtype).str() << ' ' << element;
  EXPECT_EQ(flag(DType::F16, 65504), Values{0}) << "finite before it is multiplied";
  EXPECT_EQ(flag(DType::F32, 3e38), Values{0});
}

// global_norm is the norm of all elements as one vector, in every dtype and layout.
TEST(GradientKernels, GlobalNorm) {
  double squares = 0, greatest = 0;
  for (const Arg &arg : {first, second})
    for (double x : arg.values) {
      squares += x * x;
      greatest = std::max(greatest, std::fabs(x));
    }
  std::vector<Arg> args{first, empty, second};
  expectNear(resultsOf("global_norm", args)[0], {std::sqrt(squares)}, 1e-14);
  EXPECT_EQ(resultsOf("global_norm", args, {{"p", inf}})[0], Values{greatest});
  EXPECT_EQ(resultsOf("global_norm", {empty})[0], Values{0});
  for (double p : {2.0, inf})
    expectSameInAllDTypesAndLayouts("global_norm", {first, second}, {{"p", p}});
}

// Narrow gradients have a norm in f32, beyond what they hold; those of f64 one in f64.
TEST(GradientKernels, GlobalNormIsWide) {
  auto norm = [](DType dtype, double p) {
    return runOp("global_norm", {tensorOf(dtype, {2}, {60000, 30000})}, {{"p", p}})[0];
  };
  EXPECT_EQ(norm(DType::F16, 2).asTensor()->dtype(), DType::F32);
  EXPECT_EQ(norm(DType::F64, 2).asTensor()->dtype(), DType::F64);
  EXPECT_NEAR(rondo::valuesOf(*norm(DType::F16, 2).asTensor())[0], 67082.04, 0.01);
}

// A nan anywhere makes either norm nan, an infinity without one infinite.
TEST(GradientKernels, GlobalNormOfWhatIsNotFinite) {
  for (double p : {2.0, inf}) {
    EXPECT_EQ(resultsOf("global_norm", {first, {{2}, {-inf, 1}}}, {{"p", p}})[0], Values{inf});
    Values norm = resultsOf("global_norm", {{{3}, {1, notANumber, inf}}, first}, {{"p", p}})[0];
    EXPECT_TRUE(std::isnan(norm[0])) << p;
  }
}

// clip_ shrinks gradients of a greater norm by the factor of clip_grad_norm_, and leaves others
// alone.
TEST(GradientKernels, Clip) {
  auto clip = [](double norm, double maxNorm) {
    std::vector<Value> results =
        runOp("clip_",
              {one(norm, DType::F64), tensorOf(DType::F64, first.shape, first.values),
               tensorOf(DType::F64, second.shape, second.values)},
              {{"max_norm", maxNorm}});
    Values values = rondo::valuesOf(*results[0].asTensor());
    Values rest = rondo::valuesOf(*results[1].asTensor());
    values.insert(values.end(), rest.begin(), rest.end());
    return values;
  };
  Values all = first.values;
  all.insert(all.end(), second.values.begin(), second.values.end());
  auto times = [&](double factor) {
    Values result = all;
    for (double &x : result)
      x *= factor;
    return result;
  };
  expectNear(clip(4, 0.5), times(0.5 / (4 + 1e-6)), 1e-15);
  expectNear(clip(0.5, 0.5), times(0.5 / (0.5 + 1e-6)), 1e-15);
  EXPECT_EQ(clip(0.25, 0.5), all);
  EXPECT_EQ(clip(0, 0.5), all);
  EXPECT_EQ(clip(inf, 0.5), times(0));
  for (double x : clip(notANumber, 0.5))
    EXPECT_TRUE(std::isnan(x));
  expectSameInAllDTypesAndLayouts("clip_", {{{}, {4}}, first, second}, {{"max_norm", 0.5}}, {1, 2});
}

// The scale shrinks at once, grows after enough steps in a row, and does not grow beyond f32.
TEST(GradientKernels, UpdateScale) {
  struct State {
    double scale, tracker;
  };
  auto update = [](State state, double foundInf) {
    auto results = valuesOf(
        runOp("update_scale_", {one(state.scale), one(state.tracker, DType::I32), one(foundInf)},
              {{"growth_factor", 4.0}, {"backoff_factor", 0.25}, {"growth_interval", 3}}));
    return results == std::vector<Values>{{state.scale}, {state.tracker}}
               ? "unchanged"
               : std::to_string(results[0][0]) + " after " + std::to_string(int(results[1][0]));
  };
  EXPECT_EQ(update({8, 0}, 0), "8.000000 after 1");
  EXPECT_EQ(update({8, 1}, 0), "8.000000 after 2");
  EXPECT_EQ(update({8, 2}, 0), "32.000000 after 0");
  EXPECT_EQ(update({8, 2}, 1), "2.000000 after 0");
  EXPECT_EQ(update({0x1p127, 2}, 0), std::to_string(0x1p127) + " after 0");
}

// By default the scale doubles after 2000 steps, and halves.
TEST(GradientKernels, UpdateScaleDefaults) {
  auto update = [](double tracker, double foundInf) {
    return valuesOf(runOp("update_scale_", {one(8), one(tracker, DType::I32), one(foundInf)}))[0];
  };
  EXPECT_EQ(update(1999, 0), Values{16});
  EXPECT_EQ(update(1998, 0), Values{8});
  EXPECT_EQ(update(1999, 1), Values{4});
}

// 8-bit floats are declined, bf16 is not.
TEST(GradientKernels, DeclinesDTypes) {
  auto why = [](DType dtype) { return whyDeclined("global_norm", {{dtype, {2}}}); };
  EXPECT_EQ(why(DType::F8E4M3), "has no host kernel for dtype f8e4m3");
  EXPECT_EQ(why(DType::BF16), "");
}

} // namespace
