//===- CheckpointTracesTest.cpp - Recorded checkpoints on the host ---------===//

#include "CheckpointTracesTesting.h"

using namespace rondo;

INSTANTIATE_TEST_SUITE_P(, CheckpointTracesTest, testing::Values(hostileHost()), suiteTargetName);
