//===- HazardTracker.cpp - Who touched these bytes last? ------------------===//

#include "HazardTracker.h"

using namespace rondo;

HazardTracker::Ranges::iterator HazardTracker::firstBehind(uint64_t begin) {
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin() && std::prev(range)->second.end > begin)
    --range;
  return range;
}

void HazardTracker::split(uint64_t at) {
  auto range = firstBehind(at);
  if (range == ranges_.end() || range->first >= at)
    return;
  Range upper = range->second;
  range->second.end = at;
  ranges_.emplace(at, std::move(upper));
}

void HazardTracker::depend(uint64_t begin, uint64_t end, bool isWrite,
                           llvm::SmallVectorImpl<uint32_t> &dependencies) {
  if (begin >= end)
    return;
  for (auto range = firstBehind(begin); range != ranges_.end() && range->first < end; ++range) {
    const Range &last = range->second;
    bool followsReaders = isWrite && !last.readers.empty(); // which wait for the writer
    if (last.writer != ~0u && !followsReaders)
      dependencies.push_back(last.writer);
    if (followsReaders)
      dependencies.append(last.readers.begin(), last.readers.end());
  }
}

void HazardTracker::note(uint64_t begin, uint64_t end, bool isWrite, uint32_t step) {
  if (begin >= end)
    return;
  split(begin);
  split(end);
  if (isWrite) {
    ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
    ranges_.emplace(begin, Range{end, step, {}});
    return;
  }
  uint64_t at = begin;
  for (auto range = ranges_.lower_bound(begin); at < end;) {
    if (range == ranges_.end() || range->first > at) { // a gap that nobody touched yet
      uint64_t gapEnd = range == ranges_.end() ? end : std::min(end, range->first);
      ranges_.emplace(at, Range{gapEnd, ~0u, {step}});
      at = gapEnd;
      continue;
    }
    if (range->second.readers.empty() || range->second.readers.back() != step)
      range->second.readers.push_back(step);
    at = range->second.end;
    ++range;
  }
}
