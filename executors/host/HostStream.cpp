//===- HostStream.cpp - Streams of the host -------------------------------===//

#include "HostStream.h"

#include "HostEvent.h"

using namespace rondo;

/// Ids of the host have the top bit set, those that CUDA gives its streams have not.
static uint64_t nextStreamId() {
  static std::atomic<uint64_t> next = uint64_t(1) << 63; // ids are unique in the process
  return next++;
}

namespace {

class HostStreamTail : public StreamTail {
public:
  HostStreamTail(const std::shared_ptr<HostDevice> &device, std::shared_ptr<HostTimeline> timeline)
      : device_(device), timeline_(std::move(timeline)) {}

  llvm::Error orderBefore(Stream &stream) override {
    HostEventRecord end;
    end.point = {timeline_, timeline_->lastSubmitted()};
    return static_cast<HostStream &>(stream).waitFor(end);
  }
  llvm::Error synchronize() override {
    std::shared_ptr<HostDevice> device = device_.lock();
    if (!device) // and so the stream
      return llvm::Error::success();
    HostEventRecord end;
    end.point = {timeline_, timeline_->lastSubmitted()};
    llvm::Expected<HostWorkPoint> point = device->captures().pointOf(end, "synchronize");
    if (!point)
      return point.takeError();
    point->wait();
    return llvm::Error::success();
  }

private:
  std::weak_ptr<HostDevice> device_; ///< which the stream keeps alive
  std::shared_ptr<HostTimeline> timeline_;
};

} // namespace

HostStream::HostStream(std::shared_ptr<HostDevice> device)
    : device_(std::move(device)), id_(nextStreamId()),
      tail_(std::make_shared<HostStreamTail>(device_, timeline_)) {
  if (device_->options().asynchronous)
    queue_ = std::make_unique<HostStreamQueue>(timeline_);
  device_->streamCreated(timeline_);
}

HostStream::~HostStream() {
  device_->captures().streamDestroyed(member_);
  queue_.reset();
  device_->streamDestroyed(*timeline_);
  device_->captureEnded();
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

llvm::Error HostStream::launch(const KernelLaunch &launch) {
  return submit(problemOfKernel(launch), HostCommand::kernel(launch), launch.parameters);
}

llvm::Error HostStream::fill(void *destination, uint8_t value, size_t bytes) {
  return submit(problemOfFill(destination, value, bytes),
                HostCommand::fill(destination, value, bytes), {});
}

llvm::Error HostStream::copy(void *destination, const void *source, size_t bytes) {
  return submit(problemOfCopy(destination, source, bytes),
                HostCommand::copy(destination, source, bytes), {});
}

/// True if this stream is in capture and the nodes were added.
llvm::Expected<bool> HostStream::capture(HostCaptures::AddNodes add) {
  if (!member_.isCaptured)
    return false;
  return device_->captures().submit(member_, add);
}

llvm::Error HostStream::submit(llvm::StringRef problem, const HostCommand &command,
                               llvm::ArrayRef<std::byte> parameters) {
  if (!problem.empty())
    return device_->captures().refuseArguments(member_, problem);
  llvm::Expected<bool> isCaptured =
      capture([&](HostGraph &graph, llvm::SmallVectorImpl<GraphNodeId> &frontier) {
        frontier.assign(1, graph.add(command, parameters, frontier));
      });
  if (!isCaptured)
    return isCaptured.takeError();
  if (!*isCaptured)
    run(command, parameters);
  return llvm::Error::success();
}

void HostStream::run(const HostCommand &command, llvm::ArrayRef<std::byte> parameters) {
  if (queue_)
    return queue_->push(command, parameters);
  uint64_t point = timeline_->submit();
  copyParameters(parameters_, parameters);
  command.run(reinterpret_cast<const std::byte *>(parameters_.data()));
  timeline_->complete(point);
}

llvm::Error HostStream::launchExec(HostGraphExec &exec) {
  llvm::Expected<bool> isCaptured =
      capture([&](HostGraph &graph, llvm::SmallVectorImpl<GraphNodeId> &frontier) {
        exec.addTo(graph, frontier);
      });
  if (!isCaptured)
    return isCaptured.takeError();
  if (*isCaptured)
    return llvm::Error::success();
  if (queue_) {
    queue_->push(exec.submit());
    return llvm::Error::success();
  }
  uint64_t point = timeline_->submit();
  exec.run(exec.submit());
  timeline_->complete(point);
  return llvm::Error::success();
}

llvm::Error HostStream::synchronize() {
  if (llvm::Error error = device_->captures().refuseInCapture(member_, "synchronize"))
    return error;
  timeline_->waitForAll();
  return llvm::Error::success();
}

llvm::Expected<bool> HostStream::query() {
  if (llvm::Error error = device_->captures().refuseInCapture(member_, "query"))
    return error;
  return timeline_->isComplete(timeline_->lastSubmitted());
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

llvm::Error HostStream::record(Event &event) {
  auto *hostEvent = dynamic_cast<HostEvent *>(&event);
  if (!hostEvent || &hostEvent->device() != device_.get())
    return device_->captures().refuseArguments(
        member_, "expected an event of this device to record, given another");
  return device_->captures().record(member_, {timeline_, timeline_->lastSubmitted()},
                                    hostEvent->lastRecord());
}

llvm::Error HostStream::wait(Event &event) {
  auto *hostEvent = dynamic_cast<HostEvent *>(&event);
  if (!hostEvent || &hostEvent->device() != device_.get())
    return device_->captures().refuseArguments(
        member_, "expected an event of this device to wait for, given another");
  return waitFor(hostEvent->lastRecord());
}

llvm::Error HostStream::waitFor(const HostEventRecord &record) {
  llvm::Expected<HostWorkPoint> point = device_->captures().wait(member_, record);
  if (!point)
    return point.takeError();
  if (point->isComplete())
    return llvm::Error::success();
  if (queue_)
    queue_->push(std::move(*point));
  else
    point->wait();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Capture
//===----------------------------------------------------------------------===//

CaptureStatus HostStream::captureStatus() const {
  return device_->captures().status(member_);
}

llvm::Error HostStream::beginCapture(CaptureMode mode) {
  return device_->captures().begin(member_, mode, std::make_unique<HostGraph>(device_));
}

llvm::Expected<std::unique_ptr<Graph>> HostStream::endCapture() {
  llvm::Expected<std::unique_ptr<HostGraph>> graph = device_->captures().end(member_);
  device_->captureEnded();
  if (!graph)
    return graph.takeError();
  return std::move(*graph);
}

llvm::Error HostStream::beginCaptureToGraph(Graph &graph, llvm::ArrayRef<GraphNodeId> dependencies,
                                            CaptureMode mode) {
  if (&graph.device() != device_.get())
    return device_->invalidArgument("expected a graph of this device to capture to, given one of " +
                                    deviceName(graph.device().device()));
  return device_->captures().beginToGraph(member_, mode, static_cast<HostGraph &>(graph),
                                          dependencies);
}

llvm::Error HostStream::endCaptureToGraph(llvm::SmallVectorImpl<GraphNodeId> &last) {
  llvm::Error error = device_->captures().endToGraph(member_, last);
  device_->captureEnded();
  return error;
}

bool HostStream::keep(std::shared_ptr<void> resource) {
  llvm::Expected<bool> isCaptured =
      capture([&](HostGraph &graph, llvm::SmallVectorImpl<GraphNodeId> &) {
        graph.keep({std::move(resource)});
      });
  if (isCaptured)
    return *isCaptured;
  llvm::consumeError(isCaptured.takeError()); // nothing comes of the capture
  return true;
}
