//===- CUDADeviceTesting.h - Kernels for tests of the GPU -------*- C++ -*-===//

#pragma once

#include "CUDATesting.h"
#include "TestKernels.h"

#include "CUDAFunctions.h"

#include "support/DeviceTesting.h"

#include <cuda_runtime_api.h>

#include <atomic>

namespace rondo {

inline const void *loadTestKernel(DeviceAPI &device, const void *symbol) {
  llvm::Expected<const void *> function = cuda::loadFunction(device, symbol);
  if (function)
    return *function;
  ADD_FAILURE() << llvm::toString(function.takeError());
  return nullptr;
}

/// The functions for launches. All are loaded at once: to load one while another runs and waits
/// might wait for that.
inline CUDATestKernels loadTestKernels(DeviceAPI &device) {
  CUDATestKernels symbols = testKernelSymbols();
  return {loadTestKernel(device, symbols.add1),
          loadTestKernel(device, symbols.axpy),
          loadTestKernel(device, symbols.waitFlag),
          loadTestKernel(device, symbols.writeToAddress),
          loadTestKernel(device, symbols.clusterSize),
          loadTestKernel(device, symbols.philoxWords),
          symbols.curandWords ? loadTestKernel(device, symbols.curandWords) : nullptr};
}

/// An int, 0, in memory of the host that kernels see.
inline std::shared_ptr<std::atomic<int>> createTestFlag(DeviceAPI &) {
  void *memory = nullptr;
  unsigned flags = cudaHostAllocMapped | cudaHostAllocPortable;
  if (cudaHostAlloc(&memory, sizeof(std::atomic<int>), flags) != cudaSuccess) {
    ADD_FAILURE() << "no memory for a flag";
    return std::make_shared<std::atomic<int>>(1);
  }
  return {new (memory) std::atomic<int>(0), [](std::atomic<int> *flag) { cudaFreeHost(flag); }};
}

} // namespace rondo
