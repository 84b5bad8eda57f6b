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
//   Active        one of the rules below                                     Invalidated
//   Invalidated   submit, record, wait: error CaptureInvalidated             Invalidated
//   any           end on the origin                                          None, all its streams
//   any           the origin is destroyed                                    None, all its streams
//
// What invalidates a capture, and is an error of the call:
//
//   1. NotCapturable: query or synchronize of a stream in it, or of an event last recorded in it
//   2. NotCapturable: wait in it for an event that was last recorded elsewhere; if that is another
//      active capture, which cannot be merged, of both
//   3. NotCapturable: synchronize of the device
//   4. NotCapturable: a potentially unsafe call (allocate, instantiate, query and synchronize of a
//      stream or event) by anybody while its mode is Global, by the thread that began it while its
//      mode is ThreadLocal
//   5. InvalidArgument: work with wrong arguments; end on a stream that joined
//
// Destroying the graph that it captures to invalidates it as well. Deallocation must not fail:
// where rule 4 would forbid it, it is put off until the capture ends, as is other work that asks
// for it. A capture ends with an error,
// also, if a stream that joined has work that the origin does not wait for (CaptureInvalidated)
// and, its mode not being Relaxed, if another thread than the one that began it ends it
// (InvalidArgument). The first error of a capture is kept, and the later ones repeat it.
//
// What a capture leaves alone: begin on a stream in capture or to a graph in capture, and end where
// nothing was begun, are errors of kind InvalidArgument; so is asking for an event whose capture
// has ended or is invalid. Waiting for an event that was never recorded does nothing.
//
// All this is how CUDA 13.0 was seen to behave, but for deallocation and the graph's destruction,
// which it refuses, and for launches of execs in capture.
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
  std::weak_ptr<HostCapture> capture; ///< of a stream that was
  llvm::SmallVector<GraphNodeId, 2> frontier;
};

/// What a capture puts off: a release of memory, or other work.
struct HostPending {
  void *data = nullptr; ///< null: `work` is to be called
  size_t bytes = 0;
  std::function<void()> work = nullptr;
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
  llvm::SmallVector<HostCaptureMember *, 2> members; ///< with the origin; empty: it has ended
  /// The frontiers of streams that joined and were destroyed.
  llvm::SmallVector<GraphNodeId, 2> orphans;
  std::string failure; ///< the first error; empty: none
  std::vector<HostPending> pending;

  bool isValid() const { return failure.empty(); }
  bool isActive() const { return isValid() && !members.empty(); }
  /// Does its mode forbid potentially unsafe calls to this thread?
  bool forbidsUnsafe() const;
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
  /// What `call` has to look at or wait for, which is `query` or `synchronize` of an event.
  llvm::Expected<HostWorkPoint> pointOf(const HostEventRecord &event, llvm::StringRef call);

  /// Refuses `call`, which needs the stream to run.
  llvm::Error refuseInCapture(const HostCaptureMember &stream, llvm::StringRef call);
  /// Refuses `call`, which needs all streams to run.
  llvm::Error refuseInAnyCapture(llvm::StringRef call);
  /// Refuses a potentially unsafe call of this thread.
  llvm::Error refuseUnsafe(llvm::StringRef call);
  /// InvalidArgument. A capture that the stream is in is invalid.
  llvm::Error refuseArguments(const HostCaptureMember &stream, const llvm::Twine &problem);
  /// Does no capture forbid potentially unsafe calls to this thread?
  bool allowUnsafe() const;
  /// True if what this thread is about to do has to wait; it is kept then.
  bool putOff(HostPending pending);
  /// What was put off by captures that have ended.
  std::vector<HostPending> takePending();

  void streamDestroyed(HostCaptureMember &stream);
  void graphDestroyed(HostGraph &graph);

private:
  llvm::Error open(HostCaptureMember &stream, std::shared_ptr<HostCapture> capture,
                   llvm::ArrayRef<GraphNodeId> frontier);
  llvm::Expected<std::shared_ptr<HostCapture>> close(HostCaptureMember &stream, bool isToGraph,
                                                     llvm::SmallVectorImpl<GraphNodeId> &last);
  llvm::Error refuseToClose(HostCaptureMember &stream, bool isToGraph);
  void join(HostCaptureMember &stream, const std::shared_ptr<HostCapture> &capture);
  void release(HostCapture &capture);
  llvm::Error refuseUnsafeLocked(llvm::StringRef call);

  llvm::Error error(DeviceErrorKind kind, const llvm::Twine &message) const;
  llvm::Error invalidate(HostCapture &capture, const llvm::Twine &why,
                         DeviceErrorKind kind = DeviceErrorKind::NotCapturable) const;
  llvm::Error invalidatedError(const HostCapture &capture) const;
  llvm::Error inactiveEventError(llvm::StringRef call) const;

  std::string name_;
  mutable std::mutex mutex_;
  std::vector<HostCapture *> captures_; ///< kept by their members
  std::vector<HostPending> pending_;
};

} // namespace rondo
