//===- RandomKernelsTest.cpp ----------------------------------------------===//

#include "RunOp.h"

#include "rondo/executors/Philox.h"

#include <algorithm>
#include <numeric>

using namespace rondo;

namespace {

using List = std::vector<double>;
using Ints = llvm::SmallVector<int64_t, 4>;

constexpr DType floats[] = {DType::F32, DType::F64, DType::BF16, DType::F16};

double mean(const List &x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size());
}
double variance(const List &x) {
  double center = mean(x), squares = 0;
  for (double value : x)
    squares += (value - center) * (value - center);
  return squares / double(x.size());
}

List draw(const char *op, RNGState state, std::vector<AttributeInit> attributes) {
  return valuesOf(runOp(op, {state}, attributes)[0]);
}

/// Element i of an op with offset o is made of number base + o + i: the same number gives the same
/// element, wherever state, offset and index split it, and whatever the result's strides.
TEST(RandomKernels, NumbersHavePositions) {
  struct {
    const char *op;
    std::vector<AttributeInit> attributes;
  } cases[] = {{"uniform", {{"dtype", DType::F32}}},
               {"normal", {{"dtype", DType::F64}}},
               {"randint", {{"dtype", DType::I64}, {"high", 1000}}}};
  for (const auto &test : cases) {
    SCOPED_TRACE(test.op);
    auto at = [&](uint64_t base, int64_t offset, Ints shape) {
      std::vector<AttributeInit> attributes = test.attributes;
      attributes.insert(attributes.end(), {{"offset", offset}, {"shape", shape}});
      return draw(test.op, {42, base}, attributes);
    };
    List all = at(100, 0, {4, 5});
    for (int64_t skip : {1, 2, 3, 7}) {
      List rest(all.begin() + skip, all.end());
      EXPECT_EQ(at(100, skip, {20 - skip}), rest);
      EXPECT_EQ(at(100 + skip, 0, {20 - skip}), rest);
    }
    EXPECT_NE(at(120, 0, {4, 5}), all);
    std::vector<AttributeInit> attributes = test.attributes;
    attributes.insert(attributes.end(), {{"offset", 0}, {"shape", Ints{4, 5}}});
    DType dtype = *test.attributes[0].second.asDType();
    Type columns = TensorType(dtype, {4, 5}, {1, 4}, Device::host());
    RNGState state{42, 100};
    EXPECT_EQ(valuesOf(runOp(test.op, {state}, attributes, nullptr, {columns})[0]), all);
    EXPECT_EQ(at(0, 0, {0}), List());
    RNGState other{43, 100};
    EXPECT_NE(valuesOf(runOp(test.op, {other}, attributes)[0]), all);
  }
}

/// Uniform numbers are the first bits of their words, scaled, and stay below `high` in every dtype.
TEST(RandomKernels, Uniform) {
  for (DType dtype : floats) {
    SCOPED_TRACE(dtypeName(dtype).str());
    List x = draw("uniform", {7, 3}, {{"offset", 2}, {"shape", Ints{20000}}, {"dtype", dtype}});
    unsigned bits = dtype == DType::F16    ? 11
                    : dtype == DType::BF16 ? 8
                    : dtype == DType::F64  ? 32
                                           : 24;
    for (size_t i = 0; i < 10; ++i)
      EXPECT_EQ(x[i], philox::uniform(philox::word(7, 5 + i), bits));
    EXPECT_GE(*std::min_element(x.begin(), x.end()), 0);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 1);
    EXPECT_NEAR(mean(x), 0.5, 0.01);
    EXPECT_NEAR(variance(x), 1.0 / 12, 0.01);
    List y =
        draw("uniform", {7, 3},
             {{"offset", 0}, {"shape", Ints{2000}}, {"dtype", dtype}, {"low", 256}, {"high", 257}});
    EXPECT_GE(*std::min_element(y.begin(), y.end()), 256);
    EXPECT_LT(*std::max_element(y.begin(), y.end()), 257);
  }
}

