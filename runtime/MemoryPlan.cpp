//===- MemoryPlan.cpp - Offsets from liveness -----------------------------===//
//
//   step 0: %a = mm(%x, %w)      %a  [0, 1]
//   step 1: %b = relu(%a)        %b  [1, 2]   takes over %a's memory: one item [0, 2]
//   step 2: %c = sum(%b)         %c  [2, …]   a result
//
// Storages become items with a size and an interval of steps; those that take over each other's
// memory are one. Items that persist (slab, results) are laid out in the order in which they are
// made, so that the room of those made late is one piece for temporaries before that. In a backward
// that consumes what is saved the same holds backwards: what was saved last is often read first, so
// that the room behind what is still to be read is one piece. Packing.h finds places for the
// others.
//
//===----------------------------------------------------------------------===//

#include "MemoryPlan.h"

#include "Packing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace rondo;

/// Is it for planMemory to place? What the forward saved or gave is where the forward has it.
static bool isPlanned(const PlannedStorage &storage) {
  return !storage.isCallers() && !storage.isForwards;
}

static uint64_t roundUp(uint64_t bytes) {
  return llvm::alignTo(bytes, DeviceAPI::allocationAlignment);
}

//===----------------------------------------------------------------------===//
// Results that take over an operand's memory
//===----------------------------------------------------------------------===//

/// The operand whose memory fresh result `result` of step `index` may take over, if there is one.
static std::optional<unsigned> findReusable(const Schedule &schedule, uint32_t index,
                                            unsigned result) {
  const Step &step = schedule.steps[index];
  uint32_t made = step.results[result].storage;
  auto isOfStorage = [](uint32_t storage) {
    return [storage](const Place &place) { return place.storage == int32_t(storage); };
  };
  const PlannedStorage &storage = schedule.storages[made];
  if (!isPlanned(storage) || storage.begin != index || storage.bytes == 0 ||
      llvm::any_of(step.operands, isOfStorage(made)))
    return std::nullopt;
  for (unsigned i = 0; i < step.operands.size(); ++i) {
    if (!step.operands[i].isTensor())
      continue;
    uint32_t used = step.operands[i].storage;
    const PlannedStorage &other = schedule.storages[used];
    if (other.space != Space::Arena || other.end != index || other.bytes != storage.bytes ||
        other.device != storage.device || llvm::any_of(step.results, isOfStorage(used)))
      continue;
    // All names of the storage: it may be several operands.
    bool mayReuse = true;
    for (unsigned k = 0; k < step.operands.size(); ++k)
      if (isOfStorage(used)(step.operands[k]))
        mayReuse &= step.operands[k].byteOffset == 0 && step.kernel->canReuse(k, result);
    if (mayReuse)
      return i;
  }
  return std::nullopt;
}

static void takeOverOperands(Schedule &schedule) {
  std::vector<bool> isTaken(schedule.storages.size(), false);
  for (uint32_t index = 0; index < schedule.steps.size(); ++index) {
    const Step &step = schedule.steps[index];
    for (unsigned i = 0; i < step.results.size(); ++i) {
      if (!step.results[i].isTensor())
        continue;
      std::optional<unsigned> operand = findReusable(schedule, index, i);
      if (!operand || isTaken[step.operands[*operand].storage])
        continue;
      schedule.storages[step.results[i].storage].takesOver = step.operands[*operand].storage;
      isTaken[step.operands[*operand].storage] = true;
    }
  }
}

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

static std::vector<bool> findStaging(const Schedule &schedule) {
  std::vector<bool> isStaging(schedule.storages.size(), false);
  for (const ScheduledRegion &region : schedule.regions)
    for (const RegionBuffer &buffer : region.buffers)
      if (buffer.policy == BufferPolicy::Copied)
        isStaging[buffer.staging] = true;
  return isStaging;
}

/// The first step in which bytes of its own are live: of memory that is taken over, the step after
/// the one that does.
static uint32_t firstOwnStep(const PlannedStorage &storage) {
  return storage.begin + (storage.takesOver >= 0 ? 1 : 0);
}

