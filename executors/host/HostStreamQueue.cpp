//===- HostStreamQueue.cpp - The thread of an asynchronous stream ---------===//

#include "HostStreamQueue.h"

using namespace rondo;

HostStreamQueue::HostStreamQueue(std::shared_ptr<HostTimeline> timeline)
    : timeline_(std::move(timeline)), thread_([this] { runBatches(); }) {}

HostStreamQueue::~HostStreamQueue() {
  {
    std::lock_guard lock(mutex_);
    isStopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void HostStreamQueue::push(const HostCommand &command, llvm::ArrayRef<std::byte> parameters) {
  push(Item(), &command, parameters);
}

void HostStreamQueue::push(HostExecLaunch launch) {
  Item item;
  item.launch = std::move(launch);
  push(std::move(item), nullptr, {});
}

void HostStreamQueue::push(HostWorkPoint point) {
  Item item;
  item.awaited = std::move(point);
  push(std::move(item), nullptr, {});
}

void HostStreamQueue::push(Item item, const HostCommand *command,
                           llvm::ArrayRef<std::byte> parameters) {
  std::lock_guard lock(mutex_);
  item.point = timeline_->submit();
  pending_.items.push_back(std::move(item));
  if (command)
    pending_.commands.add(*command, parameters);
  changed_.notify_one();
}

void HostStreamQueue::runBatches() {
  Batch running;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return isStopping_ || !pending_.items.empty(); });
    if (pending_.items.empty())
      return;
    std::swap(running, pending_);
    lock.unlock();
    run(running);
    running.items.clear();
    running.commands.clear();
    lock.lock();
  }
}

void HostStreamQueue::run(const Batch &batch) {
  size_t nextCommand = 0;
  for (const Item &item : batch.items) {
    if (item.launch.exec)
      item.launch.exec->run(item.launch);
    else if (item.awaited.timeline)
      item.awaited.wait();
    else
      batch.commands.run(nextCommand++);
    timeline_->complete(item.point);
  }
}