/// Normal numbers are those of Box and Muller at their positions, scaled and shifted.
TEST(RandomKernels, Normal) {
  for (DType dtype : floats) {
    SCOPED_TRACE(dtypeName(dtype).str());
    List x =
        draw("normal", {7, 1},
             {{"offset", 0}, {"shape", Ints{20001}}, {"dtype", dtype}, {"mean", 3}, {"std", 2}});
    List expected(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      expected[i] = 3 + 2 * philox::normal(7, 1 + i);
    EXPECT_LE(relativeError(x, expected), toleranceOf(dtype));
    EXPECT_NEAR(mean(x), 3, 0.05);
    EXPECT_NEAR(variance(x), 4, 0.15);
  }
}

/// Integers lie in [low, high) and take every value about equally often, in any dtype.
TEST(RandomKernels, Randint) {
  for (DType dtype : {DType::I64, DType::I8, DType::F32}) {
    List x =
        draw("randint", {7, 1},
             {{"offset", 0}, {"shape", Ints{6000}}, {"dtype", dtype}, {"low", -3}, {"high", 3}});
    for (int value = -3; value < 3; ++value)
      EXPECT_NEAR(double(std::count(x.begin(), x.end(), value)), 1000, 120);
  }
}

/// dropout keeps an element where its uniform number is not below p, scales it, and says which.
TEST(RandomKernels, Dropout) {
  for (DType dtype : floats) {
    for (Layout layout : allLayouts) {
      SCOPED_TRACE((dtypeName(dtype) + " " + layoutName(layout)).str());
      Tensor x = withLayout(tensorOf(dtype, {40, 50}, randomValues(2000, 4)), layout);
      RNGState state{11, 5};
      std::vector<Value> results =
          runOp("dropout", {x, state}, {{"offset", 3}, {"p", 0.25}, {"mask_dtype", DType::Bool}});
      List in = valuesOf(x), out = valuesOf(results[0]), mask = valuesOf(results[1]);
      List expected(in.size()), kept(in.size());
      for (size_t i = 0; i < in.size(); ++i) {
        kept[i] = philox::uniform(philox::word(11, 8 + i), 24) >= 0.25;
        expected[i] = kept[i] != 0 ? in[i] / 0.75 : 0;
      }
      EXPECT_EQ(mask, kept);
      EXPECT_NEAR(mean(mask), 0.75, 0.05);
      EXPECT_LE(relativeError(out, expected), toleranceOf(dtype));
      // Its gradient goes the same way.
      List grad = valuesOf(
          runOp("dropout_backward", {x, *results[1].asTensor()}, {{"scale", 1 / 0.75}})[0]);
      EXPECT_LE(relativeError(grad, expected), toleranceOf(dtype));
    }
  }
}

/// p = 0 keeps all, p = 1 none, and the mask may be of another dtype.
TEST(RandomKernels, DropoutAtTheEnds) {
  Tensor x = tensorOf(DType::F32, {3}, {1, -2, std::numeric_limits<double>::infinity()});
  RNGState state{11, 5};
  auto run = [&](double p, DType mask) {
    return runOp("dropout", {x, state}, {{"offset", 0}, {"p", p}, {"mask_dtype", mask}});
  };
  EXPECT_EQ(valuesOf(run(0, DType::F32)[0]), valuesOf(x));
  EXPECT_EQ(valuesOf(run(0, DType::F32)[1]), List(3, 1));
  EXPECT_EQ(valuesOf(run(1, DType::U8)[0]), List(3, 0));
  EXPECT_EQ(valuesOf(run(1, DType::U8)[1]), List(3, 0));
}

/// bernoulli gives 1 as often as p says, never for 0, always for 1.
TEST(RandomKernels, Bernoulli) {
  for (DType dtype : floats) {
    for (Layout layout : allLayouts) {
      List values(2000);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = i % 4 == 0 ? 0 : i % 4 == 1 ? 1 : 0.5;
      Tensor p = withLayout(tensorOf(dtype, {20, 100}, values), layout);
      RNGState state{5, 9};
      List out = valuesOf(runOp("bernoulli", {p, state}, {{"offset", 1}})[0]);
      for (size_t i = 0; i < out.size(); ++i)
        EXPECT_EQ(out[i], philox::uniform(philox::word(5, 10 + i), 24) < valuesOf(p)[i]);
      EXPECT_NEAR(mean(out), 0.5, 0.05);
    }
  }
}

/// With replacement, indices come as often as their weights say, row by row; a weight of 0 never.
TEST(RandomKernels, MultinomialWithReplacement) {
  for (Layout layout : {Layout::Contiguous, Layout::Transposed, Layout::Sliced}) {
    Tensor w = withLayout(tensorOf(DType::F32, {2, 3}, {1, 0, 3, 5, 5, 0}), layout);
    RNGState state{5, 9};
    List out = valuesOf(
        runOp("multinomial", {w, state}, {{"offset", 0}, {"n", 4000}, {"replacement", true}})[0]);
    auto count = [&](size_t row, double value) {
      auto begin = out.begin() + row * 4000;
      return double(std::count(begin, begin + 4000, value));
    };
    EXPECT_NEAR(count(0, 0), 1000, 120);
    EXPECT_EQ(count(0, 1), 0);
    EXPECT_NEAR(count(0, 2), 3000, 120);
    EXPECT_NEAR(count(1, 0), 2000, 150);
    EXPECT_EQ(count(1, 2), 0);
  }
}

/// Without replacement no index comes twice, heavy ones come early, and n numbers are drawn a row.
TEST(RandomKernels, MultinomialWithoutReplacement) {
  Tensor w = tensorOf(DType::F64, {4}, {1, 1, 0, 8});
  int heavyFirst = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    RNGState state{5, 3 * i};
    List out = valuesOf(runOp("multinomial", {w, state}, {{"offset", 0}, {"n", 3}})[0]);
    heavyFirst += out[0] == 3;
    std::sort(out.begin(), out.end());
    EXPECT_EQ(out, (List{0, 1, 3}));
  }
  EXPECT_NEAR(heavyFirst, 160, 30);
  RNGState state{5, 0}, later{5, 2};
  Tensor rows = tensorOf(DType::F64, {2, 4}, {1, 1, 1, 1, 1, 1, 1, 1});
  List both = valuesOf(runOp("multinomial", {rows, state}, {{"offset", 0}, {"n", 2}})[0]);
  Tensor row = tensorOf(DType::F64, {4}, {1, 1, 1, 1});
  EXPECT_EQ(valuesOf(runOp("multinomial", {row, later}, {{"offset", 0}, {"n", 2}})[0]),
            (List{both[2], both[3]}));
}

