//===- CUDACommands.h - Kernels, fills and copies for CUDA ------*- C++ -*-===//
//
// What the arguments of a command must be, and how CUDA takes them: what streams, graphs and execs
// have in common.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CUDADeviceImpl.h"

namespace rondo::cuda {

/// How the driver knows the kernel of a node and takes its parameters. A node keeps its form.
struct CUDAKernelForm {
  CUfunction function = nullptr; ///< null: `kernel` in `context`
  CUkernel kernel = nullptr;
  CUcontext context = nullptr;
  /// Where each parameter begins, if they are given one by one; else they are given as a block.
  std::vector<uint32_t> offsets;
};

/// A kernel as the driver takes it. Refers to the parameters of the launch.
class CUDAKernelCommand {
public:
  explicit CUDAKernelCommand(const KernelLaunch &launch);
  /// For a node of this form.
  CUDAKernelCommand(const KernelLaunch &launch, const CUDAKernelForm &form);
  CUDAKernelCommand(const CUDAKernelCommand &) = delete;
  CUDAKernelCommand &operator=(const CUDAKernelCommand &) = delete;

  const CUDA_KERNEL_NODE_PARAMS_v2 &node() const { return node_; }
  CUresult launch(const CUDADriver &driver, CUstream stream) const;

private:
  size_t bytes_;
  void *extra_[5];
  llvm::SmallVector<void *, 32> parameters_; ///< one by one, or none
  CUDA_KERNEL_NODE_PARAMS_v2 node_ = {};
};

inline CUfunction asFunction(const void *function) {
  return static_cast<CUfunction>(const_cast<void *>(function));
}

/// A fill with elements of `elementBytes` bytes, which are no fewer than the value's and fit;
/// `bytes` above 0.
cudaMemsetParams fillParameters(void *destination, FillValue value, size_t bytes,
                                unsigned elementBytes);

/// Calls `parameter` with the offset and size in bytes of each parameter of a function.
void forEachParameter(const CUDADevice &device, const void *function,
                      llvm::function_ref<void(size_t offset, size_t bytes)> parameter);
/// How many bytes the parameter block of a function has.
size_t parameterBytesOf(const CUDADevice &device, const void *function);

/// What is wrong with the arguments, or empty.
llvm::StringRef problemOfKernel(const KernelLaunch &launch);
llvm::StringRef problemOfCopy(const void *destination, const void *source, size_t bytes);
/// What is wrong with a parameter block for a function that takes `expected` bytes.
std::string problemOfParameters(size_t expected, size_t given);

} // namespace rondo::cuda
