//===- CUDADriver.h - The functions of the CUDA driver ----------*- C++ -*-===//
//
// What the runtime has no function for, or one whose signature depends on the toolkit, or one that
// costs more on the path of a replay. The driver is found at run time; a function is asked for by
// the version of CUDA that brought its signature.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "llvm/Support/Error.h"

/// Calls X(function, version) for each function.
#define RONDO_CUDA_DRIVER_FUNCTIONS(X)                                                             \
  X(cuCtxGetCurrent, 4000)                                                                         \
  X(cuCtxPushCurrent, 4000)                                                                        \
  X(cuCtxPopCurrent, 4000)                                                                         \
  X(cuDevicePrimaryCtxRetain, 7000)                                                                \
  X(cuDevicePrimaryCtxRelease, 11000)                                                              \
  X(cuStreamGetCtx, 9020)                                                                          \
  X(cuThreadExchangeStreamCaptureMode, 10010)                                                      \
  X(cuStreamGetCaptureInfo, 12030)                                                                 \
  X(cuStreamUpdateCaptureDependencies, 12030)                                                      \
  X(cuFuncGetParamInfo, 12040)                                                                     \
  X(cuFuncLoad, 12040)                                                                             \
  X(cuFuncSetAttribute, 9000)                                                                      \
  X(cuKernelGetFunction, 12000)                                                                    \
  X(cuLaunchKernel, 4000)                                                                          \
  X(cuGraphAddNode, 12030)                                                                         \
  X(cuGraphAddKernelNode, 12000)                                                                   \
  X(cuGraphKernelNodeGetParams, 12000)                                                             \
  X(cuGraphKernelNodeSetParams, 12000)                                                             \
  X(cuGraphExecKernelNodeSetParams, 12000)                                                         \
  X(cuGraphLaunch, 10000)                                                                          \
  X(cuGraphNodeGetDependencies, 12030)

namespace rondo::cuda {

struct CUDADriver {
#define RONDO_CUDA_DRIVER_FUNCTION(name, version) PFN_##name##_v##version name = nullptr;
  RONDO_CUDA_DRIVER_FUNCTIONS(RONDO_CUDA_DRIVER_FUNCTION)
#undef RONDO_CUDA_DRIVER_FUNCTION
};

/// Errors: InvalidArgument `no CUDA device: …; use the host device` where there is no driver or one
/// that is too old.
llvm::Expected<CUDADriver> loadCUDADriver();

/// Makes a context current in this thread until the end of the scope, at next to no price where it
/// is already.
class CUDAContextScope {
public:
  CUDAContextScope(const CUDADriver &driver, CUcontext context) : driver_(driver) {
    CUcontext current = nullptr;
    if (driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context)
      isPushed_ = driver_.cuCtxPushCurrent(context) == CUDA_SUCCESS;
  }
  ~CUDAContextScope() {
    CUcontext popped = nullptr;
    if (isPushed_)
      driver_.cuCtxPopCurrent(&popped);
  }
  CUDAContextScope(const CUDAContextScope &) = delete;
  CUDAContextScope &operator=(const CUDAContextScope &) = delete;

private:
  const CUDADriver &driver_;
  bool isPushed_ = false;
};

/// Lets this thread make calls that a capture forbids where it cannot see a reason, until the end
/// of the scope. No capture is disturbed.
class CUDARelaxedScope {
public:
  explicit CUDARelaxedScope(const CUDADriver &driver) : driver_(driver) {
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ~CUDARelaxedScope() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  CUDARelaxedScope(const CUDARelaxedScope &) = delete;
  CUDARelaxedScope &operator=(const CUDARelaxedScope &) = delete;

private:
  const CUDADriver &driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED; ///< then that of before
};

} // namespace rondo::cuda
