//===- HostScalarsTesting.h - Host scalars that change -----------*- C++ -*-===//
//
// Learning rates and counts of steps: a graph follows them. Flags: it is one of several by their
// values. Never are they frozen.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "EveryDeviceTesting.h"

#include <cmath>
#include <limits>

namespace rondo {

class HostScalarsTest : public EveryDeviceTest {
protected:
  /// With the cache of its regions.
  void compileStep(llvm::StringRef text) {
    CUDAGraphTransform transform(graphOptions());
    ProgramOptions options = poisoned();
    options.checkGraphs = true;
    program = compileWith(transform, text, options);
    cache = GraphCache::find(transform.domain(), *device);
  }

  Tensor integersOf(llvm::ArrayRef<int64_t> values) {
    Tensor tensor = cantFail(Tensor::empty(device, DType::I64, {int64_t(values.size())}));
    transfer(device, tensor.data(), values.data(), values.size() * sizeof(int64_t));
    return tensor;
  }

  std::optional<Program> program;
  std::shared_ptr<GraphCache> cache;
};

// A host scalar that changes on every call is never frozen, and needs no graph of its own: the one
// that is there follows.
TEST_P(HostScalarsTest, Patched) {
  compileStep(twoRegionsWithRate);
  for (unsigned i = 1; i <= 100; ++i) {
    double rate = 0.5 * i;
    auto results = forward(*program, {tensorOf(device, {1, 2}), Value(rate)});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_THAT(numbersOn(results[0]), testing::ElementsAre(2 * rate, 4 * rate));
    EXPECT_EQ(*results[1].asFloat(), -6);
  }
  CacheCounters counters = program->counters();
  EXPECT_EQ(counters.captures, 2u);
  EXPECT_EQ(counters.eagerRuns, 2u);
  EXPECT_GE(counters.patches, 99u);
  EXPECT_EQ(counters.recaptures, 0u);
}

// A scalar that a graph cannot follow, as nothing tells it from others, is a part of the key: each
// value has a graph, results are right, the number of graphs is bounded, and a region that is
// replayed all the time is not the one to go.
TEST_P(HostScalarsTest, Keyed) {
  compileStep(R"(
trace @t(%x: f32[2], %flag: bool, %other: bool) {
  %a: f32[2] = neg(%x)
  %b: f32[2] = add(%a, %a)
  %s: f32[] = sum(%b)
  %i: f64 = item(%s)
  %c: f32[2] = mul(%b, %flag)
  %d: f32[2] = mul(%c, %other)
  return(%d, %i)
})");
  cache->setMaxEntries(3);
  for (unsigned i = 0; i < 100; ++i) {
    bool flag = i & 1, other = i & 2;
    auto results = forward(*program, {tensorOf(device, {1, 2}), Value(flag), Value(other)});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_THAT(numbersOn(results[0]),
                testing::ElementsAre(flag && other ? -2 : 0, flag && other ? -4 : 0));
    EXPECT_EQ(*results[1].asFloat(), -6);
    EXPECT_LE(program->counters().entries, 3u);
  }
  CacheCounters counters = program->counters();
  EXPECT_GT(counters.captures, 5u) << "one of the first region, others of four values";
  EXPECT_GT(counters.evictions, 1u);
  EXPECT_GE(counters.replays, 99u) << "of the first region, at least";
}

// An optimiser step takes its learning rate on every call.
TEST_P(HostScalarsTest, LearningRate) {
  compileStep(R"(
trace @t(%p: f32[2] parameter, %g: f32[2], %lr: f64) {
  %h: f32[2] = mul(%g, %lr)
  %new: f32[2] = sgd_(%p, %g, none, %lr)
  return(%h)
})");
  cache->setMaxEntries(2);
  Tensor p = filled(device, 0, 2);
  double expected = 0;
  for (unsigned i = 0; i < 40; ++i) {
    double rate = i % 3 ? 0.25 * (i % 7) : 0.5; // some again, some new
    auto results = forward(*program, {p, tensorOf(device, {1, 2}), Value(rate)});
    expected -= rate;
    EXPECT_EQ(numbersOn(p)[0], expected);
    EXPECT_EQ(numbersOn(p)[1], 2 * expected);
    EXPECT_EQ(numbersOn(results[0])[0], rate);
    EXPECT_LE(program->counters().entries, 2u);
  }
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().replays, 39u);
  EXPECT_EQ(program->counters().recaptures, 0u);
}

