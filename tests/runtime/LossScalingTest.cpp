//===- LossScalingTest.cpp - Scaled losses and clipped gradients, replayed ===//

#include "LossScalingTesting.h"

using namespace rondo;

namespace {

/// On a device that does all it may do.
class LossScalingTest : public LossScalingFixture {
protected:
  void SetUp() override {
    HostDeviceOptions hostile;
    hostile.randomOrderSeed = 7;
    hostile.poison = true;
    useTarget({createHostDevice(hostile), {&host}});
  }

  HostExecutor host;
};

// Replays do what eager steps do, the skipped one, too, without another capture.
TEST_F(LossScalingTest, HundredSteps) {
  replayHundredSteps();
}

// It is the flag that protects the parameters.
TEST_F(LossScalingTest, SpoiltWithoutFlag) {
  spoilWithoutFlag();
}

} // namespace
