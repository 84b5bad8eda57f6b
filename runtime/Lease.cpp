//===- Lease.cpp - Lanes and blocks for calls -----------------------------===//

#include "ProgramImpl.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

/// A number that no other block of the process has: programs share caches.
static uint64_t nextBlock() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1);
}

llvm::Expected<BlockRef> ProgramImpl::createBlock(llvm::ArrayRef<uint64_t> bytes) {
  llvm::Expected<BlockRef> block = Block::create(devices_, bytes, nextBlock());
  if (block)
    return block;
  llvm::Error error = block.takeError();
  if (deviceErrorKind(error) != DeviceErrorKind::OutOfMemory)
    return error;
  // Give back what is idle, and try once more.
  llvm::consumeError(std::move(error));
  trimLocked();
  return Block::create(devices_, bytes, nextBlock());
}

llvm::Expected<BlockRef> ProgramImpl::leaseBlock(BlockPool &pool, llvm::ArrayRef<uint64_t> bytes,
                                                 Stream &stream, bool onlySameStream) {
  uint64_t id = stream.id();
  // What the caller does with a lease of his is ordered on the stream of the call that gave it;
  // what only calls use, they wait for.
  auto prefer = [&](const Block &idle) {
    uint64_t last = onlySameStream ? idle.leaseStream : idle.lastStream();
    return last == id || last == 0;
  };
  BlockRef block = pool.lease(prefer, onlySameStream);
  if (!block) {
    llvm::Expected<BlockRef> made = createBlock(bytes);
    if (!made)
      return made;
    block = *made;
    pool.add(std::move(*made));
  }
  block->leaseStream = id;
  std::vector<BlockRef> surplus;
  pool.takeSurplus(surplus);
  dropGraphsOf(surplus);
  return block;
}

/// A graph of the caller may be launched at any time: what it uses is used for nothing else.
void ProgramImpl::keepForCapture(BlockRef block) {
  if (block && !llvm::is_contained(captured_, block))
    captured_.push_back(std::move(block));
}

void ProgramImpl::dropGraphsOf(llvm::ArrayRef<BlockRef> blocks) {
  if (blocks.empty())
    return;
  llvm::SmallDenseSet<uint64_t, 8> ids;
  for (const BlockRef &block : blocks)
    ids.insert(block->id());
  auto names = [&](uint64_t id) { return id != 0 && ids.contains(id); };
  for (const auto &cache : caches_) {
    cache->eraseIf([&](const GraphKey &key) {
      return names(key.lane) || names(key.slab) || names(key.results) || names(key.forwardResults);
    });
  }
}

llvm::Error ProgramImpl::growArena(Lane &lane, const Schedule &schedule) {
  bool isEnough = bool(lane.arena);
  for (unsigned i = 0; isEnough && i < devices_.size(); ++i)
    isEnough = schedule.arenaBytes[i] <= lane.arena->bytes(i);
  if (isEnough)
    return llvm::Error::success();
  llvm::SmallVector<uint64_t, 1> bytes;
  for (unsigned i = 0; i < devices_.size(); ++i)
    bytes.push_back(std::max(schedule.arenaBytes[i], lane.arena ? lane.arena->bytes(i) : 0));
  if (lane.arena) { // what was captured in it is of no use any more
    if (llvm::Error error = lane.arena->lastUse().synchronize())
      return error;
    dropGraphsOf(lane.arena);
    lane.arena.reset();
  } else {
    // Both sides of all variants: so the first call finds the size that stays.
    for (const auto &variant : variants_) {
      for (Side side : {Side::Forward, Side::Backward}) {
        if (side == Side::Backward && !variant.second->backward)
          continue;
        const Schedule &other = variant.second->side(side).schedule;
        for (unsigned i = 0; i < devices_.size(); ++i)
          bytes[i] = std::max(bytes[i], other.arenaBytes[i]);
      }
    }
  }
  llvm::Expected<BlockRef> arena = createBlock(bytes);
  if (!arena)
    return arena.takeError();
  lane.arena = std::move(*arena);
  return llvm::Error::success();
}

Lane *ProgramImpl::leaseLane(std::unique_lock<std::mutex> &lock, Stream &stream) {
  Lane *lane = nullptr;
  auto find = [&] {
    lane = nullptr;
    for (const auto &candidate : lanes_) {
      if (candidate->isBusy)
        continue;
      bool isOurs = candidate->arena && candidate->arena->lastStream() == stream.id();
      if (!lane || isOurs)
        lane = candidate.get();
      if (isOurs)
        return true;
    }
    if (lanes_.size() < options_.maxLanes) { // rather than wait for another stream
      lane = lanes_.emplace_back(std::make_unique<Lane>()).get();
      return true;
    }
    return lane != nullptr;
  };
  if (!find())
    waitForLane(lock, find);
  lane->isBusy = true;
  return lane;
}

llvm::Error ProgramImpl::prepareLane(Lane &lane, const Schedule &schedule) {
  if (llvm::Error error = growArena(lane, schedule))
    return error;
  for (unsigned i = lane.streams.size(); i < devices_.size(); ++i) {
    if (i == 0) {
      lane.streams.emplace_back();
      continue;
    }
    llvm::Expected<std::unique_ptr<Stream>> made = devices_[i]->createStream();
    if (!made)
      return made.takeError();
    lane.streams.push_back(std::move(*made));
  }
  return llvm::Error::success();
}

// A call that returns its lane takes the lock only if somebody waits: either it sees that, or who
// waits sees that the lane is free.

void ProgramImpl::waitForLane(std::unique_lock<std::mutex> &lock,
                              llvm::function_ref<bool()> isReady) {
  waiters_.fetch_add(1);
  laneReturned_.wait(lock, isReady);
  waiters_.fetch_sub(1);
}

void ProgramImpl::returnLane(Lane &lane) {
  lane.isBusy = false;
  if (waiters_.load() == 0)
    return;
  std::lock_guard<std::mutex> lock(mutex_);
  laneReturned_.notify_all();
}

void ProgramImpl::trimLocked() {
  std::vector<BlockRef> idle;
  for (const auto &entry : variants_) {
    Variant &variant = *entry.second;
    variant.slabs.takeIdle(idle);
    variant.forward.results.takeIdle(idle);
    if (variant.backward)
      variant.backward->results.takeIdle(idle);
  }
  for (const auto &lane : lanes_)
    if (!lane->isBusy && lane->arena)
      idle.push_back(std::move(lane->arena));
  for (const BlockRef &block : idle)
    llvm::consumeError(block->lastUse().synchronize()); // calls report it
  dropGraphsOf(idle);
}

void ProgramImpl::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  trimLocked();
}
