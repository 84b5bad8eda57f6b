//===- RegionChanges.cpp - What calls find out about regions --------------===//
//
// A region that cannot be captured is split or runs eagerly, one whose copied buffers stay is
// patched instead. Calls in flight go on with the list of regions that they began with; later ones
// see the new list.
//
//===----------------------------------------------------------------------===//

#include "ProgramImpl.h"
#include "RegionBuffers.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

/// Is `storage` what a buffer of `region` is copied to?
static bool isStagingOf(uint32_t storage, const ScheduledRegion &region) {
  return llvm::any_of(region.buffers, [&](const RegionBuffer &buffer) {
    return buffer.policy == BufferPolicy::Copied && buffer.staging == storage;
  });
}

/// The part of `region` that the steps [begin, end) are.
static ScheduledRegion partOf(const Schedule &schedule, const ScheduledRegion &region,
                              uint32_t begin, uint32_t end, uint32_t uid) {
  ScheduledRegion part = region;
  part.begin = begin;
  part.end = end;
  part.uid = uid;
  part.numOps = end - begin;
  for (RegionBuffer &buffer : part.buffers) {
    buffer.consumers = 0;
    for (uint32_t i = begin; i < end; ++i)
      buffer.consumers += llvm::any_of(schedule.steps[i].accesses, [&](const Access &access) {
        return access.storage == buffer.storage;
      });
    buffer.isRead = true; // the other part may have written some of it
  }
  llvm::erase_if(part.buffers, [&](const RegionBuffer &buffer) {
    return buffer.consumers == 0 && !isStagingOf(buffer.storage, part);
  });
  part.scalars = scalarsTaken(schedule, begin, end);
  return part;
}

bool ProgramImpl::isStillPassing(const Variant &variant, uint32_t region) {
  constexpr unsigned mostCalls = 4;
  std::lock_guard<std::mutex> lock(mutex_);
  return ++passingFailures_[{variant.uid, region}] < mostCalls;
}

void ProgramImpl::remarkUnpatchable(const Variant &variant, const ScheduledRegion &region,
                                    llvm::StringRef buffer, llvm::StringRef problem) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (remarkedBuffers_.insert({variant.uid, region.uid}).second)
    remarks_.push_back("region " + std::to_string(region.id) +
                       ": the graph is captured anew when " + buffer.str() +
                       " moves: " + problem.str() + "; the input policy 'copied' avoids that");
}

void ProgramImpl::stopCopying(Variant &variant, Side side, uint32_t uid,
                              llvm::ArrayRef<uint32_t> storages) {
  std::unique_lock<std::mutex> lock(mutex_);
  SidePlan &plan = variant.side(side);
  auto regions = std::make_shared<std::vector<ScheduledRegion>>(*plan.regions);
  auto region = llvm::find_if(*regions, [&](const ScheduledRegion &r) { return r.uid == uid; });
  if (region == regions->end()) // another lane's call was faster
    return;
  bool hasChanged = false;
  for (RegionBuffer &buffer : region->buffers) {
    if (!buffer.isChosen || buffer.policy != BufferPolicy::Copied ||
        !llvm::is_contained(storages, buffer.storage))
      continue;
    buffer.policy = BufferPolicy::Patched;
    buffer.why += "; it seldom moved";
    hasChanged = true;
  }
  if (!hasChanged)
    return;
  std::shared_ptr<GraphCache> cache = region->cache;
  region->uid = variant.nextRegion++;
  plan.regions = std::move(regions);
  lock.unlock();
  cache->eraseIf(
      [&](const GraphKey &key) { return key.program == variant.uid && key.region == uid; });
}

void ProgramImpl::replaceRegion(Variant &variant, Side side, uint32_t uid,
                                std::optional<uint32_t> step, const std::string &reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  SidePlan &plan = variant.side(side);
  auto regions = std::make_shared<std::vector<ScheduledRegion>>();
  bool isSplit = step && options_.onCaptureFailure == CaptureFailure::Split;
  for (const ScheduledRegion &region : *plan.regions) {
    if (region.uid != uid) {
      regions->push_back(region);
      continue;
    }
    if (remarked_.insert({variant.uid, uid}).second)
      remarks_.push_back("region " + std::to_string(region.id) + " of the " + sideName(side).str() +
                         (isSplit ? " is split: " : " runs eagerly: ") + reason);
    if (!isSplit) {
      regions->push_back(region);
      regions->back().isEager = true;
      continue;
    }
    for (auto [begin, end] : {std::pair(region.begin, *step), std::pair(*step + 1, region.end)})
      if (end > begin + 1) // one launch is no faster as a graph
        regions->push_back(partOf(plan.schedule, region, begin, end, variant.nextRegion++));
  }
  plan.regions = std::move(regions);
}
