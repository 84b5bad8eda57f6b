//===- HostCapture.cpp - The rules of capture on the host -----------------===//
//
// Every function takes the one lock. A capture, and with it a graph, must not die under the lock,
// because a graph's destructor takes it: who lets go of one keeps it until the lock is released.
//
//===----------------------------------------------------------------------===//

#include "HostCapture.h"

#include "HostGraph.h"

using namespace rondo;

HostCapture::HostCapture() = default;
HostCapture::~HostCapture() = default;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

llvm::Error HostCaptures::error(DeviceErrorKind kind, const llvm::Twine &message) const {
  return makeDeviceError(kind, name_ + ": " + message);
}

/// Keeps `why` as what is wrong with the capture, unless something was before.
llvm::Error HostCaptures::invalidate(HostCapture &capture, const llvm::Twine &why,
                                     DeviceErrorKind kind) const {
  std::string text = why.str();
  if (capture.isValid())
    capture.failure = text;
  return error(kind, text);
}

llvm::Error HostCaptures::invalidatedError(const HostCapture &capture) const {
  return error(DeviceErrorKind::CaptureInvalidated, "the capture is invalid: " + capture.failure);
}

bool HostCapture::forbidsUnsafe() const {
  return mode == CaptureMode::Global ||
         (mode == CaptureMode::ThreadLocal && thread == std::this_thread::get_id());
}

//===----------------------------------------------------------------------===//
// Beginning and ending
//===----------------------------------------------------------------------===//

llvm::Error HostCaptures::begin(HostCaptureMember &stream, CaptureMode mode,
                                std::unique_ptr<HostGraph> graph) {
  auto capture = std::make_shared<HostCapture>();
  capture->mode = mode;
  capture->graph = graph.get();
  capture->owned = std::move(graph);
  return open(stream, std::move(capture), {});
}

llvm::Error HostCaptures::beginToGraph(HostCaptureMember &stream, CaptureMode mode,
                                       HostGraph &graph, llvm::ArrayRef<GraphNodeId> dependencies) {
  if (llvm::Error error = graph.checkDependencies(dependencies))
    return error;
  auto capture = std::make_shared<HostCapture>();
  capture->mode = mode;
  capture->graph = &graph;
  capture->isToGraph = true;
  return open(stream, std::move(capture), dependencies);
}

