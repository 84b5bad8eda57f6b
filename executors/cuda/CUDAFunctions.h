//===- CUDAFunctions.h - Kernels and libraries on a GPU ---------*- C++ -*-===//
//
// For executors: how a `__global__` function becomes the `function` of a KernelLaunch, and what a
// call of a CUDA library needs. No type of CUDA is in here.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

namespace rondo::cuda {

/// The CUfunction of a `__global__` function of this program on `device`, loaded so that a launch
/// loads nothing. It may be launched with up to `sharedBytes` bytes of dynamic shared memory. Valid
/// as long as the process. Errors: InvalidArgument if `device` is no CUDA device; Launch if this
/// build has no code for the GPU, or the GPU not so much shared memory.
llvm::Expected<const void *> loadFunction(DeviceAPI &device, const void *symbol,
                                          uint32_t sharedBytes = 0);

/// Makes a device current in this thread until the end of the scope, as libraries want it. Does
/// nothing if `device` is no CUDA device.
class CurrentDeviceScope {
public:
  explicit CurrentDeviceScope(DeviceAPI &device);
  ~CurrentDeviceScope();
  CurrentDeviceScope(const CurrentDeviceScope &) = delete;
  CurrentDeviceScope &operator=(const CurrentDeviceScope &) = delete;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace rondo::cuda
