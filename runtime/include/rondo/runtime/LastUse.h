//===- LastUse.h - The last stream that used something ----------*- C++ -*-===//
//
// To record an event after every use would cost more than many a replay. As long as one stream uses
// something, all that is noted is which; the first use on another stream waits for all that the
// first stream has got until then, also for what came after the use. From then on uses are recorded
// by an event, and only they are waited for.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

namespace rondo {

/// Used by one call at a time.
class LastUse {
public:
  /// The stream's id; 0 if there was no use.
  uint64_t stream() const { return stream_; }

  /// What is submitted to `stream` from here on waits for the last use on another stream.
  llvm::Error acquire(Stream &stream) {
    if (stream_ == 0 || stream_ == stream.id())
      return llvm::Error::success();
    isShared_ = true;
    return isRecorded_ ? stream.wait(*event_) : tail_->orderBefore(stream);
  }
  /// The work submitted to `stream` so far is the last use.
  llvm::Error release(Stream &stream) {
    if (isShared_)
      return record(stream);
    if (stream_ != stream.id()) {
      stream_ = stream.id();
      tail_ = stream.tail();
    }
    return llvm::Error::success();
  }
  /// Waits for it. Only where DeviceAPI::mayWait.
  llvm::Error synchronize() {
    if (stream_ == 0)
      return llvm::Error::success();
    return isRecorded_ ? event_->synchronize() : tail_->synchronize();
  }
  /// Have several streams used it? Settable, by whoever knows that they will.
  bool isShared() const { return isShared_; }
  void setShared() { isShared_ = true; }

private:
  llvm::Error record(Stream &stream) {
    if (!event_) {
      llvm::Expected<std::unique_ptr<Event>> event = stream.device().createEvent();
      if (!event)
        return event.takeError();
      event_ = std::move(*event);
    }
    isRecorded_ = true;
    stream_ = stream.id();
    tail_ = nullptr;
    return stream.record(*event_);
  }

  uint64_t stream_ = 0;
  bool isShared_ = false, isRecorded_ = false;
  std::shared_ptr<StreamTail> tail_; ///< unless it is recorded
  std::unique_ptr<Event> event_;
};

} // namespace rondo
