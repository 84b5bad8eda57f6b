//===- CUDAStreamTail.cpp - The end of a stream's work --------------------===//

#include "CUDAStreamTail.h"

using namespace rondo;
using namespace rondo::cuda;

llvm::Error CUDAStreamTail::initialize() {
  return device_->run("cudaEventCreateWithFlags",
                      [&] { return cudaEventCreateWithFlags(&event_, cudaEventDisableTiming); });
}

CUDAStreamTail::~CUDAStreamTail() {
  if (event_)
    device_->cleanUp("cudaEventDestroy", [&] { return cudaEventDestroy(event_); });
}

/// Records the end of the work, if the stream is there and runs what it gets. The lock is held.
llvm::Error CUDAStreamTail::record() {
  if (isGone_)
    return llvm::Error::success();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (llvm::Error error = device_->run("cudaStreamIsCapturing",
                                       [&] { return cudaStreamIsCapturing(stream_, &status); }))
    return error;
  if (status != cudaStreamCaptureStatusNone)
    return llvm::Error::success();
  return device_->run("cudaEventRecord", [&] { return cudaEventRecord(event_, stream_); });
}

llvm::Error CUDAStreamTail::orderBefore(Stream &stream) {
  std::lock_guard lock(mutex_);
  if (llvm::Error error = record())
    return error;
  auto handle = static_cast<cudaStream_t>(stream.nativeHandle());
  return device_->run("cudaStreamWaitEvent",
                      [&] { return cudaStreamWaitEvent(handle, event_, 0); });
}

llvm::Error CUDAStreamTail::synchronize() {
  {
    std::lock_guard lock(mutex_);
    if (llvm::Error error = record())
      return error;
  }
  CUDARelaxedScope relaxed(device_->driver()); // captures of streams that nobody here knows
  return device_->run("cudaEventSynchronize", [&] { return cudaEventSynchronize(event_); });
}

llvm::Error CUDAStreamTail::beginCapture(llvm::function_ref<llvm::Error()> begin) {
  std::lock_guard lock(mutex_);
  if (llvm::Error error = record())
    return error;
  return begin();
}

void CUDAStreamTail::streamDestroyed() {
  std::lock_guard lock(mutex_);
  llvm::consumeError(record());
  isGone_ = true;
}
