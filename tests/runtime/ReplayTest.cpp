//===- ReplayTest.cpp - Replay is real ------------------------------------===//
//
// Recorded traces, replayed on a device that does all it may do: graph nodes in random order, dead
// memory filled with nan, and arguments that lie elsewhere in every call.
//
//===----------------------------------------------------------------------===//

#include "ReplayTesting.h"

using namespace rondo;

namespace {

class ReplayTest : public ReplayFixture {
protected:
  HostExecutor host;
};

// Replays on a hostile device give what eager calls on a plain one give.
TEST_P(ReplayTest, HundredTimes) {
  HostDeviceOptions hostile;
  hostile.randomOrderSeed = 7;
  hostile.poison = true;
  replayHundredTimes({createHostDevice(), {&host}}, {createHostDevice(hostile), {&host}});
}

// Changed pointers do in the graph what eager calls on other memory do.
TEST_P(ReplayTest, VerifiesPatches) {
  verifyPatches({createHostDevice({.poison = true}), {&host}});
}

INSTANTIATE_TEST_SUITE_P(, ReplayTest, testing::ValuesIn(replayCases()),
                         [](const auto &info) { return info.param.label; });

// A step in the steady state allocates nothing; what the device counts is what its hook is told.
TEST(ReplayMemoryTest, AllocatesNothing) {
  HostExecutor host;
  MemoryLog memory;
  HostDeviceOptions options;
  options.memoryHook = memory.hook();
  DeviceRef device = createHostDevice(options);
  expectNoAllocations({device, {&host}});
  EXPECT_EQ(memory.bytes(), int64_t(device->memoryUse().bytes));
  EXPECT_GE(memory.calls(), device->memoryUse().allocations);
}

} // namespace
