//===- RegionBuffers.cpp - Buffers of regions, and how they reach graphs --===//
//
// What a region touches of the caller's, and of memory of results, may lie elsewhere in each call.
//
//===----------------------------------------------------------------------===//

#include "RegionBuffers.h"

#include "BufferChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace rondo;

namespace {

/// Of one region.
class BufferPlanner {
public:
  BufferPlanner(Schedule &schedule, ScheduledRegion &region)
      : schedule_(schedule), region_(region) {}

  llvm::Error run(const BufferPolicies &policies, const CostSource &costs) {
    llvm::DenseMap<uint32_t, size_t> known;
    for (uint32_t i = region_.begin; i < region_.end; ++i) {
      llvm::SmallSet<uint32_t, 4> counted;
      for (const Access &access : schedule_.steps[i].accesses) {
        if (!schedule_.storages[access.storage].isCallers())
          continue;
        auto [found, isNew] = known.try_emplace(access.storage, region_.buffers.size());
        if (isNew)
          addBuffer(access, schedule_.steps[i]);
        RegionBuffer &buffer = region_.buffers[found->second];
        buffer.isWritten |= access.isWrite;
        buffer.consumers += counted.insert(access.storage).second;
      }
    }
    region_.scalars = scalarsTaken(schedule_, region_.begin, region_.end);
    if (llvm::Error error = setPolicies(policies, costs))
      return error;
    for (RegionBuffer &buffer : region_.buffers)
      if (buffer.policy == BufferPolicy::Copied)
        addStaging(buffer);
    return llvm::Error::success();
  }

private:
  void addBuffer(const Access &first, const Step &step) {
    bool isOverwritten = first.isWrite && first.isDense && first.begin == 0 &&
                         first.end == schedule_.storages[first.storage].bytes &&
                         llvm::none_of(step.accesses, [&](const Access &other) {
                           return other.storage == first.storage && !other.isWrite;
                         });
    RegionBuffer buffer;
    buffer.storage = first.storage;
    buffer.isRead = !isOverwritten;
    region_.buffers.push_back(std::move(buffer));
  }

  /// To copy so many bytes costs what a node costs.
  static constexpr uint64_t cheapBytes = 4096;

  llvm::Error setPolicies(const BufferPolicies &policies, const CostSource &costSource) {
    llvm::SmallVector<RegionBuffer *, 4> undecided;
    for (RegionBuffer &buffer : region_.buffers) {
      auto policy = policies.find({region_.uid, buffer.storage});
      if (policy != policies.end()) {
        buffer.policy = policy->second;
        buffer.why = "the transform says so";
      } else if (schedule_.storages[buffer.storage].isStatic) {
        buffer.policy = BufferPolicy::Static;
        buffer.why = "a parameter, a buffer, or saved";
      } else {
        buffer.isChosen = true;
        undecided.push_back(&buffer);
      }
    }
    if (undecided.empty())
      return llvm::Error::success();
    // With one consumer, a copy changes as many nodes as patching does.
    bool isOpen = llvm::any_of(undecided, [](RegionBuffer *b) { return b->consumers > 1; });
    bool isLarge = llvm::any_of(undecided, [&](RegionBuffer *b) {
      return b->consumers > 1 && schedule_.storages[b->storage].bytes > cheapBytes;
    });
    BufferCosts costs;
    if (isOpen && costSource) {
      llvm::Expected<BufferCosts> measured = costSource(isLarge);
      if (!measured)
        return measured.takeError();
      costs = *measured;
    }
    choosePolicies(undecided, schedule_, region_.end - region_.begin, costs);
    return llvm::Error::success();
  }

  void addStaging(RegionBuffer &buffer) {
    PlannedStorage staging;
    const PlannedStorage &storage = schedule_.storages[buffer.storage];
    staging.device = storage.device;
    staging.bytes = storage.bytes;
    staging.name = "copy of " + storage.name;
    staging.begin = region_.begin;
    staging.end = region_.end - 1;
    for (uint32_t i = region_.end; !buffer.isWritten && i-- > region_.begin;) {
      staging.end = i;
      if (llvm::any_of(schedule_.steps[i].accesses,
                       [&](const Access &access) { return access.storage == buffer.storage; }))
        break;
    }
    buffer.staging = schedule_.storages.size();
    schedule_.storages.push_back(std::move(staging));
  }

  Schedule &schedule_;
  ScheduledRegion &region_;
};

} // namespace

llvm::Error rondo::planBuffers(Schedule &schedule, ScheduledRegion &region,
                               const BufferPolicies &policies, const CostSource &costs) {
  return BufferPlanner(schedule, region).run(policies, costs);
}

llvm::SmallVector<unsigned, 2> rondo::scalarsTaken(const Schedule &schedule, uint32_t begin,
                                                   uint32_t end) {
  llvm::SmallSetVector<unsigned, 4> taken, made;
  for (const auto &constant : schedule.constants)
    made.insert(constant.first);
  for (uint32_t i = begin; i < end; ++i) {
    for (const Place &place : schedule.steps[i].operands)
      if (place.isScalar() && !made.contains(place.scalar))
        taken.insert(place.scalar);
    for (const Place &place : schedule.steps[i].results)
      if (place.isScalar())
        made.insert(place.scalar);
  }
  return {taken.begin(), taken.end()};
}

void rondo::addResultBuffers(Schedule &schedule) {
  schedule.hasTemporariesInResults =
      llvm::any_of(schedule.storages, [](const PlannedStorage &storage) {
        return storage.space == Space::Results && storage.end != ~0u && storage.bytes != 0;
      });
  for (ScheduledRegion &region : schedule.regions) {
    llvm::SmallSetVector<uint32_t, 8> inResults;
    llvm::DenseMap<uint32_t, unsigned> consumers;
    auto touch = [&](uint32_t storage) {
      Space space = schedule.storages[storage].space;
      region.usesSlab |= space == Space::Slab;
      region.usesResults |= space == Space::Results;
      region.usesForwardResults |= space == Space::ForwardResults;
      if (space == Space::Results || space == Space::ForwardResults) {
        inResults.insert(storage);
        ++consumers[storage];
      }
    };
    for (uint32_t i = region.begin; i < region.end; ++i)
      for (const Access &access : schedule.steps[i].accesses)
        touch(access.storage);
    for (const RegionBuffer &buffer : region.buffers)
      if (buffer.policy == BufferPolicy::Copied)
        touch(buffer.staging);
    for (uint32_t storage : inResults)
      region.buffers.push_back(
          {storage, BufferPolicy::Patched, "memory of results", consumers[storage], true, true});
  }
}
