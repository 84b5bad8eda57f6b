//===- StreamsThreadsTest.cpp - Programs called from several threads ------===//
//
// Threads and streams share programs, transforms and generators. Each thread checks its own
// results; the thread sanitizer checks the rest.
//
//===----------------------------------------------------------------------===//

#include "CallTesting.h"

#include <deque>
#include <latch>

using namespace rondo;

namespace {

constexpr llvm::StringLiteral step = R"(
pair @step {
  forward @forward(%x: f32[32], %w: f32[32] parameter) {
    %a: f32[32] = mul(%x, %w)
    %b: f32[32] = add(%a, %a)
    %y: f32[32] = add(%b, %x)
    return(%y, %a saved #0, %w saved #1)
  }
  backward @backward(%a: f32[32] saved #0, %w: f32[32] parameter saved #1, %g: f32[32]) {
    %b: f32[32] = mul(%a, %g)
    %c: f32[32] = add(%b, %w)
    return(%c)
  }
})";

struct Setting {
  bool isAsynchronous;
  unsigned maxLanes;
};

class StreamsThreadsTest : public testing::TestWithParam<Setting> {
protected:
  static constexpr unsigned numThreads = 8, numSteps = 12;

  StreamsThreadsTest() {
    HostDeviceOptions options;
    options.asynchronous = GetParam().isAsynchronous;
    device = createHostDevice(options);
    w = filled(device, 2, 32);
  }

  Program make(llvm::StringRef text = step, ProgramOptions options = steadyOptions()) {
    options.maxLanes = GetParam().maxLanes;
    options.checkGraphs = true;
    return cantFail(compile(cantFail(parsePair(text, "test", registry)), device, &host,
                            pipelineOf(smallRegions.str(), host), options));
  }

