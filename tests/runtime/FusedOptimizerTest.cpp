//===- FusedOptimizerTest.cpp - PyTorch's optimiser steps on the host -----===//

#include "FusedOptimizerTesting.h"

using namespace rondo;

INSTANTIATE_TEST_SUITE_P(, FusedOptimizerTest, testing::Values(hostileHost()), suiteTargetName);
