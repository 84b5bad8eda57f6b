//===- CUDACommands.h - Kernels, fills and copies for CUDA ------*- C++ -*-===//
//
// What the arguments of a command must be, and how CUDA takes them: what streams, graphs and execs
// have in common.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CUDADeviceImpl.h"

namespace rondo::cuda {

/// A kernel as the driver takes it. Refers to the parameters of the launch.
class CUDAKernelCommand {
public:
  explicit CUDAKernelCommand(const KernelLaunch &launch);
  CUDAKernelCommand(const CUDAKernelCommand &) = delete;
  CUDAKernelCommand &operator=(const CUDAKernelCommand &) = delete;

  const CUDA_KERNEL_NODE_PARAMS_v2 &node() const { return node_; }
  CUresult launch(const CUDADriver &driver, CUstream stream) const;

private:
  size_t bytes_;
  void *extra_[5];
  CUDA_KERNEL_NODE_PARAMS_v2 node_ = {};
};

inline CUfunction asFunction(const void *function) {
  return static_cast<CUfunction>(const_cast<void *>(function));
}

/// `bytes` above 0.
cudaMemsetParams fillParameters(void *destination, uint8_t value, size_t bytes);

/// How many bytes the parameter block of a function has.
size_t parameterBytesOf(const CUDADevice &device, const void *function);

/// What is wrong with the arguments, or empty.
llvm::StringRef problemOfKernel(const KernelLaunch &launch);
llvm::StringRef problemOfFill(const void *destination, size_t bytes);
llvm::StringRef problemOfCopy(const void *destination, const void *source, size_t bytes);
/// What is wrong with a parameter block for a function that takes `expected` bytes.
std::string problemOfParameters(size_t expected, size_t given);

} // namespace rondo::cuda
