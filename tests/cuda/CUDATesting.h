//===- CUDATesting.h - A GPU for tests --------------------------*- C++ -*-===//

#pragma once

#include "rondo/cuda/CUDADevice.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

namespace rondo {

/// The first GPU. Null where there is none, with the reason printed, for the test to be skipped;
/// that is a failure where RONDO_REQUIRE_GPU=1.
inline DeviceRef cudaTestDevice() {
  llvm::Expected<DeviceRef> device = createCUDADevice(0);
  if (device)
    return *device;
  std::string why = llvm::toString(device.takeError());
  const char *required = std::getenv("RONDO_REQUIRE_GPU");
  if (required && !std::strcmp(required, "1"))
    [&] { FAIL() << why; }(); // a fatal one: the test does not go on
  else
    std::cout << "skipped: " << why << "\n";
  return nullptr;
}

} // namespace rondo
