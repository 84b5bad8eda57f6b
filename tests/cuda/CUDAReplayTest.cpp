//===- CUDAReplayTest.cpp - Recorded traces on a GPU ----------------------===//
//
// The traces that the host device runs, against PyTorch's results, and replayed against eager calls
// of the same kernels.
//
//===----------------------------------------------------------------------===//

#include "CUDAProgramTesting.h"

#include "runtime/RecordedTesting.h"
#include "runtime/ReplayTesting.h"

using namespace rondo;

namespace {

class CUDARecordedTest : public RecordedFixture {};
class CUDAReplayTest : public ReplayFixture {};

// All that a step gives equals PyTorch's.
TEST_P(CUDARecordedTest, EqualsPyTorch) {
  DeviceRef device = cudaTestDevice();
  if (!device)
    GTEST_SKIP() << "no device";
  CUDATestExecutors executors;
  expectRecorded({device, executors.list()});
}

INSTANTIATE_TEST_SUITE_P(, CUDARecordedTest, testing::ValuesIn(recordedBars()),
                         [](const auto &info) { return std::string(info.param.name); });

// Replays give the bits of eager calls, with arguments that lie elsewhere in every call and dead
// memory filled with nan.
TEST_P(CUDAReplayTest, HundredTimes) {
  DeviceRef device = cudaTestDevice();
  if (!device)
    GTEST_SKIP() << "no device";
  CUDATestExecutors executors;
  replayHundredTimes({device, executors.list()}, {device, executors.list()});
}

// Changed pointers do in the graph, in kernels of libraries, too, what eager calls on other memory
// do.
TEST_P(CUDAReplayTest, VerifiesPatches) {
  DeviceRef device = cudaTestDevice();
  if (!device)
    GTEST_SKIP() << "no device";
  CUDATestExecutors executors;
  verifyPatches({device, executors.list()});
}

INSTANTIATE_TEST_SUITE_P(, CUDAReplayTest, testing::ValuesIn(replayCases()),
                         [](const auto &info) { return info.param.label; });

// A step in the steady state allocates nothing.
TEST(CUDAReplayMemoryTest, AllocatesNothing) {
  DeviceRef device = cudaTestDevice();
  if (!device)
    GTEST_SKIP() << "no device";
  CUDATestExecutors executors;
  expectNoAllocations({device, executors.list()});
}

} // namespace
