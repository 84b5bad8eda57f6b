//===- CUDAError.h - What went wrong in CUDA --------------------*- C++ -*-===//

#pragma once

#include "rondo/executors/DeviceError.h"

#include <cuda.h>
#include <driver_types.h>

namespace rondo::cuda {

/// The driver numbers its results as the runtime does.
inline cudaError_t asRuntimeResult(cudaError_t result) {
  return result;
}
inline cudaError_t asRuntimeResult(CUresult result) {
  return cudaError_t(result);
}

/// What kind of error a result other than success is. Lost: the context can run nothing any more.
DeviceErrorKind kindOfResult(cudaError_t result);

/// `cudaMalloc: out of memory (cudaErrorMemoryAllocation)`.
std::string describeResult(cudaError_t result, llvm::StringRef call);

/// InvalidArgument: `no CUDA device: <why>; use the host device`.
llvm::Error noDeviceError(const llvm::Twine &why);

} // namespace rondo::cuda
