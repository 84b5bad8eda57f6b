//===- CallerCaptureTest.cpp - Programs in the caller's own capture -------===//

#include "CallerCaptureTesting.h"

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, CallerCaptureTest, testing::Values(hostileHost()), suiteTargetName);
} // namespace rondo
