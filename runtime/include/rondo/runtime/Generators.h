//===- Generators.h - Random-number generators on a device ------*- C++ -*-===//

#pragma once

#include "rondo/runtime/LastUse.h"

#include "rondo/executors/Kernel.h"
#include "rondo/executors/Tensor.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace rondo {

/// Named generators of one device: seed and base offset in its memory, where programs read and
/// advance them. Several programs may share one set; calls that use it, on whatever streams, follow
/// one another. A generator that nobody has named yet has seed 0 and offset 0. Thread-safe.
///
/// What the host reads and sets is ordered with all calls of programs: calls that were submitted
/// before, on any stream, use the old state, also while they are in flight, and calls that are
/// submitted afterwards the new one. Launches of a graph that the caller captured are the caller's
/// to order. These functions wait. Errors of them: a stream of another device; one that is being
/// captured, and any where a capture forbids the thread to wait (NotCapturable), which leaves the
/// capture and the states as they were.
class Generators {
public:
  /// By name.
  using States = std::map<std::string, RNGState>;

  explicit Generators(DeviceRef device) : device_(std::move(device)) {}

  DeviceAPI &device() const { return *device_; }
  /// The state of generator `name`, made on first use. Its address does not change. May be called
  /// while a stream is being captured, by the thread that captures, too, and joins no capture.
  /// Errors: those of DeviceAPI::allocate; captures of mode Global forbid it unless a generator was
  /// made before.
  llvm::Expected<RNGState *> state(llvm::StringRef name);
  llvm::Error set(Stream &stream, llvm::StringRef name, RNGState state);
  /// Sets the seed, and the base offset to 0. Generators of one seed draw the same numbers.
  llvm::Error seed(Stream &stream, llvm::StringRef name, uint64_t seed) {
    return set(stream, name, {seed, 0});
  }
  llvm::Expected<RNGState> get(Stream &stream, llvm::StringRef name);

  /// The states of all generators at one point between calls, for `restore`: what is drawn after
  /// that is what was drawn after the snapshot.
  llvm::Expected<States> snapshot(Stream &stream);
  /// Sets all generators: those that `states` does not name, since they were first used after the
  /// snapshot, have seed 0 and offset 0 again. All are set, or, after an error of `state`, none.
  llvm::Error restore(Stream &stream, const States &states);

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
  /// States share allocations: no name but the first of a block takes memory.
  static constexpr size_t blockBytes = DeviceAPI::allocationAlignment,
                          statesPerBlock = blockBytes / sizeof(RNGState);

  llvm::Error onStream(Stream &stream, llvm::function_ref<llvm::Error()> submit);
  RNGState *stateAt(unsigned number) const;

  const DeviceRef device_;
  std::mutex useMutex_; ///< for what follows; taken before mutex_
  LastUse lastUse_;
  std::mutex mutex_; ///< for what follows
  llvm::StringMap<unsigned> numbers_;
  std::vector<StorageRef> blocks_;
};

} // namespace rondo
