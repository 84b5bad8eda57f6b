//===- CUDAStream.cpp - Streams of a GPU ----------------------------------===//

#include "CUDAStream.h"

#include "CUDACommands.h"
#include "CUDAEvent.h"

using namespace rondo;
using namespace rondo::cuda;

llvm::Expected<std::unique_ptr<Stream>> CUDAStream::create(std::shared_ptr<CUDADevice> device,
                                                           cudaStream_t stream, bool isBorrowed) {
  std::unique_ptr<CUDAStream> result(new CUDAStream(std::move(device), stream, isBorrowed));
  result->device_->memory().streamCreated(stream);
  if (llvm::Error error = result->ownTail_->initialize())
    return error;
  unsigned long long id = 0;
  if (llvm::Error error =
          result->device_->run("cudaStreamGetId", [&] { return cudaStreamGetId(stream, &id); }))
    return error;
  result->id_ = id;
  return result;
}

/// A capture that began here ends. One that the stream joined goes on, and fails at its end if it
/// was not joined back.
CUDAStream::~CUDAStream() {
  if (capture_) {
    cudaGraph_t graph = nullptr;
    bool isToGraph = capture_->graph != nullptr;
    CUDAKept kept; // gone when the graph is
    CUDARelaxedScope relaxed(device_->driver());
    llvm::consumeError(end(graph, kept));
    if (graph && !isToGraph)
      device_->cleanUp("cudaGraphDestroy", [&] { return cudaGraphDestroy(graph); });
  }
  bool isCaptured = captureStatus() != CaptureStatus::None;
  if (!isBorrowed_ && !isCaptured)
    device_->cleanUp("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream_); });
  ownTail_->streamDestroyed();
  device_->memory().streamDestroyed(stream_, /*mayRun=*/isBorrowed_ && !isCaptured);
  if (!isBorrowed_)
    device_->cleanUp("cudaStreamDestroy", [&] { return cudaStreamDestroy(stream_); });
  if (capture_) // which could not be ended by this thread
    device_->memory().captureEnded(*capture_);
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

/// InvalidArgument. A capture that the stream is in becomes invalid, by a question that no capture
/// allows.
llvm::Error CUDAStream::refuse(const llvm::Twine &problem) {
  std::string text = problem.str();
  if (captureStatus() == CaptureStatus::Active)
    llvm::consumeError(query().takeError());
  return device_->invalidArgument(text);
}

size_t CUDAStream::parameterBytes(const void *function) {
  auto [entry, isNew] = parameterBytes_.try_emplace(function, 0);
  if (isNew)
    entry->second = parameterBytesOf(*device_, function);
  return entry->second;
}

llvm::Error CUDAStream::launch(const KernelLaunch &launch) {
  if (llvm::StringRef problem = problemOfKernel(launch); !problem.empty())
    return refuse(problem);
  if (device_->isLost())
    return device_->lostError();
  size_t expected = parameterBytes(launch.function);
  if (launch.parameters.size() != expected)
    return refuse(problemOfParameters(expected, launch.parameters.size()));
  CUDAKernelCommand command(launch);
  return device_->run("cuLaunchKernel", [&] { return command.launch(device_->driver(), stream_); });
}

llvm::Error CUDAStream::fill(void *destination, uint8_t value, size_t bytes) {
  if (llvm::StringRef problem = problemOfFill(destination, value, bytes); !problem.empty())
    return refuse(problem);
  if (!bytes)
    return checkCapture();
  return device_->run("cudaMemsetAsync",
                      [&] { return cudaMemsetAsync(destination, value, bytes, stream_); });
}

llvm::Error CUDAStream::copy(void *destination, const void *source, size_t bytes) {
  if (llvm::StringRef problem = problemOfCopy(destination, source, bytes); !problem.empty())
    return refuse(problem);
  if (!bytes)
    return checkCapture();
  return device_->run("cudaMemcpyAsync", [&] {
    return cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream_);
  });
}

llvm::Error CUDAStream::synchronize() {
  return device_->run("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream_); });
}

llvm::Expected<bool> CUDAStream::query() {
  return device_->ask("cudaStreamQuery", [&] { return cudaStreamQuery(stream_); });
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

llvm::Error CUDAStream::record(Event &event) {
  auto *cudaEvent = dynamic_cast<CUDAEvent *>(&event);
  if (!cudaEvent || &cudaEvent->device() != device_.get())
    return refuse("expected an event of this device to record, given another");
  return device_->run("cudaEventRecord",
                      [&] { return cudaEventRecord(cudaEvent->handle(), stream_); });
}

llvm::Error CUDAStream::wait(Event &event) {
  auto *cudaEvent = dynamic_cast<CUDAEvent *>(&event);
  if (!cudaEvent || &cudaEvent->device() != device_.get())
    return refuse("expected an event of this device to wait for, given another");
  llvm::Error error = device_->run(
      "cudaStreamWaitEvent", [&] { return cudaStreamWaitEvent(stream_, cudaEvent->handle(), 0); });
  // Of an event whose capture is over CUDA says no more than that it is wrong.
  if (!error || deviceErrorKind(error) != DeviceErrorKind::InvalidArgument ||
      captureStatus() != CaptureStatus::Invalidated)
    return error;
  return makeDeviceError(DeviceErrorKind::NotCapturable, llvm::toString(std::move(error)));
}

//===----------------------------------------------------------------------===//
// Capture
//===----------------------------------------------------------------------===//

static cudaStreamCaptureMode modeOf(CaptureMode mode) {
  switch (mode) {
  case CaptureMode::Global:
    return cudaStreamCaptureModeGlobal;
  case CaptureMode::ThreadLocal:
    return cudaStreamCaptureModeThreadLocal;
  case CaptureMode::Relaxed:
    return cudaStreamCaptureModeRelaxed;
  }
  llvm_unreachable("no mode of capture");
}

CaptureStatus CUDAStream::captureStatus() const {
  if (device_->isLost())
    return CaptureStatus::None;
  // Without a capture there is no use in asking CUDA, unless the owner of the stream began one.
  if (!isBorrowed_ && !device_->memory().hasCaptures())
    return CaptureStatus::None;
  CUDAContextScope current(device_->driver(), device_->context());
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream_, &status) != cudaSuccess)
    cudaGetLastError();
  switch (status) {
  case cudaStreamCaptureStatusNone:
    return CaptureStatus::None;
  case cudaStreamCaptureStatusActive:
    return CaptureStatus::Active;
  case cudaStreamCaptureStatusInvalidated:
    return CaptureStatus::Invalidated;
  }
  llvm_unreachable("no status of capture");
}

llvm::Error CUDAStream::checkCapture() {
  if (device_->isLost())
    return device_->lostError();
  if (captureStatus() == CaptureStatus::Invalidated)
    return device_->check(cudaErrorStreamCaptureInvalidated, "cudaStreamIsCapturing");
  return llvm::Error::success();
}

/// Begins a capture by the call `name`, to a new graph if `graph` is null. Nobody else works with
/// the stream meanwhile.
llvm::Error CUDAStream::begin(CaptureMode mode, std::shared_ptr<CUDAGraphNodes> graph,
                              llvm::StringRef name, llvm::function_ref<cudaError_t()> begin) {
  capture_.emplace();
  capture_->mode = mode;
  capture_->graph = std::move(graph);
  llvm::Error error = ownTail_->beginCapture([&] {
    return device_->memory().beginCapture(*capture_, [&]() -> llvm::Error {
      if (llvm::Error error = device_->run(name, begin))
        return error;
      capture_->id = captureId().value_or(0);
      return llvm::Error::success();
    });
  });
  if (error)
    capture_.reset();
  return error;
}

llvm::Error CUDAStream::beginCapture(CaptureMode mode) {
  if (captureStatus() != CaptureStatus::None)
    return device_->invalidArgument("a capture was begun on a stream that is being captured");
  return begin(mode, nullptr, "cudaStreamBeginCapture",
               [&] { return cudaStreamBeginCapture(stream_, modeOf(mode)); });
}

llvm::Error CUDAStream::beginCaptureToGraph(Graph &graph, llvm::ArrayRef<GraphNodeId> dependencies,
                                            CaptureMode mode) {
  if (&graph.device() != device_.get())
    return device_->invalidArgument("expected a graph of this device to capture to, given one of " +
                                    deviceName(graph.device().device()));
  const std::shared_ptr<CUDAGraphNodes> &nodes = static_cast<CUDAGraph &>(graph).nodes();
  if (captureStatus() != CaptureStatus::None)
    return device_->invalidArgument("a capture was begun on a stream that is being captured");
  if (nodes->isCaptured)
    return device_->invalidArgument("a capture was begun to a graph that is being captured to");
  llvm::Expected<CUDAGraphNodes::Handles> handles = nodes->handles(dependencies);
  if (!handles)
    return handles.takeError();
  if (llvm::Error error = begin(mode, nodes, "cudaStreamBeginCaptureToGraph", [&] {
        return cudaStreamBeginCaptureToGraph(stream_, nodes->graph, handles->data(), nullptr,
                                             handles->size(), modeOf(mode));
      }))
    return error;
  nodes->isCaptured = true;
  return llvm::Error::success();
}

llvm::Error CUDAStream::refuseToEnd() {
  return refuse(captureStatus() == CaptureStatus::None
                    ? "a capture was ended on a stream that is not being captured"
                    : "a capture was ended on a stream on which it was not begun");
}

/// Ends the capture that began here. `graph` is what it made, or was made to; `kept` is for it.
llvm::Error CUDAStream::end(cudaGraph_t &graph, CUDAKept &kept) {
  llvm::Error error =
      device_->run("cudaStreamEndCapture", [&] { return cudaStreamEndCapture(stream_, &graph); });
  if (captureStatus() != CaptureStatus::None)
    return error;
  if (capture_->graph)
    capture_->graph->isCaptured = false;
  kept = device_->memory().captureEnded(*capture_);
  capture_.reset();
  return error;
}

llvm::Expected<std::unique_ptr<Graph>> CUDAStream::endCapture() {
  if (capture_ && capture_->graph)
    return device_->invalidArgument("a capture was ended as a new graph, but was begun to a graph");
  if (!capture_)
    return refuseToEnd();
  cudaGraph_t graph = nullptr;
  CUDAKept kept;
  if (llvm::Error error = end(graph, kept))
    return error;
  auto nodes = std::make_shared<CUDAGraphNodes>(device_, graph);
  nodes->kept = std::move(kept);
  if (llvm::Error error = nodes->appendNew())
    return error;
  return std::make_unique<CUDAGraph>(std::move(nodes));
}

llvm::Error CUDAStream::endCaptureToGraph(llvm::SmallVectorImpl<GraphNodeId> &last) {
  if (capture_ && !capture_->graph)
    return device_->invalidArgument("a capture was ended to a graph, but was not begun to one");
  if (!capture_)
    return refuseToEnd();
  std::shared_ptr<CUDAGraphNodes> nodes = capture_->graph;
  llvm::SmallVector<cudaGraphNode_t, 4> handles = frontier();
  cudaGraph_t graph = nullptr;
  CUDAKept kept;
  if (llvm::Error error = end(graph, kept))
    return error;
  llvm::append_range(nodes->kept, kept);
  if (nodes.use_count() == 1)
    return makeDeviceError(DeviceErrorKind::CaptureInvalidated,
                           deviceName(device_->device()) +
                               ": the graph of the capture was destroyed");
  if (llvm::Error error = nodes->appendNew())
    return error;
  llvm::append_range(last, nodes->ids(handles));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Inside of a capture
//===----------------------------------------------------------------------===//

namespace {

/// Where the capture of a stream is. Valid until the next call on the stream.
struct CapturePoint {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode *nodes = nullptr;
  const CUgraphEdgeData *edges = nullptr;
  size_t numNodes = 0;

  CUresult get(const CUDADriver &driver, CUstream stream) {
    return driver.cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &edges, &numNodes);
  }
};

} // namespace

/// Of the capture that the stream is in, unless there is none or it is invalid.
std::optional<cuuint64_t> CUDAStream::captureId() const {
  CapturePoint point;
  llvm::Error error =
      device_->run("cuStreamGetCaptureInfo", [&] { return point.get(device_->driver(), stream_); });
  bool isActive = !error && point.status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  llvm::consumeError(std::move(error));
  return isActive ? std::optional(point.id) : std::nullopt;
}

bool CUDAStream::keep(std::shared_ptr<void> resource) {
  std::optional<cuuint64_t> id = captureId();
  return id && device_->memory().keep(*id, std::move(resource));
}

/// What the next thing on the stream would wait for; nothing where that means nothing.
llvm::SmallVector<cudaGraphNode_t, 4> CUDAStream::frontier() const {
  CapturePoint point;
  llvm::Error error =
      device_->run("cuStreamGetCaptureInfo", [&] { return point.get(device_->driver(), stream_); });
  bool isActive = !error && point.status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  llvm::consumeError(std::move(error));
  if (!isActive)
    return {};
  return {point.nodes, point.nodes + point.numNodes};
}

llvm::Error CUDAStream::addToCapture(cudaGraph_t graph) {
  const CUDADriver &driver = device_->driver();
  CapturePoint point;
  if (llvm::Error error =
          device_->run("cuStreamGetCaptureInfo", [&] { return point.get(driver, stream_); }))
    return error;
  CUgraphNodeParams parameters = {};
  parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
  parameters.graph.graph = graph;
  CUgraphNode node = nullptr;
  if (llvm::Error error = device_->run("cuGraphAddNode", [&] {
        return driver.cuGraphAddNode(&node, point.graph, point.nodes, point.edges, point.numNodes,
                                     &parameters);
      }))
    return error;
  return device_->run("cuStreamUpdateCaptureDependencies", [&] {
    return driver.cuStreamUpdateCaptureDependencies(stream_, &node, nullptr, 1,
                                                    CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  });
}
