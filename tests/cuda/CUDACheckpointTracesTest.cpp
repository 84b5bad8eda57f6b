//===- CUDACheckpointTracesTest.cpp - Recorded checkpoints on a GPU --------===//

#include "CUDAProgramTesting.h"

#include "runtime/CheckpointTracesTesting.h"

using namespace rondo;

INSTANTIATE_TEST_SUITE_P(, CheckpointTracesTest, testing::Values(firstCUDADevice()),
                         suiteTargetName);