// 21: a factor that grows with every step, and a flag that is not set in the first microbatch: the
// graph follows the factor, and there is one for each value of the flag.
TEST_P(HostScalarsTest, Case21FactorAndFlag) {
  compileStep(R"(
trace @t(%sum: f32[4] buffer, %x: f32[4], %factor: f64, %keep: bool) {
  %a: f32[4] = mul(%x, %factor)
  %old: f32[4] = mul(%sum, %keep)
  %new: f32[4] = add(%old, %a)
  %out: f32[4] = copy_(%sum, %new)
  return(%new)
})");
  Tensor sum = filled(device, 7, 4);
  double expected = 0;
  for (unsigned i = 0; i < 40; ++i) {
    bool isFirst = i % 4 == 0;
    Results results = forward(*program, {sum, filled(device, 2, 4), double(i), !isFirst});
    expected = (isFirst ? 0 : expected) + 2 * double(i);
    EXPECT_EQ(numbersOn(results[0]), std::vector<double>(4, expected));
    EXPECT_EQ(numbersOn(sum), std::vector<double>(4, expected));
  }
  EXPECT_EQ(program->counters().captures, 2u);
  EXPECT_EQ(program->counters().replays, 38u);
  EXPECT_EQ(program->counters().recaptures, 0u);
}

// 21: a count of steps. A graph follows it, also where a kernel computes in f32.
TEST_P(HostScalarsTest, Case21Step) {
  compileStep(R"(
trace @t(%x: f32[4], %step: i64) {
  %a: f32[4] = mul(%x, %step)
  %y: f32[4] = add(%a, %x)
  return(%y)
})");
  for (int64_t step = 1; step <= 40; ++step)
    for (unsigned call = 0; call < 2; ++call) {
      Results results = forward(*program, {filled(device, 2, 4), step});
      EXPECT_EQ(numbersOn(results[0]), std::vector<double>(4, 2 * double(step) + 2));
    }
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().replays, 79u);
  EXPECT_EQ(program->counters().recaptures, 0u);
}

// Learning rate and count of steps of Adam change on every step: it is one graph, captured once.
TEST_P(HostScalarsTest, LearningRateAndStep) {
  compileStep(R"(
trace @t(%p: f32[2] parameter, %m: f32[2] buffer, %v: f32[2] buffer, %g: f32[2],
         %step: i64, %lr: f64) {
  %h: f32[2] = mul(%g, %step)
  %p2: f32[2], %m2: f32[2], %v2: f32[2] = adam_(%p, %g, %m, %v, %step, %lr)
  return(%h)
})");
  Tensor p = filled(device, 0, 2), m = filled(device, 0, 2), v = filled(device, 0, 2);
  double expected = 0, mean = 0, square = 0;
  for (int64_t step = 1; step <= 100; ++step) {
    double rate = 0.5 / double(step), gradient = step % 3 - 0.5;
    Results results = forward(*program, {p, m, v, filled(device, gradient, 2), step, rate});
    mean = 0.9 * mean + 0.1 * gradient;
    square = 0.999 * square + 0.001 * gradient * gradient;
    expected -= rate * mean / (1 - std::pow(0.9, step)) /
                (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
    EXPECT_EQ(numbersOn(results[0])[1], gradient * double(step));
    EXPECT_NEAR(numbersOn(p)[1], expected, 1e-4) << "step " << step;
  }
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().replays, 99u);
  EXPECT_EQ(program->counters().recaptures, 0u);
}