/// By step, the sum of what `bytesOf` says of the first device's storages that are live then.
static std::vector<uint64_t> liveSums(const Schedule &schedule,
                                      llvm::function_ref<uint64_t(uint32_t)> bytesOf) {
  size_t numSteps = std::max<size_t>(schedule.steps.size(), 1);
  std::vector<uint64_t> change(numSteps + 1, 0); // modulo 2^64
  for (uint32_t i = 0; i < schedule.storages.size(); ++i) {
    const PlannedStorage &storage = schedule.storages[i];
    if (storage.device != 0)
      continue;
    uint64_t bytes = bytesOf(i);
    change[std::min<size_t>(firstOwnStep(storage), numSteps)] += bytes;
    change[std::min<size_t>(storage.end + size_t(1), numSteps)] -= bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  change.pop_back();
  return change;
}

/// The same of what any plan needs: copies of inputs are our own. `rounded`: in whole units of the
/// alignment.
static std::vector<uint64_t> neededBytes(const Schedule &schedule, bool rounded) {
  return liveSums(schedule, [&, isStaging = findStaging(schedule)](uint32_t i) -> uint64_t {
    const PlannedStorage &storage = schedule.storages[i];
    return isStaging[i]                    ? 0
           : rounded && isPlanned(storage) ? roundUp(storage.bytes)
                                           : storage.bytes;
  });
}

static uint64_t greatest(llvm::ArrayRef<uint64_t> numbers) {
  return *std::max_element(numbers.begin(), numbers.end());
}

static void sumUp(Schedule &schedule) {
  MemoryInfo &memory = schedule.memory;
  memory.lowerBound = greatest(neededBytes(schedule, /*rounded=*/false));
  memory.roundedLowerBound = greatest(neededBytes(schedule, /*rounded=*/true));
  const std::vector<bool> isStaging = findStaging(schedule);
  memory.temporaries = greatest(liveSums(schedule, [&](uint32_t i) {
    const PlannedStorage &storage = schedule.storages[i];
    return storage.space == Space::Arena && !isStaging[i] ? roundUp(storage.bytes) : 0;
  }));
  for (const PlannedStorage &storage : schedule.storages)
    if (storage.device == 0 && !isPlanned(storage))
      memory.arguments += storage.bytes;
}

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

namespace {

/// The blocks of one device.
class DevicePlanner {
public:
  DevicePlanner(Schedule &schedule, unsigned device) : schedule_(schedule), device_(device) {}

  void run() {
    collect();
    PersistentBlock slab, results;
    if (schedule_.side == Side::Backward)
      keepForwards(slab);
    persist(slab_, Space::Slab, slab);
    persist(results_, Space::Results, results);
    std::vector<PackingItem> items;
    for (const Group &group : temporaries_)
      items.push_back(group.item);
    Packing packing = pack(items, {&slab, &results});
    for (size_t i = 0; i < items.size(); ++i) {
      constexpr Space spaces[] = {Space::Slab, Space::Results, Space::Arena};
      const PackingPlace &place = packing.places[i];
      put(temporaries_[i], spaces[place.block], place.offset);
    }
  }

private:
  /// Storages that take over each other's memory.
  struct Group {
    uint32_t last;
    PackingItem item;
  };

  void collect() {
    const std::vector<bool> isTaken = findTakenOver(schedule_);
    for (uint32_t i = 0; i < schedule_.storages.size(); ++i) {
      const PlannedStorage &storage = schedule_.storages[i];
      if (storage.device != device_ || !isPlanned(storage) || storage.bytes == 0 || isTaken[i])
        continue;
      Group group{i, {roundUp(storage.bytes), 0, storage.end}};
      forEachOf(group, [&](PlannedStorage &member) { group.item.begin = member.begin; });
      (storage.space == Space::Slab      ? slab_
       : storage.space == Space::Results ? results_
                                         : temporaries_)
          .push_back(group);
    }
  }

  /// From the last to the first.
  void forEachOf(const Group &group, llvm::function_ref<void(PlannedStorage &)> visit) {
    for (int32_t i = group.last; i >= 0; i = schedule_.storages[i].takesOver)
      visit(schedule_.storages[i]);
  }

  void persist(std::vector<Group> &groups, Space space, PersistentBlock &block) {
    llvm::stable_sort(groups,
                      [](const Group &a, const Group &b) { return a.item.begin < b.item.begin; });
    for (const Group &group : groups)
      put(group, space, block.append(group.item.begin, group.item.bytes));
  }

  /// What the forward saved keeps its place until its last use.
  void keepForwards(PersistentBlock &slab) {
    std::vector<const PlannedStorage *> kept;
    for (const PlannedStorage &storage : schedule_.storages)
      if (storage.isForwards && storage.space == Space::Slab && storage.device == device_)
        kept.push_back(&storage);
    llvm::stable_sort(
        kept, [](const PlannedStorage *a, const PlannedStorage *b) { return a->end > b->end; });
    uint64_t bytes = 0;
    for (const PlannedStorage *storage : kept) {
      slab.keep(storage->end, storage->offset, roundUp(storage->bytes));
      bytes = std::max(bytes, storage->offset + storage->bytes);
    }
    slab.cut(llvm::alignDown(bytes, DeviceAPI::allocationAlignment));
  }

  void put(const Group &group, Space space, uint64_t offset) {
    forEachOf(group, [&](PlannedStorage &storage) {
      storage.space = space;
      storage.offset = offset;
    });
    if (schedule_.side == Side::Backward && space == Space::Slab)
      return; // the forward's block
    uint64_t &blockBytes = (space == Space::Slab      ? schedule_.slabBytes
                            : space == Space::Results ? schedule_.resultBytes
                                                      : schedule_.arenaBytes)[device_];
    blockBytes = std::max(blockBytes, offset + schedule_.storages[group.last].bytes);
  }

  Schedule &schedule_;
  const unsigned device_;
  std::vector<Group> slab_, results_, temporaries_;
};

} // namespace

void rondo::planMemory(Schedule &schedule, unsigned numDevices) {
  takeOverOperands(schedule);
  sumUp(schedule);
  schedule.arenaBytes.assign(numDevices, 0);
  schedule.slabBytes.assign(numDevices, 0);
  schedule.resultBytes.assign(numDevices, 0);
  for (unsigned device = 0; device < numDevices; ++device)
    DevicePlanner(schedule, device).run();
  schedule.memory.arena = schedule.arenaBytes[0];
  schedule.memory.slab = schedule.slabBytes[0];
  schedule.memory.results = schedule.resultBytes[0];
}

//===----------------------------------------------------------------------===//
// To look at
//===----------------------------------------------------------------------===//

static MemoryBlock blockOf(Space space) {
  return space == Space::Slab      ? MemoryBlock::Slab
         : space == Space::Results ? MemoryBlock::Results
                                   : MemoryBlock::Arena;
}

llvm::StringRef rondo::memoryBlockName(MemoryBlock block) {
  switch (block) {
  case MemoryBlock::Arena:
    return "arena";
  case MemoryBlock::Slab:
    return "slab";
  case MemoryBlock::Results:
    return "results";
  }
  return {};
}

MemoryPlanInfo rondo::describeMemory(const Schedule &schedule) {
  MemoryPlanInfo info;
  info.figures = schedule.memory;
  for (const Step &step : schedule.steps)
    info.steps.push_back(step.text);
  std::vector<uint64_t> needed = neededBytes(schedule, /*rounded=*/false);
  info.peakStep = std::max_element(needed.begin(), needed.end()) - needed.begin();

  std::vector<int32_t> positions(schedule.storages.size(), -1);
  for (uint32_t i = 0; i < schedule.storages.size(); ++i) {
    const PlannedStorage &storage = schedule.storages[i];
    if (storage.device != 0 || !isPlanned(storage))
      continue;
    positions[i] = info.storages.size();
    StorageInfo &added = info.storages.emplace_back();
    added.name = storage.name;
    added.block = blockOf(storage.space);
    added.bytes = storage.bytes;
    added.offset = storage.offset;
    added.firstStep = storage.begin;
    if (storage.end != ~0u)
      added.lastStep = storage.end;
    if (firstOwnStep(storage) <= info.peakStep && storage.end >= info.peakStep && storage.bytes)
      info.peakHolders.push_back(positions[i]);
  }
  for (uint32_t i = 0; i < schedule.storages.size(); ++i)
    if (positions[i] >= 0 && schedule.storages[i].takesOver >= 0)
      info.storages[positions[i]].takesOver = positions[schedule.storages[i].takesOver];
  llvm::stable_sort(info.peakHolders, [&](uint32_t a, uint32_t b) {
    return info.storages[a].bytes > info.storages[b].bytes;
  });
  return info;
}
