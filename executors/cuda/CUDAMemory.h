//===- CUDAMemory.h - The memory of a GPU -----------------------*- C++ -*-===//
//
// A pool of the device's own. Memory is allocated in the order of one stream, which has nothing
// else to do, and is ready when `allocate` returns. It is given back in the order of another, the
// free stream, which waits for all that was submitted before:
//
//   a stream of the device   ... kernel ... record
//   the free stream                          wait ... free
//
// so that giving back does not wait and the bytes are used again only after that work is done. A
// stream in capture records no such point: while there is one, what is given back is kept for
// later.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace rondo::cuda {

class CUDADevice;

/// The memory of one device, and what its use depends on: the device's streams and captures.
/// Thread-safe.
class CUDAMemory {
public:
  /// `device` must outlive it.
  explicit CUDAMemory(CUDADevice &device) : device_(device) {}
  llvm::Error initialize(int device);
  ~CUDAMemory();

  /// `bytes` above 0.
  llvm::Expected<void *> allocate(size_t bytes);
  void deallocate(void *data, size_t bytes) noexcept;
  MemoryUse use() const;
  void resetPeak();
  /// Gives memory that nobody uses back to the system; waits for the work before.
  void trim() noexcept;

  /// A stream for short work of the device itself, which the caller waits for.
  cudaStream_t ownStream() const { return allocStream_; }

  void streamCreated(cudaStream_t stream);
  /// `mayRun`: there may be work on it that uses memory of the device.
  void streamDestroyed(cudaStream_t stream, bool mayRun);
  /// Calls `begin`, which begins a capture, while no memory is being given back.
  llvm::Error beginCapture(llvm::function_ref<llvm::Error()> begin);
  void captureEnded();
  /// Is there a capture that was begun here and has not ended?
  bool hasCaptures() const { return numCaptures_.load(std::memory_order_acquire) != 0; }

private:
  struct Block {
    void *data;
    size_t bytes; ///< that it counts for
  };
  llvm::Error allocateFromPool(void **data, size_t bytes);
  llvm::Error outOfMemory(size_t bytes) const;
  bool isAnyCaptured() const;
  llvm::Error waitFor(cudaStream_t stream);
  void release();
  bool orderFrees();

  CUDADevice &device_;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t allocStream_ = nullptr, freeStream_ = nullptr;
  cudaEvent_t submitted_ = nullptr; ///< what the free stream waits for

  mutable std::mutex mutex_;
  MemoryUse use_;
  std::vector<cudaStream_t> streams_;
  std::atomic<unsigned> numCaptures_ = 0; ///< changed under the lock
  std::vector<Block> returned_;           ///< given back, and not yet to the pool
};

} // namespace rondo::cuda
