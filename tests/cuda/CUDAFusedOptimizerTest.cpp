//===- CUDAFusedOptimizerTest.cpp - PyTorch's optimiser steps on a GPU ----===//

#include "CUDAProgramTesting.h"

#include "runtime/FusedOptimizerTesting.h"

using namespace rondo;

INSTANTIATE_TEST_SUITE_P(, FusedOptimizerTest, testing::Values(firstCUDADevice()), suiteTargetName);
