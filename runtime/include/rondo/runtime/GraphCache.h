//===- GraphCache.h - Captured graphs of one domain and device --*- C++ -*-===//
//
// A graph is cached under the capture domain of the transform that made its region, in a slot per
// device. When transform and programs are gone, so are the graphs. An entry holds the graph, its
// exec and its kernels; never the domain, the trace or the program.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

#include "rondo/ir/CaptureDomain.h"
#include "rondo/runtime/Worth.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace rondo {

/// What happened in a cache since it was made or `reset`.
struct CacheCounters {
  uint64_t entries = 0;   ///< graphs held now
  uint64_t bytes = 0;     ///< device memory of their execs, estimated
  uint64_t captures = 0;  ///< graphs built
  uint64_t replays = 0;   ///< launches of graphs
  uint64_t eagerRuns = 0; ///< runs of a region without a graph: the first of each entry, fallbacks
  uint64_t patches = 0;   ///< times that pointers in a graph were changed, some of these replays
  uint64_t patchedNodes = 0; ///< nodes whose pointers were
  uint64_t recaptures = 0;   ///< graphs rebuilt because a buffer moved that could not be patched
  uint64_t failures = 0;     ///< graphs that could not be built
  uint64_t evictions = 0;    ///< entries dropped to stay within the bounds
  uint64_t copiedBytes = 0;  ///< copied in and out by replays

  CacheCounters &operator+=(const CacheCounters &other);
};

/// What tells entries apart. Not addresses: they are compared, and changed in the graph.
struct GraphKey {
  uint64_t program = 0; ///< of one specialisation of a program; never reused
  uint32_t region = 0;  ///< numbered within it
  uint64_t lane = 0;
  /// Blocks of memory whose addresses the graph holds for good, never reused; 0 where it holds
  /// none.
  uint64_t slab = 0, results = 0, forwardResults = 0;
  /// Host scalars that enter the region and that the graph cannot follow, by value.
  llvm::SmallVector<uint64_t, 2> scalars;

  friend bool operator==(const GraphKey &, const GraphKey &) = default;
};

/// What one entry is and was good for.
struct EntryStatistics {
  GraphKey key;
  size_t numNodes = 0;      ///< of its graph
  uint64_t bytes = 0;       ///< device memory of its exec, estimated
  uint64_t uses = 0;        ///< the call that built it and the launches since
  double buildSeconds = 0;  ///< what building it took
  uint64_t copiedBytes = 0; ///< per replay, in and out
};

class GraphEntry;
using GraphEntryRef = std::shared_ptr<GraphEntry>;

/// The graphs of one domain on one device. Thread-safe; an entry is used by one call at a time,
/// which its lane sees to.
class GraphCache {
public:
  /// The cache of `domain` on `device`, made on first use.
  static std::shared_ptr<GraphCache> of(CaptureDomain &domain, DeviceAPI &device);
  /// The same, or null if nothing was ever cached.
  static std::shared_ptr<GraphCache> find(const CaptureDomain &domain, const DeviceAPI &device);

  CacheCounters counters() const;
  /// Drops every entry and sets the counters to 0. Calls in flight keep the entries they use until
  /// they end.
  void reset();
  /// At most this many entries (default 512, at least 1), whose execs take at most so many bytes of
  /// device memory (default 256 MiB; one that is larger stays until the next comes). Beyond that
  /// the entry goes whose rebuilding costs least for how often it was used and the bytes it takes.
  void setMaxEntries(size_t entries);
  void setMaxBytes(uint64_t bytes);
  /// Every entry, the oldest first.
  std::vector<EntryStatistics> entries() const;
  /// Calls `visit` with every graph that is held and its exec, to look at while no call is in
  /// flight. Nothing else happens in the cache meanwhile.
  void forEachGraph(llvm::function_ref<void(Graph &, GraphExec &)> visit) const;

  // For the runtime.

  GraphEntryRef lookup(const GraphKey &key);
  /// Puts `entry` in, in place of one for the same key. `cost` is what building it took, in
  /// seconds.
  void insert(const GraphKey &key, GraphEntryRef entry, double cost);
  /// Drops every entry that `matches`.
  void eraseIf(llvm::function_ref<bool(const GraphKey &)> matches);
  /// The same, and appends them to `erased`.
  void eraseIf(llvm::function_ref<bool(const GraphKey &)> matches,
               std::vector<GraphEntryRef> &erased);
  /// Is there an entry that `matches`?
  bool containsIf(llvm::function_ref<bool(const GraphKey &)> matches) const;

  void countReplay(uint64_t copiedBytes) {
    replays_.fetch_add(1, std::memory_order_relaxed);
    if (copiedBytes != 0)
      copiedBytes_.fetch_add(copiedBytes, std::memory_order_relaxed);
  }
  void countEagerRun() { eagerRuns_.fetch_add(1, std::memory_order_relaxed); }
  void countPatch(uint64_t nodes) {
    patches_.fetch_add(1, std::memory_order_relaxed);
    patchedNodes_.fetch_add(nodes, std::memory_order_relaxed);
  }
  void countRecapture() { recaptures_.fetch_add(1, std::memory_order_relaxed); }
  void countFailure() { failures_.fetch_add(1, std::memory_order_relaxed); }

private:
  struct KeyHash {
    size_t operator()(const GraphKey &key) const;
  };
  struct Held {
    GraphEntryRef entry;
    uint64_t number = 0; ///< of the insertion
    size_t numNodes = 0; ///< then
    uint64_t bytes = 0;
    Worth worth;
  };
  using Entries = std::unordered_map<GraphKey, Held, KeyHash>;

  bool isOverfull() const { return entries_.size() > maxEntries_ || bytes_ > maxBytes_; }
  /// Drops entries other than `keep` until what is left is within the bounds.
  void evict(const GraphKey &keep, std::vector<GraphEntryRef> &dropped);
  /// The entry to go first, unless it is `keep`; the end if there is none.
  Entries::iterator leastWorth(const GraphKey &keep);
  Entries::iterator erase(Entries::iterator entry, std::vector<GraphEntryRef> &dropped);

  mutable std::mutex mutex_;
  Entries entries_;
  size_t maxEntries_ = 512;
  uint64_t maxBytes_ = uint64_t(256) << 20;
  uint64_t bytes_ = 0; ///< of all entries
  uint64_t numInserted_ = 0;
  double age_ = 0; ///< worth of the entry evicted last
  std::atomic<uint64_t> captures_ = 0, replays_ = 0, eagerRuns_ = 0, patches_ = 0,
                        patchedNodes_ = 0, recaptures_ = 0, failures_ = 0, evictions_ = 0,
                        copiedBytes_ = 0;
};

} // namespace rondo