llvm::Error HostCaptures::open(HostCaptureMember &stream, std::shared_ptr<HostCapture> capture,
                               llvm::ArrayRef<GraphNodeId> frontier) {
  std::lock_guard lock(mutex_);
  if (stream.capture)
    return error(DeviceErrorKind::InvalidArgument,
                 "a capture was begun on a stream that is being captured");
  if (llvm::any_of(captures_, [&](HostCapture *other) { return other->graph == capture->graph; }))
    return error(DeviceErrorKind::InvalidArgument,
                 "a capture was begun to a graph that is being captured to");
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  captures_.push_back(capture.get());
  join(stream, capture);
  HostGraph::unite(stream.frontier, frontier);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<HostGraph>> HostCaptures::end(HostCaptureMember &stream) {
  llvm::SmallVector<GraphNodeId, 2> last;
  llvm::Expected<std::shared_ptr<HostCapture>> capture = close(stream, /*isToGraph=*/false, last);
  if (!capture)
    return capture.takeError();
  return std::move((*capture)->owned);
}

llvm::Error HostCaptures::endToGraph(HostCaptureMember &stream,
                                     llvm::SmallVectorImpl<GraphNodeId> &last) {
  return close(stream, /*isToGraph=*/true, last).takeError();
}

/// Ends the capture that `stream` began. On success appends the frontier to `last`.
llvm::Expected<std::shared_ptr<HostCapture>>
HostCaptures::close(HostCaptureMember &stream, bool isToGraph,
                    llvm::SmallVectorImpl<GraphNodeId> &last) {
  std::shared_ptr<HostCapture> capture; // dies after the lock
  std::lock_guard lock(mutex_);
  capture = stream.capture;
  if (llvm::Error error = refuseToClose(stream, isToGraph))
    return error;
  auto isJoined = [&](llvm::ArrayRef<GraphNodeId> nodes) {
    return capture->graph->isReached(nodes, stream.frontier);
  };
  if (capture->isValid() && !(isJoined(capture->orphans) &&
                              llvm::all_of(capture->members, [&](HostCaptureMember *member) {
                                return isJoined(member->frontier);
                              })))
    capture->failure = "a stream that joined the capture was not joined back";
  if (capture->isValid())
    last.append(stream.frontier.begin(), stream.frontier.end());
  release(*capture);
  if (!capture->isValid())
    return invalidatedError(*capture);
  return capture;
}

llvm::Error HostCaptures::refuseToClose(HostCaptureMember &stream, bool isToGraph) {
  HostCapture *capture = stream.capture.get();
  if (!capture)
    return error(DeviceErrorKind::InvalidArgument,
                 "a capture was ended on a stream that is not being captured");
  if (capture->origin != &stream)
    return invalidate(*capture, "a capture was ended on a stream that joined it",
                      DeviceErrorKind::InvalidArgument);
  if (capture->isToGraph != isToGraph)
    return error(DeviceErrorKind::InvalidArgument,
                 isToGraph ? "a capture was ended to a graph, but was not begun to one"
                           : "a capture was ended as a new graph, but was begun to a graph");
  if (capture->mode == CaptureMode::Relaxed || capture->thread == std::this_thread::get_id())
    return llvm::Error::success();
  release(*capture);
  return error(DeviceErrorKind::InvalidArgument,
               "a capture was ended by another thread than the one that began it");
}

/// Makes `stream`, which is in no capture, part of one.
void HostCaptures::join(HostCaptureMember &stream, const std::shared_ptr<HostCapture> &capture) {
  stream.capture = capture;
  stream.frontier.clear();
  stream.isCaptured = true;
  capture->members.push_back(&stream);
}

/// Makes all streams of the capture usable again. The caller keeps it alive.
void HostCaptures::release(HostCapture &capture) {
  for (HostCaptureMember *member : capture.members) {
    member->isCaptured = false;
    member->frontier.clear();
    member->capture.reset();
  }
  capture.members.clear();
  llvm::erase_if(captures_, [&](HostCapture *other) { return other == &capture; });
  std::move(capture.pending.begin(), capture.pending.end(), std::back_inserter(pending_));
  capture.pending.clear();
}

CaptureStatus HostCaptures::status(const HostCaptureMember &stream) const {
  std::lock_guard lock(mutex_);
  if (!stream.capture)
    return CaptureStatus::None;
  return stream.capture->isValid() ? CaptureStatus::Active : CaptureStatus::Invalidated;
}

//===----------------------------------------------------------------------===//
// Work of streams in capture
//===----------------------------------------------------------------------===//

llvm::Expected<bool> HostCaptures::submit(HostCaptureMember &stream, AddNodes add) {
  std::lock_guard lock(mutex_);
  if (!stream.capture)
    return false;
  if (!stream.capture->isValid())
    return invalidatedError(*stream.capture);
  add(*stream.capture->graph, stream.frontier);
  return true;
}

llvm::Error HostCaptures::record(HostCaptureMember &stream, HostWorkPoint point,
                                 HostEventRecord &event) {
  std::lock_guard lock(mutex_);
  if (stream.capture && !stream.capture->isValid())
    return invalidatedError(*stream.capture);
  event.isCaptured = stream.capture != nullptr;
  event.capture = stream.capture;
  event.frontier = stream.frontier;
  event.point = event.isCaptured ? HostWorkPoint() : std::move(point);
  return llvm::Error::success();
}

llvm::Expected<HostWorkPoint> HostCaptures::wait(HostCaptureMember &stream,
                                                 const HostEventRecord &event) {
  std::shared_ptr<HostCapture> recorded; // dies after the lock
  std::lock_guard lock(mutex_);
  recorded = event.capture.lock();
  if (stream.capture && !stream.capture->isValid())
    return invalidatedError(*stream.capture);
  bool isRecorded = event.isCaptured || event.point.timeline;
  if (!isRecorded || (!event.isCaptured && !stream.capture))
    return event.point;
  bool isActive = recorded && recorded->isActive();
  if (!stream.capture && !isActive)
    return inactiveEventError("wait");
  if (!stream.capture) {
    join(stream, recorded);
  } else if (stream.capture != recorded) {
    llvm::StringRef why = "'wait' in a capture for an event that was not recorded in it";
    if (isActive)
      llvm::consumeError(invalidate(*recorded, why));
    return invalidate(*stream.capture, why);
  }
  HostGraph::unite(stream.frontier, event.frontier);
  return HostWorkPoint();
}

//===----------------------------------------------------------------------===//
// What a capture forbids
//===----------------------------------------------------------------------===//

llvm::Error HostCaptures::inactiveEventError(llvm::StringRef call) const {
  return error(DeviceErrorKind::InvalidArgument,
               "'" + call + "' of an event of a capture that has ended or is invalid");
}

llvm::Expected<HostWorkPoint> HostCaptures::pointOf(const HostEventRecord &event,
                                                    llvm::StringRef call) {
  std::shared_ptr<HostCapture> recorded; // dies after the lock
  std::lock_guard lock(mutex_);
  if (!event.isCaptured) {
    if (llvm::Error error = refuseUnsafeLocked(call))
      return error;
    return event.point;
  }
  recorded = event.capture.lock();
  if (!recorded || !recorded->isActive())
    return inactiveEventError(call);
  return invalidate(*recorded, "'" + call + "' of an event that was recorded in a capture");
}

llvm::Error HostCaptures::refuseInCapture(const HostCaptureMember &stream, llvm::StringRef call) {
  std::lock_guard lock(mutex_);
  if (!stream.capture)
    return refuseUnsafeLocked(call);
  if (!stream.capture->isValid())
    return error(DeviceErrorKind::NotCapturable,
                 "the capture is invalid: " + stream.capture->failure);
  return invalidate(*stream.capture, "'" + call + "' on a stream that is being captured");
}

llvm::Error HostCaptures::refuseInAnyCapture(llvm::StringRef call) {
  std::lock_guard lock(mutex_);
  if (captures_.empty())
    return llvm::Error::success();
  std::string why = ("'" + call + "' of the device while a stream is being captured").str();
  for (HostCapture *capture : captures_)
    llvm::consumeError(invalidate(*capture, why));
  return error(DeviceErrorKind::NotCapturable, why);
}

llvm::Error HostCaptures::refuseUnsafe(llvm::StringRef call) {
  std::lock_guard lock(mutex_);
  return refuseUnsafeLocked(call);
}

llvm::Error HostCaptures::refuseUnsafeLocked(llvm::StringRef call) {
  llvm::Error result = llvm::Error::success();
  for (HostCapture *capture : captures_)
    if (capture->forbidsUnsafe()) {
      llvm::consumeError(std::move(result));
      result = invalidate(*capture, "'" + call + "' while a capture forbids it");
    }
  return result;
}

llvm::Error HostCaptures::refuseArguments(const HostCaptureMember &stream,
                                          const llvm::Twine &problem) {
  std::lock_guard lock(mutex_);
  if (!stream.capture)
    return error(DeviceErrorKind::InvalidArgument, problem);
  return invalidate(*stream.capture, problem, DeviceErrorKind::InvalidArgument);
}

bool HostCaptures::allowUnsafe() const {
  std::lock_guard lock(mutex_);
  return llvm::none_of(captures_, [](HostCapture *c) { return c->forbidsUnsafe(); });
}

bool HostCaptures::putOff(HostPending pending) {
  std::lock_guard lock(mutex_);
  auto capture = llvm::find_if(captures_, [](HostCapture *c) { return c->forbidsUnsafe(); });
  if (capture == captures_.end())
    return false;
  (*capture)->pending.push_back(std::move(pending));
  return true;
}

std::vector<HostPending> HostCaptures::takePending() {
  std::lock_guard lock(mutex_);
  return std::exchange(pending_, {});
}

//===----------------------------------------------------------------------===//
// Destruction
//===----------------------------------------------------------------------===//

void HostCaptures::streamDestroyed(HostCaptureMember &stream) {
  std::shared_ptr<HostCapture> capture; // dies after the lock
  std::lock_guard lock(mutex_);
  capture = stream.capture;
  if (!capture)
    return;
  if (capture->origin == &stream)
    return release(*capture);
  HostGraph::unite(capture->orphans, stream.frontier);
  llvm::erase_if(capture->members, [&](HostCaptureMember *other) { return other == &stream; });
  stream.capture.reset();
}

void HostCaptures::graphDestroyed(HostGraph &graph) {
  std::lock_guard lock(mutex_);
  for (HostCapture *capture : captures_)
    if (capture->graph == &graph) {
      llvm::consumeError(invalidate(*capture, "the graph of the capture was destroyed"));
      capture->graph = nullptr;
    }
}