/// Weights that are no weights count as 0; when none is left, indices still differ.
TEST(RandomKernels, MultinomialOfBadWeights) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor w = tensorOf(DType::F32, {4}, {-1, nan, 2, std::numeric_limits<double>::infinity()});
  RNGState state{1, 2};
  List all = valuesOf(runOp("multinomial", {w, state}, {{"offset", 0}, {"n", 4}})[0]);
  EXPECT_EQ(all, (List{2, 0, 1, 3}));
  Tensor none = tensorOf(DType::F32, {2}, {0, 0});
  EXPECT_EQ(valuesOf(runOp("multinomial", {none, state},
                           {{"offset", 0}, {"n", 2}, {"replacement", true}})[0]),
            (List{0, 0}));
}

/// advance adds to the base, mod 2^64; seed sets the seed and goes back to base 0.
TEST(RandomKernels, GeneratorsAdvanceAndAreSeeded) {
  RNGState state{5, ~uint64_t(0)};
  runOp("generator_advance", {}, {{"count", 3}}, &state);
  EXPECT_EQ(state.seed, 5U);
  EXPECT_EQ(state.offset, 2U);
  runOp("generator_seed", {Value(int64_t(-1))}, {}, &state);
  EXPECT_EQ(state.seed, ~uint64_t(0));
  EXPECT_EQ(state.offset, 0U);
}

/// read copies the state: what happens to the generator later does not change it.
TEST(RandomKernels, GeneratorReadCopies) {
  OpRegistry registry;
  cantFail(registerCoreOps(registry));
  HostExecutor executor;
  Type rng = RNGStateType{};
  const Type *results[] = {&rng};
  OpContext op(*registry.lookup("generator_read"), {}, {}, results);
  llvm::Expected<HostKernelFn> read = executor.find("generator_read")->make(op);
  ASSERT_TRUE(bool(read));
  RNGState generator{5, 6}, copy;
  RNGState *generators[] = {&generator};
  Slot result;
  result.address = &copy;
  KernelArgs raw{{}, result, nullptr, generators};
  TensorRef none;
  (*read)(HostArgs({}, none, {}, raw));
  generator.offset = 100;
  EXPECT_EQ(copy.seed, 5U);
  EXPECT_EQ(copy.offset, 6U);
}

TEST(RandomKernels, EveryOpHasAKernel) {
  HostExecutor executor;
  for (const char *op : {"dropout", "dropout_backward", "uniform", "normal", "randint", "bernoulli",
                         "multinomial", "generator_read", "generator_advance", "generator_seed"})
    EXPECT_NE(executor.find(op), nullptr) << op;
}

} // namespace
