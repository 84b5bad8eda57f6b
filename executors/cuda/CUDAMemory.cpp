//===- CUDAMemory.cpp - The memory of a GPU -------------------------------===//

#include "CUDADeviceImpl.h"

#include <limits>

using namespace rondo;
using namespace rondo::cuda;

llvm::Error CUDAMemory::initialize(int device) {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  if (llvm::Error error =
          device_.run("cudaMemPoolCreate", [&] { return cudaMemPoolCreate(&pool_, &properties); }))
    return error;
  uint64_t keepAll = std::numeric_limits<uint64_t>::max();
  int yes = 1, no = 0;
  const std::pair<cudaMemPoolAttr, void *> attributes[] = {
      {cudaMemPoolAttrReleaseThreshold, &keepAll},
      {cudaMemPoolReuseAllowOpportunistic, &yes},
      {cudaMemPoolReuseAllowInternalDependencies, &no}};
  for (const auto &attribute : attributes)
    if (llvm::Error error = device_.run("cudaMemPoolSetAttribute", [&] {
          return cudaMemPoolSetAttribute(pool_, attribute.first, attribute.second);
        }))
      return error;
  for (cudaStream_t *stream : {&allocStream_, &freeStream_})
    if (llvm::Error error = device_.run("cudaStreamCreateWithFlags", [&] {
          return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
        }))
      return error;
  return device_.run("cudaEventCreateWithFlags",
                     [&] { return cudaEventCreateWithFlags(&submitted_, cudaEventDisableTiming); });
}

