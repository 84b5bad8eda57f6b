//===- HostDevice.h - The host as a device with graphs ----------*- C++ -*-===//
//
// A device that runs on the CPU and really captures: work submitted to a stream in capture becomes
// nodes with dependencies and parameter blocks. It enforces CUDA's rules of capture, so that what
// works here works there, and can be made hostile: nodes in random order, dead memory poisoned,
// streams on threads of their own.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

#include <optional>

namespace rondo {

struct HostDeviceOptions {
  uint16_t index = 0;
  /// Each stream runs on a thread of its own. Otherwise work runs in the call that submits it.
  bool asynchronous = false;
  /// Launches run a graph's nodes in a random valid topological order, drawn anew for every launch
  /// from this seed; else in the order in which they were added.
  std::optional<uint64_t> randomOrderSeed = std::nullopt;
  /// Fills memory with 0xFF, which is nan in every floating-point type, when it is allocated and
  /// before it is freed.
  bool poison = false;
  /// `allocate` fails with OutOfMemory beyond this many bytes; 0: no limit.
  uint64_t memoryLimit = 0;
  /// Called for every allocation (positive) and deallocation (negative), before it happens; may be
  /// null. From any thread.
  std::function<void(int64_t bytes)> memoryHook = nullptr;
};

/// Never fails. The device lives as long as the last of its streams, graphs, storages.
DeviceRef createHostDevice(HostDeviceOptions options = {});

/// The type of `KernelLaunch::function` on the host.
using HostFunction = void (*)(const std::byte *parameters);

} // namespace rondo
