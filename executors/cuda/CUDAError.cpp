//===- CUDAError.cpp - What went wrong in CUDA ----------------------------===//

#include "CUDAError.h"

#include <cuda_runtime_api.h>

using namespace rondo;

DeviceErrorKind cuda::kindOfResult(cudaError_t result) {
  switch (result) {
  case cudaErrorMemoryAllocation:
    return DeviceErrorKind::OutOfMemory;
  case cudaErrorStreamCaptureUnsupported:
  case cudaErrorStreamCaptureMerge:
  case cudaErrorStreamCaptureIsolation:
  case cudaErrorStreamCaptureImplicit:
  case cudaErrorCapturedEvent:
    return DeviceErrorKind::NotCapturable;
  case cudaErrorStreamCaptureInvalidated:
  case cudaErrorStreamCaptureUnjoined:
    return DeviceErrorKind::CaptureInvalidated;
  case cudaErrorStreamCaptureUnmatched:
  case cudaErrorStreamCaptureWrongThread:
  case cudaErrorInvalidValue:
  case cudaErrorInvalidConfiguration:
  case cudaErrorInvalidDevice:
  case cudaErrorInvalidDeviceFunction:
  case cudaErrorInvalidMemcpyDirection:
  case cudaErrorInvalidPitchValue:
  case cudaErrorInvalidResourceHandle:
  case cudaErrorDeviceUninitialized:
  case cudaErrorIllegalState:
    return DeviceErrorKind::InvalidArgument;
  case cudaErrorCudartUnloading:
  case cudaErrorDevicesUnavailable:
  case cudaErrorECCUncorrectable:
  case cudaErrorNvlinkUncorrectable:
  case cudaErrorIllegalAddress:
  case cudaErrorLaunchTimeout:
  case cudaErrorContextIsDestroyed:
  case cudaErrorAssert:
  case cudaErrorHardwareStackError:
  case cudaErrorIllegalInstruction:
  case cudaErrorMisalignedAddress:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorLaunchFailure:
  case cudaErrorSystemNotReady:
  case cudaErrorUnknown:
    return DeviceErrorKind::Lost;
  default:
    return DeviceErrorKind::Launch;
  }
}

std::string cuda::describeResult(cudaError_t result, llvm::StringRef call) {
  return (call + ": " + cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")").str();
}

llvm::Error cuda::noDeviceError(const llvm::Twine &why) {
  return makeDeviceError(DeviceErrorKind::InvalidArgument,
                         "no CUDA device: " + why + "; use the host device");
}
