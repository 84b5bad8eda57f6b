//===- CUDARematerialiseTest.cpp - Recomputation on a GPU -----------------===//

#include "CUDAProgramTesting.h"

#include "runtime/RematerialiseTesting.h"

using namespace rondo;

namespace {

class CUDARematerialiseTest : public RematerialiseFixture {};

// As on the host, with the kernels of the GPU.
TEST_P(CUDARematerialiseTest, ChangesNoBit) {
  DeviceRef device = cudaTestDevice();
  if (!device)
    GTEST_SKIP() << "no device";
  CUDATestExecutors executors;
  expectSameSteps({device, executors.list()}, 50);
}

INSTANTIATE_TEST_SUITE_P(, CUDARematerialiseTest, testing::ValuesIn(rematerialiseCases()),
                         [](const auto &info) { return std::string(info.param.trace); });

} // namespace
