//===- BucketsThreadsTest.cpp - Padded calls from several threads ---------===//

#include "CallTesting.h"

using namespace rondo;

namespace {

constexpr llvm::StringLiteral doubled = R"(
trace @doubled(%x: f32[B]) {
  %x.1: f32[B] = mul_(%x) {scalar = 2}
  %s: f32[] = sum(%x.1)
  return(%x.1, %s)
}
)";

class BucketsThreadsTest : public CallTest {
protected:
  BucketsThreadsTest() : CallTest(asynchronous()) {}
  static HostDeviceOptions asynchronous() {
    HostDeviceOptions options;
    options.asynchronous = true;
    options.randomOrderSeed = 3;
    return options;
  }
};

} // namespace

// Threads with streams of their own call one program with sizes between its buckets: each gets its
// own elements and padding, and each bucket has one graph for each lane.
TEST_F(BucketsThreadsTest, EachHasItsPadding) {
  constexpr unsigned numThreads = 4;
  for (unsigned maxLanes : {1, 2}) {
    ProgramOptions options = steadyOptions();
    options.buckets["B"] = {2, 4, 8};
    options.padding["x"] = 1;
    options.maxLanes = maxLanes;
    options.poison = true;
    Program program = compileText(doubled, options);
    std::atomic<unsigned> numWrong = 0;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < numThreads; ++t)
      threads.emplace_back([&, t] {
        std::unique_ptr<Stream> own = cantFail(device->createStream());
        for (unsigned call = 0; call < 60; ++call) {
          int64_t size = (call + t) % 9, bucket = size <= 2 ? 2 : size <= 4 ? 4 : 8;
          float value = float(10 * t + call);
          Tensor x = filled(device, value, size);
          Results results = forwardOn(*own, program, {x});
          numWrong += numbersOf(x) != std::vector<double>(size, 2 * value);
          numWrong += numbersOf(results[1])[0] != 2 * value * size + 2 * (bucket - size);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(numWrong, 0u);
    EXPECT_LE(program.counters().entries, 3u * maxLanes);
  }
}
