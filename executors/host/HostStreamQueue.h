//===- HostStreamQueue.h - The thread of an asynchronous stream -*- C++ -*-===//
//
// Work is appended to a batch while the thread runs another; the two change places when the thread
// is done. So what is queued is in few, reused pieces of memory.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "HostGraphCommands.h"
#include "HostGraphExec.h"

#include <thread>

namespace rondo {

/// Runs work in order, on a thread of its own. Filled by one thread at a time.
class HostStreamQueue {
public:
  /// Completes points of `timeline`. Throws std::system_error where there is no thread to be had.
  explicit HostStreamQueue(std::shared_ptr<HostTimeline> timeline);
  /// Waits for all work.
  ~HostStreamQueue();

  void push(const HostCommand &command, llvm::ArrayRef<std::byte> parameters);
  void push(HostExecLaunch launch);
  /// Makes what is pushed from here on wait for `point`.
  void push(HostWorkPoint point);

private:
  /// A launch of an exec; or a point to wait for; or the next of the batch's commands.
  struct Item {
    HostExecLaunch launch;
    HostWorkPoint awaited;
    uint64_t point = 0; ///< of the stream's timeline
  };
  struct Batch {
    std::vector<Item> items;
    HostCommandList commands;
  };
  void push(Item item, const HostCommand *command, llvm::ArrayRef<std::byte> parameters);
  void runBatches();
  void run(const Batch &batch);

  std::shared_ptr<HostTimeline> timeline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Batch pending_;
  bool isStopping_ = false;
  std::thread thread_;
};

} // namespace rondo
