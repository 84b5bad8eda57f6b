//===- CUDALifetimeTest.cpp - Who may go when, on a GPU -------------------===//
//
// Transforms, programs, caches, devices, streams and results may go in any order, also while their
// work is in flight; what goes last takes the memory with it.
//
//===----------------------------------------------------------------------===//

#include "CUDADeviceTesting.h"
#include "CUDAProgramTesting.h"

#include "runtime/LifetimeTesting.h"

using namespace rondo;

namespace {

class CUDALifetimeTest : public OnCUDA<LifetimeFixture> {
protected:
  /// A new device for somebody else to own, and the pair on it.
  RunTarget newTarget() { return {cudaTestDevice(), executors->list()}; }
};

// In whatever order everything goes while the last call has not begun, nothing is used that is
// gone, and all memory comes back.
TEST_F(CUDALifetimeTest, AnyOrderInFlight) {
  constexpr unsigned stride = 61; // of the 5,040 orders, with every member first and last
  TracePair pair = parse(lifetimeStep);
  std::vector<unsigned> order(Cast::size);
  std::iota(order.begin(), order.end(), 0);
  std::optional<size_t> level;
  std::set<unsigned> first, last;
  unsigned number = 0;
  do {
    if (number++ % stride != 0)
      continue;
    SCOPED_TRACE(testing::PrintToString(order));
    first.insert(order.front());
    last.insert(order.back());
    std::weak_ptr<DeviceAPI> owned;
    {
      RunTarget own = newTarget();
      ASSERT_TRUE(own.device);
      owned = own.device;
      const void *waitFlag = loadTestKernels(*own.device).waitFlag;
      std::shared_ptr<std::atomic<int>> flag = createTestFlag(*own.device);
      std::thread opener;
      {
        Cast cast(pair.clone(), std::move(own), [&](Stream &stream) {
          cantFail(stream.synchronize());
          cantFail(stream.launch(PackedLaunch(waitFlag, flag.get())));
          opener = std::thread([flag] {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            flag->store(1);
          });
        });
        for (unsigned member : order)
          cast.drop(member);
      }
      opener.join();
    }
    EXPECT_TRUE(owned.expired()) << "somebody keeps the device";
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (!level)
      level = freeCUDABytes();
    else
      EXPECT_GE(freeCUDABytes(), *level);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(first.size(), Cast::size);
  EXPECT_EQ(last.size(), Cast::size);
}

// Create, run, destroy: memory stays at the level after the first cycle.
TEST_F(CUDALifetimeTest, ThousandCycles) {
  std::optional<size_t> level;
  uint64_t bytes = 0;
  for (unsigned cycle = 0; cycle < 1000; ++cycle) {
    {
      CUDAGraphTransform transform(graphOptions());
      Program program = compileStep(transform);
      play(program, 2);
      EXPECT_EQ(program.counters().replays, 2u);
    }
    stopPlaying();
    if (cycle != 0 && cycle % 100 != 99)
      continue;
    device->trim();
    if (!level) {
      level = freeCUDABytes();
      bytes = device->memoryUse().bytes;
      continue;
    }
    EXPECT_EQ(device->memoryUse().bytes, bytes) << "cycle " << cycle;
    EXPECT_GE(freeCUDABytes(), *level) << "cycle " << cycle;
  }
}

// Two transforms share nothing: when one goes with its program, the other's graphs still replay.
TEST_F(CUDALifetimeTest, TwoTransforms) {
  auto a = std::make_unique<CUDAGraphTransform>(graphOptions());
  CUDAGraphTransform b(graphOptions());
  std::optional<Program> ofA = compileStep(*a);
  Program ofB = compileStep(b);
  play(*ofA, 3);
  play(ofB, 2);
  ofA.reset();
  a.reset();
  play(ofB, 2);
  EXPECT_EQ(ofB.counters().captures, 2u);
  EXPECT_EQ(ofB.counters().replays, 6u);
}

} // namespace
