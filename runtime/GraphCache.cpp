//===- GraphCache.cpp - Captured graphs of one domain and device ----------===//

#include "rondo/runtime/GraphCache.h"

#include "GraphBuilder.h"

#include "llvm/ADT/Hashing.h"

using namespace rondo;

// The address of the device is the key of the slot: an entry keeps its device alive, so a cache
// that is found under the address of another device is empty.

std::shared_ptr<GraphCache> GraphCache::of(CaptureDomain &domain, DeviceAPI &device) {
  return std::static_pointer_cast<GraphCache>(
      domain.slot(&device, [] { return std::make_shared<GraphCache>(); }));
}

std::shared_ptr<GraphCache> GraphCache::find(const CaptureDomain &domain, const DeviceAPI &device) {
  return std::static_pointer_cast<GraphCache>(domain.findSlot(&device));
}

size_t GraphCache::KeyHash::operator()(const GraphKey &key) const {
  return llvm::hash_combine(key.program, key.region, key.lane, key.slab, key.results,
                            key.forwardResults,
                            llvm::hash_combine_range(key.scalars.begin(), key.scalars.end()));
}

CacheCounters GraphCache::counters() const {
  CacheCounters counters;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    counters.entries = entries_.size();
  }
  counters.captures = captures_;
  counters.replays = replays_;
  counters.eagerRuns = eagerRuns_;
  counters.patches = patches_;
  counters.patchedNodes = patchedNodes_;
  counters.recaptures = recaptures_;
  counters.failures = failures_;
  counters.evictions = evictions_;
  counters.copiedBytes = copiedBytes_;
  return counters;
}

void GraphCache::reset() {
  eraseIf([](const GraphKey &) { return true; });
  for (auto *counter : {&captures_, &replays_, &eagerRuns_, &patches_, &patchedNodes_, &recaptures_,
                        &failures_, &evictions_, &copiedBytes_})
    counter->store(0);
}

void GraphCache::setMaxEntries(size_t entries) {
  std::vector<GraphEntryRef> dropped; // destroyed without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  maxEntries_ = std::max<size_t>(entries, 1);
  while (entries_.size() > maxEntries_)
    evictOne(GraphKey(), dropped);
}

void GraphCache::forEachGraph(llvm::function_ref<void(Graph &, GraphExec &)> visit) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &[key, held] : entries_)
    if (held.entry->exec)
      visit(*held.entry->graph, *held.entry->exec);
}

GraphEntryRef GraphCache::lookup(const GraphKey &key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = entries_.find(key);
  if (found == entries_.end())
    return nullptr;
  return found->second.entry;
}

void GraphCache::insert(const GraphKey &key, GraphEntryRef entry, double cost) {
  std::vector<GraphEntryRef> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  Held &held = entries_[key];
  if (held.entry)
    dropped.push_back(std::move(held.entry));
  held = {std::move(entry), cost, 1, 0};
  captures_.fetch_add(1);
  while (entries_.size() > maxEntries_)
    evictOne(key, dropped);
  held.value = age_ + cost;
}

void GraphCache::evictOne(const GraphKey &keep, std::vector<GraphEntryRef> &dropped) {
  auto least = entries_.end();
  for (auto i = entries_.begin(); i != entries_.end(); ++i) {
    Held &held = i->second;
    // Lanes launch what they used last without a look-up: the entry itself knows.
    if (uint64_t uses = held.entry->uses.exchange(0, std::memory_order_relaxed)) {
      held.uses += uses;
      held.value = age_ + held.cost * double(held.uses);
    }
    if (!(i->first == keep) && (least == entries_.end() || held.value < least->second.value))
      least = i;
  }
  if (least == entries_.end())
    return;
  age_ = least->second.value;
  dropped.push_back(std::move(least->second.entry));
  entries_.erase(least);
  evictions_.fetch_add(1);
}

void GraphCache::eraseIf(llvm::function_ref<bool(const GraphKey &)> matches) {
  std::vector<GraphEntryRef> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto i = entries_.begin(); i != entries_.end();) {
    if (!matches(i->first)) {
      ++i;
      continue;
    }
    dropped.push_back(std::move(i->second.entry));
    i = entries_.erase(i);
  }
}
