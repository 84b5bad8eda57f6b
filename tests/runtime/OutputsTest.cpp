//===- OutputsTest.cpp - Results in the caller's memory -------------------===//

#include "OutputsTesting.h"

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, OutputsTest, testing::Values(hostileHost()), suiteTargetName);
} // namespace rondo
