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

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rondo::cuda {

class CUDADevice;

/// What a graph, and everything that is made of it, keeps alive.
using CUDAKept = std::vector<std::shared_ptr<void>>;

/// A capture that was begun here and has not ended.
struct CUDACapture {
  CaptureMode mode = CaptureMode::Global;
  std::thread::id thread; ///< which began it
  cuuint64_t id = 0;      ///< CUDA's
  CUDAKept kept;          ///< by the graph that it makes; guarded by CUDAMemory

  /// Does its mode forbid potentially unsafe calls to this thread?
  bool forbidsUnsafe() const {
    return mode == CaptureMode::Global ||
           (mode == CaptureMode::ThreadLocal && thread == std::this_thread::get_id());
  }
};

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
  /// Calls `begin`, which begins `capture`, while no memory is being given back.
  llvm::Error beginCapture(CUDACapture &capture, llvm::function_ref<llvm::Error()> begin);
  /// Returns what the capture's graph keeps, and does what was put off.
  CUDAKept captureEnded(CUDACapture &capture);
  /// False if no capture that was begun here has this id.
  bool keep(cuuint64_t captureId, std::shared_ptr<void> resource);
  /// Is there a capture that was begun here and has not ended?
  bool hasCaptures() const { return numCaptures_.load(std::memory_order_acquire) != 0; }
  /// See DeviceAPI.
  bool mayWait() const;
  bool putOff(std::function<void()> work);

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
  bool allowsUnsafe() const;
  void doPutOff();

  CUDADevice &device_;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t allocStream_ = nullptr, freeStream_ = nullptr;
  cudaEvent_t submitted_ = nullptr; ///< what the free stream waits for

  mutable std::mutex mutex_;
  MemoryUse use_;
  std::vector<cudaStream_t> streams_;
  std::atomic<unsigned> numCaptures_ = 0; ///< changed under the lock
  std::vector<CUDACapture *> captures_;   ///< as many
  std::vector<Block> returned_;           ///< given back, and not yet to the pool
  std::vector<std::function<void()>> putOff_;
};

} // namespace rondo::cuda
