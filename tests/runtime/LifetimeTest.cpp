//===- LifetimeTest.cpp - Who may go when ---------------------------------===//
//
// Transforms, programs, caches, devices, streams and results may go in any order; what goes last
// takes the memory with it.
//
//===----------------------------------------------------------------------===//

#include "LifetimeTesting.h"

using namespace rondo;

namespace {

class LifetimeTest : public LifetimeFixture {
protected:
  LifetimeTest() { useTarget({createHostDevice(), {&host}}); }
  HostExecutor host;
};

// In whatever order everything goes, nothing is used that is gone, and all memory comes back.
TEST(DestructionOrderTest, AnyOrder) {
  CoreRegistry registry;
  HostExecutor host;
  MemoryLog memory;
  std::vector<unsigned> order(Cast::size);
  std::iota(order.begin(), order.end(), 0);
  unsigned numOrders = 0;
  do {
    HostDeviceOptions options;
    options.memoryHook = memory.hook();
    Cast cast(cantFail(parsePair(lifetimeStep, "test", registry)),
              {createHostDevice(options), {&host}});
    ASSERT_TRUE(cast.cache);
    EXPECT_GT(memory.bytes(), 0);
    for (unsigned member : order) {
      cast.drop(member);
      if (cast.program && cast.cache) {
        EXPECT_EQ(cast.cache->counters().entries, 1u);
      }
    }
    ASSERT_EQ(memory.bytes(), 0) << testing::PrintToString(order);
    ++numOrders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(numOrders, 5040u);
}

// Two transforms share nothing, though they cut the same trace for the same device.
TEST_F(LifetimeTest, TwoTransforms) {
  CUDAGraphTransform a(graphOptions()), b(graphOptions());
  Program ofA = compileStep(a), ofB = compileStep(b);
  std::shared_ptr<GraphCache> cacheA = GraphCache::find(a.domain(), *device),
                              cacheB = GraphCache::find(b.domain(), *device);
  ASSERT_TRUE(cacheA && cacheB);
  EXPECT_NE(cacheA, cacheB);
  play(ofA, 3);
  EXPECT_EQ(cacheA->counters().entries, 2u);
  EXPECT_EQ(cacheA->counters().replays, 4u);
  EXPECT_EQ(cacheB->counters().entries, 0u);
  EXPECT_EQ(cacheB->counters().captures, 0u);
  play(ofB, 2);
  EXPECT_EQ(cacheB->counters().entries, 2u);
  EXPECT_EQ(cacheB->counters().replays, 2u);
  EXPECT_EQ(cacheA->counters().replays, 4u);
  EXPECT_EQ(ofB.counters().replays, 2u) << "a program's counters are those of its own cache";

  // Neither does the same transform on another device, or one that was never run.
  EXPECT_FALSE(GraphCache::find(a.domain(), *createHostDevice()));
  EXPECT_FALSE(GraphCache::find(CUDAGraphTransform().domain(), *device));
}

// Two programs through one transform share its cache and no entry: what one does to its entries is
// nothing to the other.
TEST_F(LifetimeTest, TwoProgramsOfOneTransform) {
  CUDAGraphTransform transform(graphOptions());
  Program kept = compileStep(transform);
  std::optional<Program> gone = compileStep(transform);
  std::shared_ptr<GraphCache> cache = GraphCache::find(transform.domain(), *device);
  ASSERT_TRUE(cache);
  play(kept, 2);
  EXPECT_EQ(cache->counters().entries, 2u);
  play(*gone, 2);
  EXPECT_EQ(cache->counters().entries, 4u);
  EXPECT_EQ(cache->counters().captures, 4u);
  EXPECT_EQ(kept.counters().captures, 4u) << "the cache's";

  gone->trim();
  EXPECT_EQ(cache->counters().entries, 2u) << "those of the other program stay";
  play(kept);
  EXPECT_EQ(cache->counters().captures, 4u);
  play(*gone, 2);
  EXPECT_EQ(cache->counters().entries, 4u);
  EXPECT_EQ(cache->counters().captures, 6u);

  gone.reset();
  EXPECT_EQ(cache->counters().entries, 2u);
  play(kept);
  EXPECT_EQ(cache->counters().captures, 6u);
}

// The cache goes with the last of transform and programs, not before, and with it its graphs.
TEST_F(LifetimeTest, CacheGoesLast) {
  for (bool programFirst : {false, true}) {
    auto transform = std::make_unique<CUDAGraphTransform>(graphOptions());
    std::optional<Program> program = compileStep(*transform);
    play(*program, 2);
    std::weak_ptr<GraphCache> cache = GraphCache::find(transform->domain(), *device);
    EXPECT_FALSE(cache.expired());
    if (programFirst) {
      program.reset();
      ASSERT_FALSE(cache.expired()) << "the transform holds it";
      EXPECT_EQ(cache.lock()->counters().entries, 0u);
      transform.reset();
    } else {
      transform.reset();
      ASSERT_FALSE(cache.expired()) << "the program holds it";
      play(*program);
      EXPECT_EQ(cache.lock()->counters().entries, 2u);
      program.reset();
    }
    EXPECT_TRUE(cache.expired());
  }
}

// After `reset` a cache is as new: calls capture again and give the same.
TEST_F(LifetimeTest, Reset) {
  CUDAGraphTransform transform(graphOptions());
  Program program = compileStep(transform);
  std::shared_ptr<GraphCache> cache = GraphCache::find(transform.domain(), *device);
  for (unsigned round = 0; round < 3; ++round) {
    play(program, 3);
    CacheCounters counters = program.counters();
    EXPECT_EQ(counters.entries, 2u);
    EXPECT_EQ(counters.captures, 2u);
    EXPECT_EQ(counters.replays, 4u);
    cache->reset();
    EXPECT_EQ(program.counters().entries, 0u);
    EXPECT_EQ(program.counters().captures + program.counters().replays +
                  program.counters().eagerRuns + program.counters().copiedBytes,
              0u);
  }
}

// A program that moves keeps its graphs; one that is assigned over goes.
TEST_F(LifetimeTest, MovedProgram) {
  CUDAGraphTransform transform(graphOptions());
  Program a = compileStep(transform);
  play(a, 2);
  Program b = std::move(a);
  play(b);
  EXPECT_EQ(b.counters().captures, 2u);
  b = compileStep(transform);
  EXPECT_EQ(b.counters().entries, 0u);
  play(b, 2);
}

//===----------------------------------------------------------------------===//
// Work in flight
//===----------------------------------------------------------------------===//

/// A device whose streams run by themselves. The trace needs no memory but for its result, so that
/// nothing waits for the device but the program itself.
class InFlightTest : public CallTest {
protected:
  InFlightTest() : CallTest(asynchronous()) {}
  static HostDeviceOptions asynchronous() {
    HostDeviceOptions options;
    options.asynchronous = true;
    return options;
  }
  static constexpr llvm::StringLiteral text = R"(
trace @f(%x: f32[8] static) {
  %y: f32[8] = exp(%x)
  return(%y)
})";
  Tensor x = filled(device, 0, 8);
  Results results;
};

// A program that is destroyed, or trimmed, while the device has not begun its calls waits for them,
// eager and replayed.
TEST_F(InFlightTest, ProgramWaits) {
  for (bool isEager : {true, false}) {
    for (bool isTrimmed : {false, true}) {
      SCOPED_TRACE(testing::Message() << "eager " << isEager << " trimmed " << isTrimmed);
      std::optional<Program> program = compileText(text);
      program->setEager(isEager);
      if (!isEager)
        forward(*program, {x});
      results.clear(); // freeing memory would wait for the gate
      Gate gate;
      gate.close(*stream);
      cantFail(program->forward(*stream, {x}, results));
      EXPECT_FALSE(gate.isPassedBy([&] {
        if (isTrimmed)
          program->trim();
        else
          program.reset();
      }));
      cantFail(stream->synchronize());
      EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, 1));
      EXPECT_EQ(program.has_value(), isTrimmed);
    }
  }
}

