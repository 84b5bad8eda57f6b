//===- HostDeviceConformanceTest.cpp - The host does what every device does ===//

#include "rondo/host/HostDevice.h"

#include "support/DeviceCaptureConformance.h"
#include "support/DeviceConformance.h"
#include "support/DeviceInFlightConformance.h"
#include "support/DeviceKeepConformance.h"
#include "support/DeviceNodesConformance.h"

using namespace rondo;

namespace {

template <typename T> T take(const std::byte *&parameters) {
  auto address = reinterpret_cast<uintptr_t>(parameters);
  parameters += (alignof(T) - address % alignof(T)) % alignof(T);
  T value;
  std::memcpy(&value, parameters, sizeof(T));
  parameters += sizeof(T);
  return value;
}

void add1(const std::byte *parameters) {
  ++*take<int *>(parameters);
}

void axpy(const std::byte *parameters) {
  auto a = take<float>(parameters);
  auto *x = take<const float *>(parameters);
  auto *y = take<float *>(parameters);
  auto n = take<int>(parameters);
  for (int i = 0; i < n; ++i)
    y[i] += a * x[i];
}

void waitFlag(const std::byte *parameters) {
  auto *flag = take<std::atomic<int> *>(parameters);
  while (!flag->load())
    std::this_thread::yield();
}

const void *hostKernel(DeviceAPI &, TestKernel kernel) {
  HostFunction functions[] = {&add1, &axpy, &waitFlag};
  return reinterpret_cast<const void *>(functions[unsigned(kernel)]);
}

ConformanceTarget host(const char *name, HostDeviceOptions options) {
  return {name, [options] { return createHostDevice(options); }, &hostKernel,
          [](DeviceAPI &) { return std::make_shared<std::atomic<int>>(0); }};
}

HostDeviceOptions options(bool asynchronous, std::optional<uint64_t> randomOrderSeed) {
  HostDeviceOptions result;
  result.index = 3;
  result.asynchronous = asynchronous;
  result.randomOrderSeed = randomOrderSeed;
  result.poison = true;
  return result;
}

std::vector<ConformanceTarget> asynchronousHosts() {
  return {host("Asynchronous", options(true, std::nullopt)),
          host("AsynchronousRandomOrder", options(true, 7))};
}

std::vector<ConformanceTarget> allHosts() {
  std::vector<ConformanceTarget> result = asynchronousHosts();
  result.push_back(host("Inline", options(false, std::nullopt)));
  result.push_back(host("InlineRandomOrder", options(false, 7)));
  return result;
}

} // namespace

namespace rondo {
INSTANTIATE_TEST_SUITE_P(Host, DeviceConformance, testing::ValuesIn(allHosts()), conformanceName);
INSTANTIATE_TEST_SUITE_P(Host, DeviceCaptureConformance, testing::ValuesIn(allHosts()),
                         conformanceName);
INSTANTIATE_TEST_SUITE_P(Host, DeviceNodesConformance, testing::ValuesIn(allHosts()),
                         conformanceName);
INSTANTIATE_TEST_SUITE_P(Host, DeviceInFlightConformance, testing::ValuesIn(asynchronousHosts()),
                         conformanceName);
INSTANTIATE_TEST_SUITE_P(Host, DeviceKeepConformance, testing::ValuesIn(asynchronousHosts()),
                         conformanceName);
} // namespace rondo
