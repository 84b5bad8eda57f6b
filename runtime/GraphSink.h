//===- GraphSink.h - What kernels submit becomes nodes ----------*- C++ -*-===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

namespace rondo {

/// Adds what a kernel submits to a graph, one node behind the other. For a graph that is looked at
/// and never run, `maxBytes` is the most that is added of fills and copies.
class GraphSink : public CommandSink {
public:
  GraphSink(DeviceRef device, Graph &graph, std::optional<size_t> maxBytes = std::nullopt)
      : device_(std::move(device)), graph_(graph), maxBytes_(maxBytes) {}

  /// Dependencies of what comes next; afterwards, the nodes that nothing waits for yet.
  llvm::SmallVector<GraphNodeId, 4> frontier;

  /// Did a library submit something by itself?
  bool hasCalls() const { return stream_ != nullptr; }

  DeviceAPI &device() override { return *device_; }
  bool isRehearsal() const override { return maxBytes_.has_value(); }
  llvm::Error launch(const KernelLaunch &launch) override {
    return advance(graph_.addKernel(launch, frontier));
  }
  llvm::Error fill(void *destination, uint8_t value, size_t bytes) override {
    return advance(graph_.addFill(destination, value, added(bytes), frontier));
  }
  llvm::Error copy(void *destination, const void *source, size_t bytes) override {
    return advance(graph_.addCopy(destination, source, added(bytes), frontier));
  }
  llvm::Error gather(llvm::ArrayRef<CopyPiece> pieces) {
    return advance(graph_.addGather(pieces, frontier));
  }
  llvm::Error synchronize() override {
    return makeDeviceError(DeviceErrorKind::NotCapturable,
                           "it waits for the device, which is not possible in a graph");
  }
  /// A short capture of what the library submits.
  llvm::Error call(llvm::function_ref<llvm::Error(Stream &)> submit) override;

private:
  size_t added(size_t bytes) const { return std::min(bytes, maxBytes_.value_or(bytes)); }
  llvm::Error advance(llvm::Expected<GraphNodeId> node) {
    if (!node)
      return node.takeError();
    frontier.assign(1, *node);
    return llvm::Error::success();
  }

  DeviceRef device_;
  Graph &graph_;
  const std::optional<size_t> maxBytes_;
  std::unique_ptr<Stream> stream_;
};

} // namespace rondo