// It waits for the streams of all calls, not only for the last one's.
TEST_F(InFlightTest, ProgramWaitsForAllStreams) {
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  ProgramOptions options = steadyOptions();
  options.maxLanes = 2;
  std::optional<Program> program = compileText(text, options);
  program->setEager(true);
  Gate gate;
  gate.close(*stream);
  Results otherResults;
  cantFail(program->forward(*stream, {x}, results));
  cantFail(program->forward(*other, {x}, otherResults));
  EXPECT_FALSE(gate.isPassedBy([&] { program.reset(); }));
  cantFail(stream->synchronize());
  cantFail(other->synchronize());
  EXPECT_EQ(numbersOf(results[0]), numbersOf(otherResults[0]));
}

// A size that is not kept goes when the device is done with it: its kernels may not have begun.
TEST_F(InFlightTest, VariantThatGoes) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 1;
  Program program = compileText(R"(
trace @f(%x: f32[B] static) {
  %y: f32[B] = exp(%x)
  return(%y)
})",
                                options);
  program.setEager(true);
  Gate gate;
  gate.close(*stream);
  cantFail(program.forward(*stream, {x}, results)); // holds its memory
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  Tensor shorter = filled(device, 0, 7);
  Results otherResults;
  EXPECT_FALSE(
      gate.isPassedBy([&] { cantFail(program.forward(*other, {shorter}, otherResults)); }));
  cantFail(stream->synchronize());
  cantFail(other->synchronize());
  EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, 1));
  EXPECT_EQ(numbersOf(otherResults[0]), std::vector<double>(7, 1));
}

} // namespace
