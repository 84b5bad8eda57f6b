//===- HostDeviceMemory.cpp - The host as a device: memory ----------------===//

#include "HostDeviceMemory.h"

#include <cstring>
#include <limits>
#include <new>

using namespace rondo;

static constexpr std::align_val_t alignment{DeviceAPI::allocationAlignment};
static constexpr int poisonByte = 0xff;

void *HostDeviceMemory::allocate(size_t bytes) {
  if (!reserve(bytes))
    return nullptr;
  callHook(int64_t(bytes));
  void *data = ::operator new(bytes, alignment, std::nothrow);
  std::unique_lock lock(mutex_);
  if (data) {
    ++use_.allocations;
    use_.peakBytes = std::max(use_.peakBytes, use_.bytes);
    lock.unlock();
    if (options_.poison)
      std::memset(data, poisonByte, bytes);
    return data;
  }
  lock.unlock();
  callHook(-int64_t(bytes));
  unreserve(bytes);
  return nullptr;
}

void HostDeviceMemory::deallocate(void *data, size_t bytes) noexcept {
  if (options_.poison)
    std::memset(data, poisonByte, bytes);
  callHook(-int64_t(bytes));
  ::operator delete(data, alignment);
  unreserve(bytes);
}

MemoryUse HostDeviceMemory::use() const {
  std::lock_guard lock(mutex_);
  return use_;
}

void HostDeviceMemory::resetPeak() {
  std::lock_guard lock(mutex_);
  use_.peakBytes = use_.bytes;
}

/// Counts `bytes` as in use, unless that is more than the limit or than could ever be addressed.
bool HostDeviceMemory::reserve(size_t bytes) {
  uint64_t most = std::numeric_limits<int64_t>::max() / 2;
  if (options_.memoryLimit)
    most = std::min(most, options_.memoryLimit);
  std::lock_guard lock(mutex_);
  if (bytes > most || use_.bytes > most - bytes)
    return false;
  use_.bytes += bytes;
  return true;
}

void HostDeviceMemory::unreserve(size_t bytes) {
  std::lock_guard lock(mutex_);
  assert(use_.bytes >= bytes && "deallocated with more bytes than were allocated");
  use_.bytes -= bytes;
}

void HostDeviceMemory::callHook(int64_t bytes) const {
  if (options_.memoryHook)
    options_.memoryHook(bytes);
}
