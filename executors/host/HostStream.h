//===- HostStream.h - Streams of the host -----------------------*- C++ -*-===//

#pragma once

#include "HostStreamQueue.h"

namespace rondo {

/// A stream whose work runs in the call that submits it or, if it has a queue, on the queue's
/// thread.
class HostStream : public Stream {
public:
  explicit HostStream(std::shared_ptr<HostDevice> device);
  ~HostStream() override;

  DeviceAPI &device() override { return *device_; }
  llvm::Error launch(const KernelLaunch &launch) override;
  llvm::Error fill(void *destination, uint8_t value, size_t bytes) override;
  llvm::Error copy(void *destination, const void *source, size_t bytes) override;
  llvm::Error synchronize() override;

  uint64_t id() const override { return id_; }
  void *nativeHandle() const override { return nullptr; }
  llvm::Expected<bool> query() override;
  llvm::Error record(Event &event) override;
  llvm::Error wait(Event &event) override;
  const std::shared_ptr<StreamTail> &tail() const override { return tail_; }

  CaptureStatus captureStatus() const override;
  llvm::Error beginCapture(CaptureMode mode) override;
  llvm::Expected<std::unique_ptr<Graph>> endCapture() override;
  llvm::Error beginCaptureToGraph(Graph &graph, llvm::ArrayRef<GraphNodeId> dependencies,
                                  CaptureMode mode) override;
  llvm::Error endCaptureToGraph(llvm::SmallVectorImpl<GraphNodeId> &last) override;
  bool keep(std::shared_ptr<void> resource) override;

  llvm::Error launchExec(HostGraphExec &exec);
  llvm::Error waitFor(const HostEventRecord &record);

private:
  llvm::Error submit(llvm::StringRef problem, const HostCommand &command,
                     llvm::ArrayRef<std::byte> parameters);
  llvm::Expected<bool> capture(HostCaptures::AddNodes add);
  void run(const HostCommand &command, llvm::ArrayRef<std::byte> parameters);

  std::shared_ptr<HostDevice> device_;
  uint64_t id_;
  std::shared_ptr<HostTimeline> timeline_ = std::make_shared<HostTimeline>();
  std::shared_ptr<StreamTail> tail_;
  HostCaptureMember member_;
  std::vector<ParameterChunk> parameters_; ///< of the kernel that runs
  std::unique_ptr<HostStreamQueue> queue_; ///< null: work runs in the call that submits it
};

} // namespace rondo
