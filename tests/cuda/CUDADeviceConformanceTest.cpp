//===- CUDADeviceConformanceTest.cpp - CUDA does what every device does ---===//

#include "CUDADeviceTesting.h"

#include "support/DeviceCaptureConformance.h"
#include "support/DeviceInFlightConformance.h"
#include "support/DeviceKeepConformance.h"
#include "support/DeviceNodesConformance.h"

using namespace rondo;

/// With its kernels loaded, which is not what the tests of captures are about.
static DeviceRef createDevice() {
  DeviceRef device = cudaTestDevice();
  if (device)
    loadTestKernels(*device);
  return device;
}

static const void *cudaKernel(DeviceAPI &device, TestKernel kernel) {
  CUDATestKernels kernels = loadTestKernels(device);
  const void *functions[] = {kernels.add1, kernels.axpy, kernels.waitFlag};
  return functions[unsigned(kernel)];
}

static ConformanceTarget cudaTarget() {
  return {"Device", &createDevice, &cudaKernel, &createTestFlag};
}

namespace rondo {
INSTANTIATE_TEST_SUITE_P(CUDA, DeviceConformance, testing::Values(cudaTarget()), conformanceName);
INSTANTIATE_TEST_SUITE_P(CUDA, DeviceCaptureConformance, testing::Values(cudaTarget()),
                         conformanceName);
INSTANTIATE_TEST_SUITE_P(CUDA, DeviceNodesConformance, testing::Values(cudaTarget()),
                         conformanceName);
INSTANTIATE_TEST_SUITE_P(CUDA, DeviceInFlightConformance, testing::Values(cudaTarget()),
                         conformanceName);
INSTANTIATE_TEST_SUITE_P(CUDA, DeviceKeepConformance, testing::Values(cudaTarget()),
                         conformanceName);
} // namespace rondo
