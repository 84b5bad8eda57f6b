//===- CUDAStreamTail.h - The end of a stream's work ------------*- C++ -*-===//

#pragma once

#include "CUDADeviceImpl.h"

namespace rondo::cuda {

/// Records an event when somebody asks for the end. While the stream is being captured, and when it
/// is gone, the end is where the event was recorded last, which is before that. Thread-safe.
class CUDAStreamTail : public StreamTail {
public:
  CUDAStreamTail(std::shared_ptr<CUDADevice> device, cudaStream_t stream)
      : device_(std::move(device)), stream_(stream) {}
  /// To be called once, before anything else.
  llvm::Error initialize();
  ~CUDAStreamTail() override;

  llvm::Error orderBefore(Stream &stream) override;
  llvm::Error synchronize() override;

  /// Calls `begin`, which begins a capture of the stream.
  llvm::Error beginCapture(llvm::function_ref<llvm::Error()> begin);
  /// To be called before the stream is gone.
  void streamDestroyed();

private:
  llvm::Error record();

  std::shared_ptr<CUDADevice> device_;
  cudaStream_t stream_;
  cudaEvent_t event_ = nullptr;
  std::mutex mutex_;
  bool isGone_ = false; ///< the stream; guarded by mutex_
};

} // namespace rondo::cuda
