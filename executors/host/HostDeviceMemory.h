//===- HostDeviceMemory.h - The host as a device: memory --------*- C++ -*-===//

#pragma once

#include "rondo/host/HostDevice.h"

#include <mutex>

namespace rondo {

/// The memory of one device, counted, limited and, when asked, poisoned. Thread-safe.
class HostDeviceMemory {
public:
  /// `options` must outlive it.
  explicit HostDeviceMemory(const HostDeviceOptions &options) : options_(options) {}

  /// `bytes` above 0. Null where the limit or the system refuses.
  void *allocate(size_t bytes);
  void deallocate(void *data, size_t bytes) noexcept;
  MemoryUse use() const;
  void resetPeak();

private:
  bool reserve(size_t bytes);
  void unreserve(size_t bytes);
  void callHook(int64_t bytes) const;

  const HostDeviceOptions &options_;
  mutable std::mutex mutex_;
  MemoryUse use_;
};

} // namespace rondo
