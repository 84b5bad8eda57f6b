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

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace rondo {

/// What happened in a cache since it was made or `reset`.
struct CacheCounters {
  uint64_t entries = 0;    ///< graphs held now
  uint64_t captures = 0;   ///< graphs built
  uint64_t replays = 0;    ///< launches of graphs
  uint64_t eagerRuns = 0;  ///< runs of a region without a graph: the first of each entry, fallbacks
  uint64_t patches = 0;      ///< times that pointers in a graph were changed, some of these replays
  uint64_t patchedNodes = 0; ///< nodes whose pointers were
  uint64_t recaptures = 0;   ///< graphs rebuilt because a buffer moved that could not be patched
  uint64_t failures = 0;   ///< graphs that could not be built
  uint64_t evictions = 0;  ///< entries dropped to stay within the bound
  uint64_t copiedBytes = 0; ///< copied in and out by replays
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
  /// At most this many entries (default 512, at least 1). Beyond it the entry goes whose rebuilding
  /// costs least for how often it was used.
  void setMaxEntries(size_t entries);
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
  /// Entries go in order of `value`: GreedyDual-Size-Frequency (Cherkasova, 1998) with equal sizes.
  struct Held {
    GraphEntryRef entry;
    double cost = 0;
    uint64_t uses = 0;
    double value = 0;
  };
  void evictOne(const GraphKey &keep, std::vector<GraphEntryRef> &dropped);

  mutable std::mutex mutex_;
  std::unordered_map<GraphKey, Held, KeyHash> entries_;
  size_t maxEntries_ = 512;
  double age_ = 0; ///< value of the entry evicted last
  std::atomic<uint64_t> captures_ = 0, replays_ = 0, eagerRuns_ = 0, patches_ = 0,
                        patchedNodes_ = 0, recaptures_ = 0, failures_ = 0, evictions_ = 0,
                        copiedBytes_ = 0;
};

} // namespace rondo
