//===- CUDAStream.h - Streams of a GPU --------------------------*- C++ -*-===//

#pragma once

#include "CUDAGraph.h"
#include "CUDAStreamTail.h"

#include "llvm/ADT/DenseMap.h"

namespace rondo::cuda {

/// A stream that was made for it, or one that somebody else keeps alive and may use, and capture,
/// beside it.
class CUDAStream : public Stream {
public:
  /// Takes `stream` over unless it is borrowed.
  static llvm::Expected<std::unique_ptr<Stream>> create(std::shared_ptr<CUDADevice> device,
                                                        cudaStream_t stream, bool isBorrowed);
  ~CUDAStream() override;

  DeviceAPI &device() override { return *device_; }
  llvm::Error launch(const KernelLaunch &launch) override;
  llvm::Error fill(void *destination, uint8_t value, size_t bytes) override;
  llvm::Error copy(void *destination, const void *source, size_t bytes) override;
  llvm::Error synchronize() override;

  uint64_t id() const override { return id_; }
  void *nativeHandle() const override { return stream_; }
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

  cudaStream_t handle() const { return stream_; }
  /// Adds a graph as one node to the capture that the stream is in.
  llvm::Error addToCapture(cudaGraph_t graph);
  /// CaptureInvalidated if the stream is in a capture that is.
  llvm::Error checkCapture();

private:
  /// A capture that was begun here and not ended.
  struct Capture : CUDACapture {
    std::shared_ptr<CUDAGraphNodes> graph; ///< null: a new one
  };

  CUDAStream(std::shared_ptr<CUDADevice> device, cudaStream_t stream, bool isBorrowed)
      : device_(std::move(device)), stream_(stream), isBorrowed_(isBorrowed),
        ownTail_(std::make_shared<CUDAStreamTail>(device_, stream)), tail_(ownTail_) {}
  llvm::Error refuse(const llvm::Twine &problem);
  size_t parameterBytes(const void *function);
  llvm::Error begin(CaptureMode mode, std::shared_ptr<CUDAGraphNodes> graph, llvm::StringRef name,
                    llvm::function_ref<cudaError_t()> begin);
  llvm::Error refuseToEnd();
  llvm::Error end(cudaGraph_t &graph, CUDAKept &kept);
  std::optional<cuuint64_t> captureId() const;
  llvm::SmallVector<cudaGraphNode_t, 4> frontier() const;

  std::shared_ptr<CUDADevice> device_;
  cudaStream_t stream_;
  bool isBorrowed_;
  uint64_t id_ = 0;
  std::shared_ptr<CUDAStreamTail> ownTail_;
  std::shared_ptr<StreamTail> tail_; ///< the same
  std::optional<Capture> capture_;
  llvm::DenseMap<const void *, size_t> parameterBytes_; ///< of functions that were launched
};

} // namespace rondo::cuda
