//===- Raw.h - A device's own API -------------------------------*- C++ -*-===//
//
// The calls that Rondo's are compared with in the same run: of CUDA the runtime's and the driver's;
// of the host, which has no other API, those of its device.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

namespace rondo {

/// Launches and builds graphs without Rondo. One thread.
class RawAPI {
public:
  /// Seconds, of a whole graph.
  struct ChainTimes {
    double add = 0, instantiate = 0;
  };

  virtual ~RawAPI();

  /// The name of what `launch(GraphExec &, …)` calls, for people.
  virtual llvm::StringRef graphLaunchName() const = 0;
  virtual llvm::Error launch(GraphExec &exec, Stream &stream) = 0;
  virtual llvm::StringRef kernelLaunchName() const = 0;
  virtual llvm::Error launch(const KernelLaunch &launch, Stream &stream) = 0;
  /// How long it takes to make a graph of these, one behind the other, and to instantiate it;
  /// nothing if there is no API but Rondo's.
  virtual llvm::Expected<std::optional<ChainTimes>>
  buildChain(llvm::ArrayRef<KernelLaunch> launches) = 0;

  /// The device's clock: seconds that pass on it between the two, after a wait for the stream;
  /// nothing if it has none.
  virtual llvm::Error startClock(Stream &stream) = 0;
  virtual llvm::Expected<std::optional<double>> stopClock(Stream &stream) = 0;

  /// Bytes of the device's memory that no process has taken; nothing if it does not say.
  virtual llvm::Expected<std::optional<uint64_t>> freeMemory() = 0;
};

std::unique_ptr<RawAPI> createHostRaw();
/// Of a CUDA device. Errors: this build has no CUDA, or CUDA's.
llvm::Expected<std::unique_ptr<RawAPI>> createCUDARaw(const DeviceAPI &device);

} // namespace rondo
