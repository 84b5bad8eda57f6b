//===- GraphCache.cpp - Captured graphs of one domain and device ----------===//

#include "rondo/runtime/GraphCache.h"

#include "GraphBuilder.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

using namespace rondo;

CacheCounters &CacheCounters::operator+=(const CacheCounters &other) {
  entries += other.entries;
  bytes += other.bytes;
  captures += other.captures;
  replays += other.replays;
  eagerRuns += other.eagerRuns;
  patches += other.patches;
  patchedNodes += other.patchedNodes;
  recaptures += other.recaptures;
  failures += other.failures;
  evictions += other.evictions;
  copiedBytes += other.copiedBytes;
  return *this;
}

static size_t numNodesOf(const GraphEntry &entry) {
  return entry.graph ? entry.graph->numNodes() : 0;
}

/// Device memory of an entry's exec: an estimate, as no device says. On an H200 (CUDA 13.0) it was
/// about 2.1 KiB a node, whatever the node; a node of the host's takes less. No entry is free.
static uint64_t estimateBytes(const GraphEntry &entry) {
  constexpr uint64_t bytesPerNode = 2150;
  return bytesPerNode * std::max<size_t>(numNodesOf(entry), 1);
}

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
    counters.bytes = bytes_;
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
  evict(GraphKey(), dropped);
}

void GraphCache::setMaxBytes(uint64_t bytes) {
  std::vector<GraphEntryRef> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  maxBytes_ = bytes;
  evict(GraphKey(), dropped);
}

std::vector<EntryStatistics> GraphCache::entries() const {
  std::vector<std::pair<uint64_t, EntryStatistics>> numbered;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &[key, held] : entries_) {
      const GraphEntry &entry = *held.entry;
      uint64_t uses = held.worth.uses() + entry.uses.load(std::memory_order_relaxed);
      numbered.push_back(
          {held.number,
           {key, held.numNodes, held.bytes, uses, held.worth.cost(), entry.copiedBytes}});
    }
  }
  llvm::sort(numbered, llvm::less_first());
  std::vector<EntryStatistics> statistics;
  for (auto &[number, entry] : numbered)
    statistics.push_back(std::move(entry));
  return statistics;
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
  if (auto old = entries_.find(key); old != entries_.end())
    erase(old, dropped);
  uint64_t bytes = estimateBytes(*entry);
  Held &held = entries_[key];
  size_t numNodes = numNodesOf(*entry);
  held = {std::move(entry), numInserted_++, numNodes, bytes, Worth(cost, double(bytes))};
  bytes_ += bytes;
  captures_.fetch_add(1);
  evict(key, dropped);
  held.worth.use(1, age_);
}

void GraphCache::evict(const GraphKey &keep, std::vector<GraphEntryRef> &dropped) {
  while (isOverfull()) {
    auto least = leastWorth(keep);
    if (least == entries_.end())
      return;
    age_ = least->second.worth.value();
    erase(least, dropped);
    evictions_.fetch_add(1);
  }
}

GraphCache::Entries::iterator GraphCache::leastWorth(const GraphKey &keep) {
  auto least = entries_.end();
  for (auto i = entries_.begin(); i != entries_.end(); ++i) {
    Held &held = i->second;
    // Lanes launch what they used last without a look-up: the entry itself knows.
    if (uint64_t uses = held.entry->uses.exchange(0, std::memory_order_relaxed))
      held.worth.use(uses, age_);
    if (!(i->first == keep) &&
        (least == entries_.end() || held.worth.value() < least->second.worth.value()))
      least = i;
  }
  return least;
}

GraphCache::Entries::iterator GraphCache::erase(Entries::iterator entry,
                                                std::vector<GraphEntryRef> &dropped) {
  bytes_ -= entry->second.bytes;
  dropped.push_back(std::move(entry->second.entry));
  return entries_.erase(entry);
}

void GraphCache::eraseIf(llvm::function_ref<bool(const GraphKey &)> matches) {
  std::vector<GraphEntryRef> dropped;
  eraseIf(matches, dropped);
}

void GraphCache::eraseIf(llvm::function_ref<bool(const GraphKey &)> matches,
                         std::vector<GraphEntryRef> &erased) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto i = entries_.begin(); i != entries_.end();)
    i = matches(i->first) ? erase(i, erased) : std::next(i);
}

bool GraphCache::containsIf(llvm::function_ref<bool(const GraphKey &)> matches) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return llvm::any_of(entries_, [&](const auto &entry) { return matches(entry.first); });
}
