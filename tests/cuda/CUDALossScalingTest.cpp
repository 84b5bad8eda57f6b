//===- CUDALossScalingTest.cpp - Scaled losses and clipped gradients ------===//

#include "CUDAProgramTesting.h"

#include "runtime/LossScalingTesting.h"

using namespace rondo;

namespace {

class CUDALossScalingTest : public OnCUDA<LossScalingFixture> {};

// Replays do what eager steps do, the skipped one, too, without another capture.
TEST_F(CUDALossScalingTest, HundredSteps) {
  replayHundredSteps();
}

// It is the flag that protects the parameters.
TEST_F(CUDALossScalingTest, SpoiltWithoutFlag) {
  spoilWithoutFlag();
}

} // namespace