// Not one bit of an integer is lost on its way into a kernel, and what computes in f32 rounds it
// once, to the nearest.
TEST_P(HostScalarsTest, LargeIntegers) {
  compileStep(R"(
trace @t(%x: i64[3], %mask: bool[3], %y: i64[3] buffer, %one: f32[3], %number: i64) {
  %d: i64[3] = sub(%x, %number)
  %e: bool[3] = gt(%x, %number)
  %n: i64[3] = masked_fill(%x, %mask, %number)
  %s: i64[3] = sub(%n, %x)
  %z: i64[3] = fill_(%y, %number)
  %r: i64[3] = sub(%z, %x)
  %f: f32[3] = mul(%one, %number)
  return(%d, %e, %s, %r, %f)
})");
  Tensor y = integersOf({0, 0, 0}), mask = cantFail(Tensor::empty(device, DType::Bool, {3}));
  const bool isMasked[] = {false, true, true};
  transfer(device, mask.data(), isMasked, sizeof(isMasked));
  const std::pair<int64_t, double> numbers[] = {
      {(int64_t(1) << 24) + 1, 0x1p24},
      {(int64_t(1) << 24) + 3, 0x1p24 + 4},
      {(int64_t(1) << 53) + 1, 0x1p53},
      {-(int64_t(1) << 53) - 1, -0x1p53},
      // By way of a double, that would be rounded to 2^54.
      {(int64_t(1) << 54) + (int64_t(1) << 30) + 1, 0x1p54 + 0x1p31},
      {std::numeric_limits<int64_t>::max(), 0x1p63}};
  for (auto [number, inF32] : numbers)
    for (unsigned call = 0; call < 2; ++call) {
      SCOPED_TRACE(number);
      Tensor x = integersOf({number, number - 1, number - 2});
      Results results = forward(*program, {x, mask, y, filled(device, 1, 3), number});
      EXPECT_THAT(numbersOn(results[0]), testing::ElementsAre(0, -1, -2));
      EXPECT_THAT(numbersOn(results[1]), testing::ElementsAre(0, 0, 0));
      EXPECT_THAT(numbersOn(results[2]), testing::ElementsAre(0, 1, 2));
      EXPECT_THAT(numbersOn(results[3]), testing::ElementsAre(0, 1, 2));
      EXPECT_THAT(numbersOn(results[4]), testing::Each(inF32));
    }
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().recaptures, 0u);
}

// A tensor is filled with a scalar of another kind as a cast converts it, by one graph.
TEST_P(HostScalarsTest, Fill) {
  compileStep(R"(
trace @t(%a: i64[3] buffer, %b: f32[3] buffer, %c: bf16[3] buffer, %d: bool[3] buffer,
         %e: f32[3] buffer, %x: f64, %i: i64) {
  %a2: i64[3] = fill_(%a, %x)
  %b2: f32[3] = fill_(%b, %x)
  %c2: bf16[3] = fill_(%c, %x)
  %d2: bool[3] = fill_(%d, %x)
  %e2: f32[3] = fill_(%e, %i)
  %b3: f32[3] = add(%b2, %e2)
  return(%b3)
})");
  auto empty = [&](DType dtype) { return cantFail(Tensor::empty(device, dtype, {3})); };
  Tensor a = empty(DType::I64), b = empty(DType::F32), c = empty(DType::BF16),
         d = empty(DType::Bool), e = empty(DType::F32);
  for (double number : {3.75, -3.75, 0.0, 1e-3, 257.0, 1e6 + 0.75}) {
    SCOPED_TRACE(number);
    int64_t integer = 7 + int64_t(number);
    Results results = forward(*program, {a, b, c, d, e, number, integer});
    EXPECT_THAT(numbersOn(a), testing::Each(std::trunc(number)));
    EXPECT_THAT(numbersOn(b), testing::Each(double(float(number))));
    EXPECT_THAT(numbersOn(c), testing::Each(testing::DoubleNear(number, std::abs(number) / 256)));
    EXPECT_THAT(numbersOn(d), testing::Each(number != 0));
    EXPECT_THAT(numbersOn(e), testing::Each(double(integer)));
    EXPECT_THAT(numbersOn(results[0]), testing::Each(double(float(number) + float(integer))));
  }
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().replays, 5u);
  EXPECT_EQ(program->counters().recaptures, 0u);
}

} // namespace rondo