/// There are no streams and captures any more.
CUDAMemory::~CUDAMemory() {
  release();
  for (cudaStream_t stream : {allocStream_, freeStream_})
    if (stream) {
      device_.cleanUp("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream); });
      device_.cleanUp("cudaStreamDestroy", [&] { return cudaStreamDestroy(stream); });
    }
  if (submitted_)
    device_.cleanUp("cudaEventDestroy", [&] { return cudaEventDestroy(submitted_); });
  if (pool_)
    device_.cleanUp("cudaMemPoolDestroy", [&] { return cudaMemPoolDestroy(pool_); });
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

llvm::Expected<void *> CUDAMemory::allocate(size_t bytes) {
  constexpr uint64_t most = std::numeric_limits<int64_t>::max() / 2; // what can be addressed
  if (bytes > most)
    return outOfMemory(bytes);
  doPutOff();
  void *data = nullptr;
  llvm::Error error = allocateFromPool(&data, bytes);
  if (deviceErrorKind(error) == DeviceErrorKind::OutOfMemory) {
    llvm::consumeError(std::move(error));
    trim();
    error = allocateFromPool(&data, bytes);
  }
  if (deviceErrorKind(error) == DeviceErrorKind::OutOfMemory) {
    llvm::consumeError(std::move(error));
    return outOfMemory(bytes);
  }
  if (error)
    return error;
  // Any stream may use the memory from here on. A capture forbids to wait, and so to allocate.
  error = device_.run("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(allocStream_); });
  std::lock_guard lock(mutex_);
  if (error) {
    returned_.push_back({data, 0});
    return error;
  }
  use_.bytes += bytes;
  ++use_.allocations;
  use_.peakBytes = std::max(use_.peakBytes, use_.bytes);
  return data;
}

llvm::Error CUDAMemory::allocateFromPool(void **data, size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    release();
  }
  return device_.run("cudaMallocFromPoolAsync",
                     [&] { return cudaMallocFromPoolAsync(data, bytes, pool_, allocStream_); });
}

llvm::Error CUDAMemory::outOfMemory(size_t bytes) const {
  return makeDeviceError(DeviceErrorKind::OutOfMemory,
                         deviceName(device_.device()) + ": cannot allocate " +
                             std::to_string(bytes) + " bytes, " + std::to_string(use().bytes) +
                             " are in use");
}

MemoryUse CUDAMemory::use() const {
  std::lock_guard lock(mutex_);
  return use_;
}

void CUDAMemory::resetPeak() {
  std::lock_guard lock(mutex_);
  use_.peakBytes = use_.bytes;
}

//===----------------------------------------------------------------------===//
// Giving back
//===----------------------------------------------------------------------===//

void CUDAMemory::deallocate(void *data, size_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  returned_.push_back({data, bytes});
  release();
}

void CUDAMemory::trim() noexcept {
  doPutOff();
  {
    std::lock_guard lock(mutex_);
    release();
  }
  device_.cleanUp("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(freeStream_); });
  device_.cleanUp("cudaMemPoolTrimTo", [&] { return cudaMemPoolTrimTo(pool_, 0); });
}

/// Gives what was given back to the pool, unless a capture keeps the free stream from knowing what
/// to wait for. The lock is held.
void CUDAMemory::release() {
  if (returned_.empty() || (!device_.isLost() && !orderFrees()))
    return;
  for (Block block : returned_) {
    device_.cleanUp("cudaFreeAsync", [&] { return cudaFreeAsync(block.data, freeStream_); });
    assert(use_.bytes >= block.bytes && "deallocated with more bytes than were allocated");
    use_.bytes -= block.bytes;
  }
  returned_.clear();
}

/// Makes the free stream wait for all that was submitted. False if that cannot be now.
bool CUDAMemory::orderFrees() {
  if (isAnyCaptured())
    return false;
  CUDARelaxedScope relaxed(device_.driver());
  for (cudaStream_t stream : streams_)
    if (llvm::Error error = waitFor(stream)) {
      llvm::consumeError(std::move(error));
      return false;
    }
  return true;
}

/// Also of streams that somebody else captures.
bool CUDAMemory::isAnyCaptured() const {
  if (numCaptures_)
    return true;
  CUDAContextScope current(device_.driver(), device_.context());
  return llvm::any_of(streams_, [](cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) == cudaSuccess)
      return status != cudaStreamCaptureStatusNone;
    cudaGetLastError(); // the default stream, while a capture forbids its use
    return true;
  });
}

/// Makes the free stream wait for all that was submitted to `stream`.
llvm::Error CUDAMemory::waitFor(cudaStream_t stream) {
  if (llvm::Error error =
          device_.run("cudaEventRecord", [&] { return cudaEventRecord(submitted_, stream); }))
    return error;
  return device_.run("cudaStreamWaitEvent",
                     [&] { return cudaStreamWaitEvent(freeStream_, submitted_, 0); });
}

//===----------------------------------------------------------------------===//
// Streams and captures
//===----------------------------------------------------------------------===//

void CUDAMemory::streamCreated(cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  streams_.push_back(stream);
}

void CUDAMemory::streamDestroyed(cudaStream_t stream, bool mayRun) {
  {
    std::lock_guard lock(mutex_);
    if (mayRun)
      llvm::consumeError(waitFor(stream));
    streams_.erase(llvm::find(streams_, stream)); // one of those that borrow it
  }
  doPutOff();
}

llvm::Error CUDAMemory::beginCapture(CUDACapture &capture,
                                     llvm::function_ref<llvm::Error()> begin) {
  std::lock_guard lock(mutex_);
  if (llvm::Error error = begin())
    return error;
  capture.thread = std::this_thread::get_id();
  captures_.push_back(&capture);
  ++numCaptures_;
  return llvm::Error::success();
}

CUDAKept CUDAMemory::captureEnded(CUDACapture &capture) {
  CUDAKept kept;
  {
    std::lock_guard lock(mutex_);
    llvm::erase_value(captures_, &capture);
    --numCaptures_;
    kept.swap(capture.kept);
    release();
  }
  doPutOff();
  return kept;
}

bool CUDAMemory::keep(cuuint64_t captureId, std::shared_ptr<void> resource) {
  std::lock_guard lock(mutex_);
  auto capture = llvm::find_if(captures_, [&](CUDACapture *c) { return c->id == captureId; });
  if (capture == captures_.end())
    return false;
  (*capture)->kept.push_back(std::move(resource));
  return true;
}

//===----------------------------------------------------------------------===//
// What captures put off
//===----------------------------------------------------------------------===//

/// Of captures that were begun here. The lock is held.
bool CUDAMemory::allowsUnsafe() const {
  return llvm::none_of(captures_, [](CUDACapture *capture) { return capture->forbidsUnsafe(); });
}

bool CUDAMemory::mayWait() const {
  std::lock_guard lock(mutex_);
  return allowsUnsafe();
}

/// Of a capture that somebody else began it is not known whom it forbids what.
bool CUDAMemory::putOff(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (device_.isLost() || (captures_.empty() ? !isAnyCaptured() : allowsUnsafe()))
    return false;
  putOff_.push_back(std::move(work));
  return true;
}

/// What still cannot be done puts itself off again. The lock is not held.
void CUDAMemory::doPutOff() {
  std::vector<std::function<void()>> ready;
  {
    std::lock_guard lock(mutex_);
    if (putOff_.empty())
      return;
    ready.swap(putOff_);
  }
  for (const std::function<void()> &work : ready)
    work();
}