  /// Calls `body` on eight threads at a time, with the thread's number and a stream of its own.
  void onThreads(llvm::function_ref<void(unsigned, Stream &)> body) {
    std::vector<std::thread> threads;
    std::latch start(numThreads);
    for (unsigned i = 0; i < numThreads; ++i)
      threads.emplace_back([&, i] {
        std::unique_ptr<Stream> stream = cantFail(device->createStream());
        start.arrive_and_wait();
        body(i, *stream);
        cantFail(stream->synchronize());
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  static std::vector<double> result(float x) { return std::vector<double>(32, 5 * x); }
  static std::vector<double> gradient(float x) { return std::vector<double>(32, 2 * x * 3 + 2); }

  /// Forward and backward of `program`, checked.
  void play(Program &program, Stream &stream, float x) {
    SavedState saved;
    Results results, gradients;
    cantFail(program.forward(stream, {filled(device, x, 32), w}, results, &saved));
    cantFail(program.backward(stream, std::move(saved), {filled(device, 3, 32)}, gradients));
    cantFail(stream.synchronize());
    EXPECT_EQ(numbersOf(results[0]), result(x));
    EXPECT_EQ(numbersOf(gradients[0]), gradient(x));
  }

  CoreRegistry registry;
  HostExecutor host;
  DeviceRef device;
  Tensor w;
};

// 20: threads that call one program, each on its own stream, get their own results. A region runs
// eagerly once for each of its graphs, no graph is captured twice, and nothing fails.
TEST_P(StreamsThreadsTest, OneProgram) {
  Program program = make();
  onThreads([&](unsigned thread, Stream &stream) {
    for (unsigned i = 0; i < numSteps; ++i)
      play(program, stream, float(thread * numSteps + i));
  });
  CacheCounters counters = program.counters();
  EXPECT_EQ(counters.captures, counters.entries);
  EXPECT_EQ(counters.eagerRuns, counters.captures);
  EXPECT_EQ(counters.eagerRuns + counters.replays, 2u * numThreads * numSteps);
  EXPECT_EQ(counters.recaptures + counters.failures + counters.evictions, 0u);
}

// 20: threads that bring more sizes than are kept get their own results, though what one of them
// calls makes what another called go; no size goes that a state is held of.
TEST_P(StreamsThreadsTest, MoreSizesThanAreKept) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 3;
  std::string text = step.str();
  for (size_t at = 0; (at = text.find("[32]", at)) != std::string::npos;)
    text.replace(at, 4, "[B]");
  Program program = make(text, options);
  onThreads([&](unsigned thread, Stream &stream) {
    for (unsigned i = 0; i < 3 * numSteps; ++i) {
      int64_t size = 1 + (i % 2 ? thread : thread * i) % 7;
      float x = float(thread * numSteps + i);
      SavedState saved;
      Results results, gradients;
      Tensor ones = filled(device, 1, size);
      cantFail(program.forward(stream, {filled(device, x, size), ones}, results, &saved));
      cantFail(program.backward(stream, std::move(saved), {filled(device, 3, size)}, gradients));
      cantFail(stream.synchronize());
      EXPECT_EQ(numbersOf(results[0]), std::vector<double>(size, 3 * x));
      EXPECT_EQ(numbersOf(gradients[0]), std::vector<double>(size, 3 * x + 1));
    }
  });
  // What threads left, all beyond the bound.
  for (int64_t size : {100, 101}) {
    std::unique_ptr<Stream> stream = cantFail(device->createStream());
    Results results;
    Tensor x = filled(device, 1, size);
    cantFail(program.forward(*stream, {x, x}, results));
    cantFail(stream->synchronize());
  }
  std::set<uint64_t> kept;
  for (const EntryStatistics &graph : program.graphs())
    kept.insert(graph.key.program);
  EXPECT_LE(kept.size(), 3u);
}

// 20: where a region touches neither results nor saved values, its lanes are all that its graphs
// differ in: with one lane there is one capture, whoever calls.
TEST_P(StreamsThreadsTest, OneCapturePerLane) {
  Program program = make(R"(
trace @f(%x: f32[64]) {
  %a: f32[64] = add_(%x) {scalar = 1.0}
  %b: f32[64] = add_(%a) {scalar = 1.0}
  return()
})");
  onThreads([&](unsigned, Stream &stream) {
    Tensor x = filled(device, 0, 64);
    for (unsigned i = 1; i <= numSteps; ++i) {
      Results results;
      cantFail(program.forward(stream, {x}, results));
      cantFail(stream.synchronize());
      EXPECT_EQ(numbersOf(Value(x)), std::vector<double>(64, 2 * i));
    }
  });
  CacheCounters counters = program.counters();
  EXPECT_GE(counters.captures, 1u);
  EXPECT_LE(counters.captures, GetParam().maxLanes);
  EXPECT_EQ(counters.entries, counters.captures);
}

// Threads with a program each, through one transform: each has its graphs in the one cache.
TEST_P(StreamsThreadsTest, OneTransform) {
  CUDAGraphTransform transform(graphOptions());
  std::vector<Program> programs;
  for (unsigned i = 0; i < numThreads; ++i)
    programs.push_back(cantFail(compile(cantFail(parsePair(step, "test", registry)), device, &host,
                                        pipelineWith(transform, host))));
  onThreads([&](unsigned thread, Stream &stream) {
    for (unsigned i = 0; i < numSteps; ++i)
      play(programs[thread], stream, float(thread * numSteps + i));
  });
  CacheCounters counters = GraphCache::find(transform.domain(), *device)->counters();
  EXPECT_EQ(counters.entries, 2 * numThreads);
  EXPECT_EQ(counters.captures, 2 * numThreads);
  EXPECT_EQ(counters.replays, 2 * numThreads * (numSteps - 1));
}

// One thread runs forwards, another the backwards that match, on a stream of its own.
TEST_P(StreamsThreadsTest, ForwardHereBackwardThere) {
  Program program = make();
  struct Item {
    float x;
    SavedState saved;
    Results results;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> items;
  constexpr unsigned count = 100;
  std::thread consumer([&] {
    std::unique_ptr<Stream> stream = cantFail(device->createStream());
    for (unsigned i = 0; i < count; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !items.empty(); });
      Item item = std::move(items.front());
      items.pop_front();
      lock.unlock();
      Results gradients;
      cantFail(
          program.backward(*stream, std::move(item.saved), {filled(device, 3, 32)}, gradients));
      cantFail(stream->synchronize());
      EXPECT_EQ(numbersOf(gradients[0]), gradient(item.x));
    }
  });
  std::unique_ptr<Stream> stream = cantFail(device->createStream());
  for (unsigned i = 0; i < count; ++i) {
    Item item{float(i), {}, {}};
    cantFail(program.forward(*stream, {filled(device, item.x, 32), w}, item.results, &item.saved));
    cantFail(stream->synchronize());
    EXPECT_EQ(numbersOf(item.results[0]), result(item.x));
    std::lock_guard lock(mutex);
    items.push_back(std::move(item));
    changed.notify_one();
  }
  consumer.join();
}

// Looking at a program, trimming it and switching it between eager and replay disturb no call.
TEST_P(StreamsThreadsTest, Meddling) {
  Program program = make();
  std::atomic<bool> isDone = false;
  std::thread meddler([&] {
    for (unsigned i = 0; !isDone; ++i) {
      program.setEager(i % 2);
      CacheCounters counters = program.counters();
      EXPECT_EQ(counters.failures, 0u);
      EXPECT_EQ(program.regions().size(), 2u);
      EXPECT_GT(program.memory(Side::Forward).peak(), 0u);
      EXPECT_TRUE(program.takeRemarks().empty());
      if (i % 4 == 0)
        program.trim();
      std::this_thread::yield();
    }
  });
  onThreads([&](unsigned thread, Stream &stream) {
    for (unsigned i = 0; i < numSteps; ++i)
      play(program, stream, float(thread * numSteps + i));
  });
  isDone = true;
  meddler.join();
}

// Threads that call a program with symbols for new sizes compile them one after another; meanwhile
// the program can be looked at.
TEST_P(StreamsThreadsTest, Symbols) {
  Program program = make(R"(
trace @f(%x: f32[N], %w: f32[] parameter) {
  %a: f32[N] = mul(%x, %w)
  %y: f32[N] = add(%a, %a)
  return(%y)
})");
  Tensor scale = tensorOf(device, {2}, {});
  onThreads([&](unsigned thread, Stream &stream) {
    for (unsigned i = 0; i < numSteps; ++i) {
      unsigned size = 1 + (thread + i) % 5;
      Results results;
      cantFail(program.forward(stream, {filled(device, float(i), size), scale}, results));
      cantFail(stream.synchronize());
      EXPECT_EQ(numbersOf(results[0]), std::vector<double>(size, 4 * i));
      program.regions();
      program.counters();
    }
  });
  EXPECT_EQ(program.counters().failures, 0u);
}

// Calls on different streams draw different numbers: together they draw what as many calls one
// after another draw from the same seed.
TEST_P(StreamsThreadsTest, OneGenerator) {
  constexpr llvm::StringLiteral text = R"(
trace @f(%x: f32[32]) {
  %s: rng = generator_read() {device = host}
  %y: f32[32], %m: bool[32] = dropout(%x, %s) {offset = 0, p = 0.5}
  generator_advance() {count = 32, device = host}
  return(%m)
})";
  Program program = make(text), alone = make(text);
  std::unique_ptr<Stream> stream = cantFail(device->createStream());
  auto draw = [&](Program &of, Stream &on) {
    Results results;
    cantFail(of.forward(on, {filled(device, 1, 32)}, results));
    cantFail(on.synchronize());
    return numbersOf(results[0]);
  };
  std::set<std::vector<double>> expected, got;
  for (unsigned i = 0; i < numThreads * numSteps; ++i)
    expected.insert(draw(alone, *stream));
  std::mutex mutex;
  onThreads([&](unsigned, Stream &own) {
    for (unsigned i = 0; i < numSteps; ++i) {
      std::vector<double> mask = draw(program, own);
      std::lock_guard lock(mutex);
      got.insert(std::move(mask));
    }
  });
  EXPECT_EQ(expected.size(), numThreads * numSteps);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(cantFail(program.generators()->get(*stream, "default")).offset,
            32u * numThreads * numSteps);
}

INSTANTIATE_TEST_SUITE_P(, StreamsThreadsTest,
                         testing::Values(Setting{false, 1}, Setting{false, 2}, Setting{false, 8},
                                         Setting{true, 1}, Setting{true, 2}, Setting{true, 8}),
                         [](const auto &info) {
                           return std::string(info.param.isAsynchronous ? "asynchronous"
                                                                        : "inline") +
                                  std::to_string(info.param.maxLanes);
                         });

} // namespace
