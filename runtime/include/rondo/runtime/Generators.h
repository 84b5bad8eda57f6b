//===- Generators.h - Random-number generators on a device ------*- C++ -*-===//

#pragma once

#include "rondo/runtime/LastUse.h"

#include "rondo/executors/Kernel.h"
#include "rondo/executors/Tensor.h"

#include "llvm/ADT/StringMap.h"

#include <mutex>

namespace rondo {

/// Named generators of one device: seed and base offset in its memory, where programs read and
/// advance them. Several programs may share one set; calls that use it, on whatever streams, follow
/// one another. Thread-safe.
class Generators {
public:
  explicit Generators(DeviceRef device) : device_(std::move(device)) {}

  DeviceAPI &device() const { return *device_; }
  /// The state of generator `name`, made on first use with seed 0 and offset 0. Its address does
  /// not change.
  llvm::Expected<RNGState *> state(llvm::StringRef name);
  /// Sets a generator: work that was submitted before, on any stream, sees the old state. Waits.
  llvm::Error set(Stream &stream, llvm::StringRef name, RNGState state);
  /// The state after the work that was submitted before. Waits for it.
  llvm::Expected<RNGState> get(Stream &stream, llvm::StringRef name);

  /// For the runtime: while one lives between `begin` and `end` nobody else submits work that uses
  /// the generators, and what its stream gets waits for such work on other streams.
  class Use {
  public:
    llvm::Error begin(Generators &generators, Stream &stream);
    /// Does nothing before `begin`.
    llvm::Error end();

  private:
    Generators *generators_ = nullptr;
    Stream *stream_ = nullptr;
    std::unique_lock<std::mutex> lock_;
  };

private:
  llvm::Error onStream(Stream &stream, llvm::function_ref<llvm::Error()> submit);

  const DeviceRef device_;
  std::mutex useMutex_; ///< for what follows; taken before mutex_
  LastUse lastUse_;
  std::mutex mutex_;
  llvm::StringMap<StorageRef> states_;
};

} // namespace rondo
