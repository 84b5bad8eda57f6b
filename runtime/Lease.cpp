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

llvm::Error ProgramImpl::releaseUse(Block &block, Stream &stream) {
  // What a program's calls on several streams have in common, they have in common throughout.
  if (block.lastUse().isShared() || usesSeveralStreams_) {
    usesSeveralStreams_ = true;
    block.lastUse().setShared();
  }
  return block.lastUse().release(stream);
}

/// A graph of the caller may be launched at any time: what it uses is used for nothing else.
void ProgramImpl::keepForCapture(Stream &stream, std::unique_ptr<Retired> kept) {
  kept->devices = devices_;
  std::shared_ptr<Retired> resource = retiredAtEnd(std::move(kept));
  auto isSame = [&](const std::shared_ptr<Retired> &other) {
    return other->blocks == resource->blocks && other->kernels == resource->kernels;
  };
  if (!stream.keep(resource) && llvm::none_of(captured_, isSame))
    captured_.push_back(std::move(resource));
}

bool ProgramImpl::mayWait() const {
  return llvm::all_of(devices_, [](const DeviceRef &device) { return device->mayWait(); });
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

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// The smallest arena that is large enough is always the same one, as long as it is there: so are
/// the graphs that were captured in it.
llvm::Error ProgramImpl::chooseArena(Lane &lane, const Schedule &schedule, bool isTransient) {
  for (const BlockRef &arena : lane.arenas) {
    bool isEnough = true;
    for (unsigned i = 0; isEnough && i < devices_.size(); ++i)
      isEnough = schedule.arenaBytes[i] <= arena->bytes(i);
    if (!isEnough)
      continue;
    if (lane.arena != arena)
      lane.arena = arena;
    return llvm::Error::success();
  }
  return growArena(lane, schedule, isTransient);
}

/// What was captured in arenas that are too small stays there as long as memory lasts, and as long
/// as these are together no larger than the new one, unless that is for a call without graphs.
llvm::Error ProgramImpl::growArena(Lane &lane, const Schedule &schedule, bool isTransient) {
  lane.arena.reset();
  auto holdsNothing = [&](const Block &arena) { return !holdsGraphs(arena); };
  if (llvm::Error error = dropArenas(lane, holdsNothing))
    return error;
  llvm::SmallVector<uint64_t, 1> bytes = nextArenaBytes(lane, schedule);
  auto areTooLarge = [&](const Block &) {
    for (unsigned i = 0; i < devices_.size(); ++i) {
      uint64_t sum = 0;
      for (const BlockRef &arena : lane.arenas)
        sum += arena->bytes(i);
      if (sum > bytes[i])
        return true;
    }
    return false;
  };
  if (!isTransient)
    if (llvm::Error error = dropArenas(lane, areTooLarge))
      return error;
  llvm::Expected<BlockRef> arena = createBlock(bytes);
  if (!arena)
    return arena.takeError();
  lane.arena = *arena;
  lane.arenas.push_back(std::move(*arena));
  return llvm::Error::success();
}

/// An arena is large enough for both sides of all variants: so the first call finds the size that
/// stays.
llvm::SmallVector<uint64_t, 1> ProgramImpl::nextArenaBytes(const Lane &lane,
                                                           const Schedule &schedule) const {
  llvm::SmallVector<uint64_t, 1> bytes = schedule.arenaBytes;
  auto extend = [&](const SidePlan &plan) {
    for (unsigned i = 0; i < devices_.size(); ++i)
      bytes[i] = std::max(bytes[i], plan.schedule.arenaBytes[i]);
  };
  variants_.forEach([&](const Variant &variant) {
    extend(variant.forward);
    if (variant.backward)
      extend(*variant.backward);
  });
  for (unsigned i = 0; !lane.arenas.empty() && i < devices_.size(); ++i)
    bytes[i] = std::max(bytes[i], lane.arenas.back()->bytes(i));
  return bytes;
}

/// Drops arenas, the largest first, with what was captured in them. Nobody has to wait for the work
/// in them, as graphs and memory go in its order; its errors are this call's if somebody may.
llvm::Error ProgramImpl::dropArenas(Lane &lane, llvm::function_ref<bool(const Block &)> mustGo) {
  for (size_t i = lane.arenas.size(); i-- > 0;) {
    BlockRef arena = lane.arenas[i];
    if (!mustGo(*arena))
      continue;
    if (mayWait())
      if (llvm::Error error = arena->lastUse().synchronize())
        return error;
    dropGraphsOf(arena);
    lane.arenas.erase(lane.arenas.begin() + i);
  }
  return llvm::Error::success();
}

bool ProgramImpl::holdsGraphs(const Block &arena) const {
  return llvm::any_of(caches_, [&](const std::shared_ptr<GraphCache> &cache) {
    return cache->containsIf([&](const GraphKey &key) { return key.lane == arena.id(); });
  });
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

llvm::Error ProgramImpl::prepareLane(Lane &lane, const Schedule &schedule, bool isTransient) {
  if (llvm::Error error = chooseArena(lane, schedule, isTransient))
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
  variants_.forEach([&](Variant &variant) {
    for (BlockPool *pool : variant.pools())
      pool->takeIdle(idle);
  });
  for (const auto &lane : lanes_) {
    if (!lane->isBusy)
      lane->arena.reset();
    llvm::erase_if(lane->arenas, [&](const BlockRef &arena) {
      bool isIdle = arena != lane->arena;
      if (isIdle)
        idle.push_back(arena);
      return isIdle;
    });
  }
  if (mayWait()) // else the device takes back the memory when it can
    for (const BlockRef &block : idle)
      llvm::consumeError(block->lastUse().synchronize()); // calls report it
  dropGraphsOf(idle);
}

void ProgramImpl::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  trimLocked();
}
