//===- HostScalarsTesting.h - Host scalars that change -----------*- C++ -*-===//
//
// Learning rates, counts of steps, flags: a graph follows them, or is one of several by their
// values. Never are they frozen.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "EveryDeviceTesting.h"

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

// 21: a count of steps. A kernel that computes in f32 may hold it in f32, which a graph cannot
// follow; then each value has a graph. Results are right, and graphs are bounded.
TEST_P(HostScalarsTest, Case21Step) {
  compileStep(R"(
trace @t(%x: f32[4], %step: i64) {
  %a: f32[4] = mul(%x, %step)
  %y: f32[4] = add(%a, %x)
  return(%y)
})");
  cache->setMaxEntries(8);
  for (int64_t step = 1; step <= 40; ++step)
    for (unsigned call = 0; call < 2; ++call) {
      Results results = forward(*program, {filled(device, 2, 4), step});
      EXPECT_EQ(numbersOn(results[0]), std::vector<double>(4, 2 * double(step) + 2));
      EXPECT_LE(program->counters().entries, 8u);
    }
  EXPECT_GT(program->counters().replays, 0u);
  EXPECT_EQ(program->counters().recaptures, 0u);
}

} // namespace rondo
