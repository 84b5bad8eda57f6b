//===- MemoryPlan.cpp - Offsets from liveness -----------------------------===//
//
// Offline placement on one line of bytes per block, of items with a size and an interval of steps.
// Items that persist (slab, results) are laid out first, in the order in which they are made, so
// that the room of those made late is one piece for temporaries before that. Temporaries follow in
// several orders, each at the lowest offset that is free throughout its interval, and the best
// order wins: by size, as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference" (2020), by size times duration, and by the number of bytes live around them.
//
//===----------------------------------------------------------------------===//

#include "MemoryPlan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace rondo;

namespace {

struct Item {
  uint32_t storage;
  uint64_t size, alignment;
  uint32_t begin, end; // steps, inclusive
  uint64_t offset = 0;
};

/// One block of bytes under construction. Items are kept in order of offset.
class Packing {
public:
  explicit Packing(uint64_t limit = ~uint64_t(0)) : limit_(limit) {}

  uint64_t size() const { return size_; }
  void setLimit(uint64_t limit) { limit_ = limit; }

  /// Puts `item` at the lowest offset where it fits; false if it fits nowhere below the limit.
  bool place(Item &item) {
    uint64_t at = 0;
    for (const Item &other : items_) {
      if (other.begin > item.end || other.end < item.begin)
        continue;
      if (other.offset >= at + item.size)
        break;
      at = std::max(at, llvm::alignTo(other.offset + other.size, item.alignment));
    }
    if (at + item.size > limit_)
      return false;
    put(item, at);
    return true;
  }

  /// Behind everything.
  void append(Item &item) { put(item, llvm::alignTo(size_, item.alignment)); }

private:
  void put(Item &item, uint64_t offset) {
    item.offset = offset;
    size_ = std::max(size_, offset + item.size);
    items_.insert(
        llvm::upper_bound(items_, offset, [](uint64_t at, const Item &i) { return at < i.offset; }),
        item);
  }

  std::vector<Item> items_;
  uint64_t limit_, size_ = 0;
};

/// The blocks of one device.
class DevicePlanner {
public:
  DevicePlanner(Schedule &schedule, unsigned device) : schedule_(schedule), device_(device) {
    for (uint32_t i = 0; i < schedule.storages.size(); ++i) {
      const PlannedStorage &storage = schedule.storages[i];
      if (storage.device != device || storage.isCallers() || storage.space == Space::ForwardResults)
        continue;
      if (schedule.side == Side::Backward && storage.space == Space::Slab)
        continue; // laid out by the forward
      Item item{i, storage.bytes, storage.alignment, storage.begin, storage.end};
      (storage.space == Space::Slab      ? slab_
       : storage.space == Space::Results ? results_
                                         : temporaries_)
          .push_back(item);
    }
  }

  void run() {
    uint64_t slabBytes = persist(slab_, slabPacking_);
    uint64_t resultBytes = persist(results_, resultPacking_);
    slabPacking_.setLimit(slabBytes);
    resultPacking_.setLimit(resultBytes);

    Attempt best;
    for (Order order : {Order::Size, Order::Area, Order::Pressure}) {
      Attempt attempt = tryOrder(order);
      if (best.items.empty() || attempt.arenaBytes < best.arenaBytes)
        best = std::move(attempt);
    }
    for (const auto &placed : best.items) {
      PlannedStorage &storage = schedule_.storages[placed.first.storage];
      storage.space = placed.second;
      storage.offset = placed.first.offset;
    }
    schedule_.slabBytes[device_] = slabBytes;
    schedule_.resultBytes[device_] = resultBytes;
    schedule_.arenaBytes[device_] = best.arenaBytes;
  }

private:
  enum class Order { Size, Area, Pressure };
  struct Attempt {
    std::vector<std::pair<Item, Space>> items;
    uint64_t arenaBytes = 0;
  };

  uint64_t persist(std::vector<Item> &items, Packing &packing) {
    llvm::stable_sort(items, [](const Item &a, const Item &b) { return a.begin < b.begin; });
    for (Item &item : items) {
      packing.append(item);
      schedule_.storages[item.storage].offset = item.offset;
    }
    return packing.size();
  }

