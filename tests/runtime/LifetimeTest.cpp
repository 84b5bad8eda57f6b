//===- LifetimeTest.cpp - Who may go when ---------------------------------===//
//
// Transforms, programs, caches, devices, streams and results may go in any order; what goes last
// takes the memory with it.
//
//===----------------------------------------------------------------------===//

#include "CallTesting.h"

using namespace rondo;

namespace {

constexpr llvm::StringLiteral step = R"(
pair @step {
  forward @forward(%x: f32[32], %w: f32[32] parameter) {
    %a: f32[32] = mul(%x, %w)
    %y: f32[32] = add(%a, %x)
    return(%y, %a saved #0, %w saved #1)
  }
  backward @backward(%a: f32[32] saved #0, %w: f32[32] parameter saved #1, %g: f32[32]) {
    %b: f32[32] = mul(%a, %g)
    %c: f32[32] = add(%b, %w)
    return(%c)
  }
})";

class LifetimeTest : public CallTest {
protected:
  Program compileWith(CUDAGraphTransform &transform, llvm::StringRef text = step) {
    return cantFail(compile(parse(text), device, &host, pipelineWith(transform, host)));
  }

  /// Forward and backward `count` times, and what they have to give.
  void play(Program &program, unsigned count = 1) {
    for (unsigned i = 0; i < count; ++i) {
      float x = float(++numSteps_);
      SavedState saved;
      Results results = forward(program, {filled(device, x, 32), w_}, &saved);
      EXPECT_EQ(numbersOf(results[0]), std::vector<double>(32, 2 * x + x));
      Results gradients = backward(program, std::move(saved), {filled(device, 3, 32)});
      EXPECT_EQ(numbersOf(gradients[0]), std::vector<double>(32, 2 * x * 3 + 2));
    }
  }

private:
  unsigned numSteps_ = 0;
  Tensor w_ = filled(device, 2, 32);
};

/// All that a call of a program involves. `drop` lets go of one.
struct Cast {
  static constexpr unsigned size = 7;

  DeviceRef device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<CUDAGraphTransform> transform;
  std::optional<Program> program;
  std::shared_ptr<GraphCache> cache;
  Results results;
  SavedState saved;

  Cast(const OpRegistry &registry, const HostExecutor &host, const MemoryLog &memory) {
    HostDeviceOptions options;
    options.memoryHook = memory.hook();
    device = createHostDevice(options);
    stream = cantFail(device->createStream());
    transform = std::make_unique<CUDAGraphTransform>(graphOptions());
    program = cantFail(compile(cantFail(parsePair(step, "test", registry)), device, &host,
                               pipelineWith(*transform, host)));
    cache = GraphCache::find(transform->domain(), *device);
    std::vector<Value> inputs = {filled(device, 1, 32), filled(device, 2, 32)};
    for (unsigned i = 0; i < 3; ++i) // eagerly, replayed, and one whose state stays
      cantFail(program->forward(*stream, inputs, results, &saved));
  }

  void drop(unsigned member) {
    switch (member) {
    case 0:
      return device.reset();
    case 1:
      return stream.reset();
    case 2:
      return transform.reset();
    case 3:
      return program.reset();
    case 4:
      return cache.reset();
    case 5:
      return results.clear();
    default:
      saved = SavedState();
    }
  }
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
    Cast cast(registry, host, memory);
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
  Program ofA = compileWith(a), ofB = compileWith(b);
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
  Program kept = compileWith(transform);
  std::optional<Program> gone = compileWith(transform);
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
    std::optional<Program> program = compileWith(*transform);
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
  Program program = compileWith(transform);
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
  Program a = compileWith(transform);
  play(a, 2);
  Program b = std::move(a);
  play(b);
  EXPECT_EQ(b.counters().captures, 2u);
  b = compileWith(transform);
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
  ProgramOptions options;
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

} // namespace
