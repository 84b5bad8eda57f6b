//===- CUDADeviceImpl.h - A GPU as a device ---------------------*- C++ -*-===//

#pragma once

#include "rondo/cuda/CUDADevice.h"

#include "CUDADriver.h"
#include "CUDAError.h"
#include "CUDAMemory.h"

#include <atomic>
#include <mutex>

namespace rondo::cuda {

/// All calls to CUDA go through `run`, `ask` or `cleanUp`. Streams, events, graphs and execs keep
/// it alive; it does not know them.
class CUDADevice : public DeviceAPI {
public:
  CUDADevice(unsigned index, const CUDADriver &driver);
  /// To be called once, before anything else.
  llvm::Error initialize();
  ~CUDADevice() override;

  Device device() const override { return Device::cuda(uint16_t(index_)); }
  std::string description() const override { return description_; }

  llvm::Expected<void *> allocate(size_t bytes) override;
  void deallocate(void *data, size_t bytes) noexcept override;
  MemoryUse memoryUse() const override { return memory_->use(); }
  void resetPeak() override { memory_->resetPeak(); }
  void trim() override { memory_->trim(); }
  bool canAccess(const void *data) const override;

  llvm::Expected<std::unique_ptr<Stream>> createStream() override;
  llvm::Expected<std::unique_ptr<Event>> createEvent() override;
  llvm::Expected<std::unique_ptr<Graph>> createGraph() override;
  llvm::Error synchronize() override;
  bool mayWait() const override { return memory_->mayWait(); }
  bool putOff(std::function<void()> work) override { return memory_->putOff(std::move(work)); }

  std::shared_ptr<CUDADevice> shared() {
    return std::static_pointer_cast<CUDADevice>(shared_from_this());
  }
  const CUDADriver &driver() const { return driver_; }
  CUcontext context() const { return context_; }
  CUDAMemory &memory() { return *memory_; }
  /// Or that the device is lost, if it is.
  llvm::Error invalidArgument(const llvm::Twine &message) const;

  /// Did CUDA report an error after which nothing works? Then no more calls are made.
  bool isLost() const { return isLost_.load(std::memory_order_acquire); }
  /// The error by which it was lost.
  llvm::Error lostError() const;
  /// What a result means, which is that of `call`. The error does not stay with the runtime.
  template <typename Result> llvm::Error check(Result result, llvm::StringRef call) {
    if (LLVM_LIKELY(asRuntimeResult(result) == cudaSuccess))
      return llvm::Error::success();
    return errorOf(asRuntimeResult(result), call);
  }

  /// Calls `function` with the device current. `name` is that of the call, for messages.
  template <typename Function> llvm::Error run(llvm::StringRef name, Function function) {
    if (isLost())
      return lostError();
    CUDAContextScope current(driver_, context_);
    return check(function(), name);
  }
  /// As `run`, for a question to which `cudaErrorNotReady` is the answer no.
  template <typename Function> llvm::Expected<bool> ask(llvm::StringRef name, Function function) {
    cudaError_t result = cudaSuccess;
    llvm::Error error = run(name, [&] {
      result = function();
      return result == cudaErrorNotReady ? cudaSuccess : result;
    });
    if (error)
      return error;
    if (result == cudaErrorNotReady)
      cudaGetLastError();
    return result == cudaSuccess;
  }
  /// As `run`, in destructors: allowed in every capture, and errors are only kept if the device is
  /// lost.
  template <typename Function> void cleanUp(llvm::StringRef name, Function function) {
    if (isLost())
      return;
    CUDARelaxedScope relaxed(driver_);
    llvm::consumeError(run(name, function));
  }

private:
  llvm::Error errorOf(cudaError_t result, llvm::StringRef call);

  unsigned index_;
  std::string name_; ///< `cuda:0`, for messages
  std::string description_;
  CUDADriver driver_;
  CUcontext context_ = nullptr; ///< the primary one
  std::atomic<bool> isLost_ = false;
  mutable std::mutex lostMutex_;
  std::string lostText_;             ///< guarded by lostMutex_
  std::optional<CUDAMemory> memory_; ///< gone before the context
};

} // namespace rondo::cuda