  Attempt tryOrder(Order order) const {
    std::vector<Item> items = temporaries_;
    std::vector<double> keys = sortKeys(order);
    std::vector<uint32_t> sorted(items.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    llvm::stable_sort(sorted, [&](uint32_t a, uint32_t b) { return keys[a] > keys[b]; });

    Packing slab = slabPacking_, results = resultPacking_, arena;
    Attempt attempt;
    for (uint32_t i : sorted) {
      Item &item = items[i];
      Space space = Space::Arena;
      if (slab.place(item))
        space = Space::Slab;
      else if (results.place(item))
        space = Space::Results;
      else
        arena.place(item);
      attempt.items.push_back({item, space});
    }
    attempt.arenaBytes = arena.size();
    return attempt;
  }

  std::vector<double> sortKeys(Order order) const {
    std::vector<double> keys;
    std::vector<uint64_t> pressure;
    if (order == Order::Pressure)
      pressure = livePerStep();
    for (const Item &item : temporaries_) {
      double size = double(item.size);
      if (order == Order::Area) {
        size *= double(item.end - item.begin + 1);
      } else if (order == Order::Pressure) {
        uint64_t most = 0;
        for (uint32_t step = item.begin; step <= item.end && step < pressure.size(); ++step)
          most = std::max(most, pressure[step]);
        size += double(most) * 1e3;
      }
      keys.push_back(size);
    }
    return keys;
  }

  std::vector<uint64_t> livePerStep() const {
    std::vector<uint64_t> live(schedule_.steps.size() + 1, 0);
    for (const Item &item : temporaries_) {
      for (uint32_t step = item.begin; step <= item.end && step < live.size(); ++step)
        live[step] += item.size;
    }
    return live;
  }

  Schedule &schedule_;
  unsigned device_;
  std::vector<Item> slab_, results_, temporaries_;
  Packing slabPacking_, resultPacking_;
};

} // namespace

/// The greatest sum, over the steps, of the bytes of the first device's storages that `counts` and
/// that are live then.
static uint64_t greatestLiveSum(const Schedule &schedule,
                                llvm::function_ref<bool(uint32_t)> counts) {
  std::vector<int64_t> change(schedule.steps.size() + 2, 0);
  for (uint32_t i = 0; i < schedule.storages.size(); ++i) {
    const PlannedStorage &storage = schedule.storages[i];
    if (storage.device != 0 || !counts(i))
      continue;
    change[std::min<size_t>(storage.begin, change.size() - 1)] += storage.bytes;
    if (storage.end + size_t(1) < change.size())
      change[storage.end + 1] -= storage.bytes;
  }
  int64_t live = 0, most = 0;
  for (int64_t bytes : change)
    most = std::max(most, live += bytes);
  return most;
}

void rondo::planMemory(Schedule &schedule, unsigned numDevices) {
  std::vector<bool> isStaging(schedule.storages.size(), false);
  for (const ScheduledRegion &region : schedule.regions)
    for (const RegionBuffer &buffer : region.buffers)
      if (buffer.policy == BufferPolicy::Copied)
        isStaging[buffer.staging] = true;
  schedule.memory.lowerBound = greatestLiveSum(schedule, [&](uint32_t i) { return !isStaging[i]; });
  schedule.memory.temporaries = greatestLiveSum(schedule, [&](uint32_t i) {
    return !isStaging[i] && schedule.storages[i].space == Space::Arena;
  });

  schedule.arenaBytes.assign(numDevices, 0);
  schedule.slabBytes.assign(numDevices, 0);
  schedule.resultBytes.assign(numDevices, 0);
  for (unsigned device = 0; device < numDevices; ++device)
    DevicePlanner(schedule, device).run();

  for (const PlannedStorage &storage : schedule.storages) {
    bool isGiven = storage.isCallers() || storage.space == Space::ForwardResults ||
                   (schedule.side == Side::Backward && storage.space == Space::Slab);
    if (storage.device == 0 && isGiven)
      schedule.memory.arguments += storage.bytes;
  }
  schedule.memory.arena = schedule.arenaBytes[0];
  schedule.memory.slab = schedule.side == Side::Forward ? schedule.slabBytes[0] : 0;
  schedule.memory.results = schedule.resultBytes[0];
}
