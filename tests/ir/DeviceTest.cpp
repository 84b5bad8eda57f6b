//===- DeviceTest.cpp - Where a tensor lives ------------------------------===//

#include "rondo/ir/Device.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

/// host:0 is written `host`; all others carry their index.
TEST(Device, Names) {
  EXPECT_EQ(deviceName(Device::host()), "host");
  EXPECT_EQ(deviceName(Device{DeviceKind::Host, 2}), "host:2");
  EXPECT_EQ(deviceName(Device::cuda(0)), "cuda:0");
  EXPECT_EQ(deviceName(Device::cuda(65535)), "cuda:65535");
}

/// Names read back, and `host:0` is another spelling of `host`.
TEST(Device, NamesReadBack) {
  for (Device device : {Device::host(), Device{DeviceKind::Host, 7}, Device::cuda(0),
                        Device::cuda(10), Device::cuda(65535)})
    EXPECT_EQ(parseDevice(deviceName(device)), device) << deviceName(device);
  EXPECT_EQ(parseDevice("host:0"), Device::host());
}

/// An index has no sign, white space or leading zero and is below 65536; CUDA needs one.
TEST(Device, RefusesOtherNames) {
  for (const char *name :
       {"", "cuda", "cuda:", "host:", "cuda:-1", "cuda:+1", "cuda: 1", " cuda:1", "cuda:1 ",
        "cuda:01", "cuda:65536", "cuda:99999999999999999999", "cuda:0x1", "CUDA:0", "cpu", "tpu:0"})
    EXPECT_EQ(parseDevice(name), std::nullopt) << name;
}

/// Kind and index both tell devices apart.
TEST(Device, Comparison) {
  EXPECT_EQ(Device::cuda(1), Device::cuda(1));
  EXPECT_NE(Device::cuda(1), Device::cuda(0));
  EXPECT_NE(Device::cuda(0), Device::host());
  EXPECT_EQ(hash_value(Device::cuda(3)), hash_value(Device::cuda(3)));
  EXPECT_NE(hash_value(Device::cuda(0)), hash_value(Device::host()));
}

} // namespace
