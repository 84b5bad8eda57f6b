//===- HostStreamTimeline.h - Points in the work of a stream ----*- C++ -*-===//
//
// Work that ends in the order in which it was submitted is numbered from 1; a point is a number.
// Streams have a timeline, and execs, whose launches run one after the other. An event that was
// recorded is a point of its stream's timeline.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace rondo {

/// Thread-safe.
class HostTimeline {
public:
  /// Numbers one more piece of work.
  uint64_t submit() {
    std::lock_guard lock(mutex_);
    return ++submitted_;
  }
  /// Says that the piece of work `point`, and so all before, is done.
  void complete(uint64_t point) {
    std::lock_guard lock(mutex_);
    completed_ = point;
    changed_.notify_all();
  }
  uint64_t lastSubmitted() const {
    std::lock_guard lock(mutex_);
    return submitted_;
  }
  bool isComplete(uint64_t point) const {
    std::lock_guard lock(mutex_);
    return completed_ >= point;
  }
  void wait(uint64_t point) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return completed_ >= point; });
  }
  /// Waits for what has been submitted before this call.
  void waitForAll() const { wait(lastSubmitted()); }

private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  uint64_t submitted_ = 0, completed_ = 0;
};

/// A point of a timeline, or of none: then it is in the past.
struct HostWorkPoint {
  std::shared_ptr<HostTimeline> timeline;
  uint64_t point = 0;

  bool isComplete() const { return !timeline || timeline->isComplete(point); }
  void wait() const {
    if (timeline)
      timeline->wait(point);
  }
};

} // namespace rondo
