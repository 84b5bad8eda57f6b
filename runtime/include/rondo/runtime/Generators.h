//===- Generators.h - Random-number generators on a device ------*- C++ -*-===//

#pragma once

#include "rondo/executors/Kernel.h"
#include "rondo/executors/Tensor.h"

#include "llvm/ADT/StringMap.h"

#include <mutex>

namespace rondo {

/// Named generators of one device: seed and base offset in its memory, where programs read and
/// advance them. Several programs may share one set. Thread-safe.
class Generators {
public:
  explicit Generators(DeviceRef device) : device_(std::move(device)) {}

  DeviceAPI &device() const { return *device_; }
  /// The state of generator `name`, made on first use with seed 0 and offset 0. Its address does
  /// not change.
  llvm::Expected<RNGState *> state(llvm::StringRef name);
  /// Sets a generator in stream order: work that was submitted before sees the old state. Waits.
  llvm::Error set(Stream &stream, llvm::StringRef name, RNGState state);
  /// The state after the work on `stream`. Waits for it.
  llvm::Expected<RNGState> get(Stream &stream, llvm::StringRef name);

private:
  const DeviceRef device_;
  std::mutex mutex_;
  llvm::StringMap<StorageRef> states_;
};

} // namespace rondo
