//===- HostDeviceImpl.h - The host as a device ------------------*- C++ -*-===//

#pragma once

#include "HostCapture.h"
#include "HostDeviceMemory.h"

#include <atomic>

namespace rondo {

/// The next of a sequence of random numbers.
uint64_t splitMix64(uint64_t &state);

/// Work of its streams is known by their timelines, that of captures by their captures. Streams,
/// events, graphs and execs keep it alive; it does not know them.
class HostDevice : public DeviceAPI {
public:
  explicit HostDevice(HostDeviceOptions options);
  ~HostDevice() override;

  Device device() const override { return {DeviceKind::Host, options_.index}; }
  std::string description() const override { return "host"; }

  llvm::Expected<void *> allocate(size_t bytes) override;
  void deallocate(void *data, size_t bytes) noexcept override;
  MemoryUse memoryUse() const override { return memory_.use(); }
  void resetPeak() override { memory_.resetPeak(); }
  bool canAccess(const void *data) const override { return data != nullptr; }

  llvm::Expected<std::unique_ptr<Stream>> createStream() override;
  llvm::Expected<std::unique_ptr<Event>> createEvent() override;
  llvm::Expected<std::unique_ptr<Graph>> createGraph() override;
  llvm::Error synchronize() override;
  bool mayWait() const override { return captures_.allowUnsafe(); }
  bool putOff(std::function<void()> work) override {
    return captures_.putOff({nullptr, 0, std::move(work)});
  }

  std::shared_ptr<HostDevice> shared() {
    return std::static_pointer_cast<HostDevice>(shared_from_this());
  }
  const HostDeviceOptions &options() const { return options_; }
  HostCaptures &captures() { return captures_; }
  llvm::Error invalidArgument(const llvm::Twine &message) const;

  void streamCreated(std::shared_ptr<HostTimeline> timeline);
  void streamDestroyed(const HostTimeline &timeline);
  /// To be called after a capture has ended: does what it put off.
  void captureEnded();
  /// The seed of one exec's order of nodes, each time another; none if the order is not random.
  std::optional<uint64_t> drawOrderSeed();

private:
  void waitForStreams() const;

  HostDeviceOptions options_;
  std::string name_; ///< `host:0`, for messages
  HostDeviceMemory memory_;
  HostCaptures captures_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<HostTimeline>> timelines_; ///< of the streams
  uint64_t orderState_;                                  ///< of the seeds
};

} // namespace rondo
