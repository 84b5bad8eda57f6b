//===- TestKernels.h - Kernels for tests of the CUDA device -----*- C++ -*-===//

#pragma once

namespace rondo {

/// What they do is said in TestKernels.cu.
struct CUDATestKernels {
  const void *add1, *axpy, *waitFlag, *writeToAddress, *clusterSize, *philoxWords;
  const void *curandWords; ///< null if the toolkit has no curand_kernel.h
};
/// The `__global__` functions, for cuda::loadFunction.
CUDATestKernels testKernelSymbols();

} // namespace rondo
