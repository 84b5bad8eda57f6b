//===- CUDARuntimeCasesTest.cpp - What programs must do, on a GPU ---------===//
//
// The suites that the host runs, with the same bodies.
//
//===----------------------------------------------------------------------===//

#include "CUDAProgramTesting.h"

#include "runtime/CallerCaptureTesting.h"
#include "runtime/CaptureLifetimeTesting.h"
#include "runtime/CasesTesting.h"
#include "runtime/CheckpointTesting.h"
#include "runtime/DecodingTesting.h"
#include "runtime/HostScalarsTesting.h"
#include "runtime/OutputsTesting.h"
#include "runtime/SavedStateTesting.h"

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, CasesTest, testing::Values(firstCUDADevice()), suiteTargetName);
INSTANTIATE_TEST_SUITE_P(, CheckpointTest, testing::Values(firstCUDADevice()), suiteTargetName);
INSTANTIATE_TEST_SUITE_P(, OutputsTest, testing::Values(firstCUDADevice()), suiteTargetName);
INSTANTIATE_TEST_SUITE_P(, SavedStateTest, testing::Values(firstCUDADevice()), suiteTargetName);
INSTANTIATE_TEST_SUITE_P(, CallerCaptureTest, testing::Values(firstCUDADevice()), suiteTargetName);
INSTANTIATE_TEST_SUITE_P(, CaptureLifetimeTest, testing::Values(firstCUDADevice()),
                         suiteTargetName);
INSTANTIATE_TEST_SUITE_P(, HostScalarsTest, testing::Values(firstCUDADevice()), suiteTargetName);
INSTANTIATE_TEST_SUITE_P(, DecodingTest, testing::Values(firstCUDADevice()), suiteTargetName);
} // namespace rondo
