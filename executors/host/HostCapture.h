//===- HostCapture.h - The rules of capture on the host ---------*- C++ -*-===//
//
// A capture turns what is submitted to streams into nodes of a graph. It begins on one stream, its
// origin; other streams join it by waiting for an event that was recorded in it. Each stream of it
// has a frontier: the nodes that the next thing on the stream depends on.
//
//   state         call                                                       goes to
//   None          begin                                                      Active (origin)
//   None          wait for an event of an active capture                     Active (joined)
//   Active        submit: nodes after the frontier, which they become        Active
//   Active        record: the event takes the frontier                       Active
//   Active        wait for an event of the same capture: adds its frontier   Active
//   Active        anything of the list below                                 Invalidated
//   Invalidated   submit, record, wait, query, synchronize: error            Invalidated
//   any           end on the origin                                          None, all its streams
//   any           the origin is destroyed                                    None, all its streams
//
// What invalidates a capture, and is an error of kind NotCapturable for the caller:
//
//   1. `query` or `synchronize` of a stream in it, or of an event last recorded in it
//   2. `wait` in it for an event that was not recorded in it; if the event is of another capture,
//      which cannot be merged, of that one as well
//   3. `synchronize` of the device
//   4. a potentially unsafe call: by anybody while its mode is Global, by the thread that began it
//      while its mode is ThreadLocal
//
// What invalidates it and is no error of that call: destroying the graph that it captures to, or a
// stream that joined it. `end` also fails where a stream that joined has work that the origin does
// not wait for. Deallocation must not fail: where rule 4 would forbid it, it is put off until the
// capture ends. `begin` on a stream in capture and `end` where there is nothing to end, on a stream
// that joined, or by another thread while the mode is not Relaxed, are errors of kind
// InvalidArgument that change nothing.
//
// The first error is kept; every later one of the same capture repeats it.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "HostStreamTimeline.h"

#include "rondo/host/HostDevice.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace rondo {

class HostGraph;
struct HostCapture;

/// A stream's place in a capture. Guarded by HostCaptures.
struct HostCaptureMember {
  std::shared_ptr<HostCapture> capture; ///< null: not in capture
  llvm::SmallVector<GraphNodeId, 2> frontier;
  /// Is `capture` set? May be read without a lock by a thread that uses the stream.
  std::atomic<bool> isCaptured = false;
};

/// What an event was last recorded as. Guarded by HostCaptures.
struct HostEventRecord {
  HostWorkPoint point; ///< of a stream that was not in capture
  bool isCaptured = false;
  std::weak_ptr<HostCapture> capture;
  llvm::SmallVector<GraphNodeId, 2> frontier;
};

/// A release of memory that a capture puts off.
struct HostPendingRelease {
  void *data = nullptr;
  size_t bytes = 0;
};

/// One capture. Guarded by HostCaptures.
struct HostCapture {
  HostCapture();
  ~HostCapture();

  HostGraph *graph = nullptr;
  std::unique_ptr<HostGraph> owned; ///< `graph`, unless the caller gave it
  bool isToGraph = false;           ///< did the caller give it?
  CaptureMode mode = CaptureMode::Global;
  std::thread::id thread; ///< which began it
  HostCaptureMember *origin = nullptr;
  llvm::SmallVector<HostCaptureMember *, 2> members; ///< with the origin
  std::string failure;                               ///< the first error; empty: active
  std::vector<HostPendingRelease> releases;

  bool isActive() const { return failure.empty(); }
};

/// All captures of one device. Thread-safe; knows streams by their members and events by their
/// records.
class HostCaptures {
public:
  /// `name` is put before every message.
  explicit HostCaptures(std::string name) : name_(std::move(name)) {}

  llvm::Error begin(HostCaptureMember &stream, CaptureMode mode, std::unique_ptr<HostGraph> graph);
  llvm::Error beginToGraph(HostCaptureMember &stream, CaptureMode mode, HostGraph &graph,
                           llvm::ArrayRef<GraphNodeId> dependencies);
  llvm::Expected<std::unique_ptr<HostGraph>> end(HostCaptureMember &stream);
  llvm::Error endToGraph(HostCaptureMember &stream, llvm::SmallVectorImpl<GraphNodeId> &last);
  CaptureStatus status(const HostCaptureMember &stream) const;

  /// Adds nodes after a frontier and makes it that of the last of them.
  using AddNodes = llvm::function_ref<void(HostGraph &, llvm::SmallVectorImpl<GraphNodeId> &)>;
  /// False, and nothing done, if the stream is not in capture.
  llvm::Expected<bool> submit(HostCaptureMember &stream, AddNodes add);
  /// Records the frontier, or `point` if the stream is not in capture.
  llvm::Error record(HostCaptureMember &stream, HostWorkPoint point, HostEventRecord &event);
  /// What a stream that is not in capture has to wait for; in capture, that is nothing.
  llvm::Expected<HostWorkPoint> wait(HostCaptureMember &stream, const HostEventRecord &event);
  /// What is asked for when `call` asks whether the event has happened.
  llvm::Expected<HostWorkPoint> pointOf(const HostEventRecord &event, llvm::StringRef call);

  /// Refuses `call`, which needs the stream to run.
  llvm::Error refuseInCapture(const HostCaptureMember &stream, const llvm::Twine &call);
  /// Refuses `call`, which needs all streams to run.
  llvm::Error refuseInAnyCapture(llvm::StringRef call);
  /// Refuses a potentially unsafe call of this thread.
  llvm::Error refuseUnsafe(llvm::StringRef call);
  /// True if a release of memory by this thread has to wait; it is kept then.
  bool putOff(HostPendingRelease release);
  /// The releases whose captures have ended.
  std::vector<HostPendingRelease> takeReleases();

  void streamDestroyed(HostCaptureMember &stream);
  void graphDestroyed(HostGraph &graph);

private:
  llvm::Error open(HostCaptureMember &stream, std::shared_ptr<HostCapture> capture,
                   llvm::ArrayRef<GraphNodeId> frontier);
  llvm::Expected<std::shared_ptr<HostCapture>> close(HostCaptureMember &stream, bool isToGraph,
                                                     llvm::SmallVectorImpl<GraphNodeId> &last);
  llvm::Error refuseToEnd(const HostCaptureMember &stream, bool isToGraph) const;
  void join(HostCaptureMember &stream, const std::shared_ptr<HostCapture> &capture);
  void release(HostCapture &capture);
  HostCapture *forbiddingCapture() const;

  llvm::Error invalidate(HostCapture &capture, const llvm::Twine &why) const;
  llvm::Error invalidatedError(const HostCapture &capture) const;
  llvm::Error error(DeviceErrorKind kind, const llvm::Twine &message) const;

  std::string name_;
  mutable std::mutex mutex_;
  std::vector<HostCapture *> captures_; ///< kept by their members
  std::vector<HostPendingRelease> releases_;
};

} // namespace rondo
