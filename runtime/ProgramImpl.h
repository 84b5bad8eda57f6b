//===- ProgramImpl.h - A compiled pair, inside ------------------*- C++ -*-===//
//
// A program has one variant per binding of its symbols, as many as are kept (VariantTable.h). A
// variant has a schedule per side, pools of slabs and results, and the regions as they stand (a
// failed capture splits them). A call leases a lane and blocks under the program's lock, and then
// runs without it: the lane is the call's alone, and so are the graphs whose key names the lane.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Binding.h"
#include "Block.h"
#include "Buckets.h"
#include "GraphBuilder.h"
#include "Retired.h"
#include "VariantTable.h"

#include "rondo/runtime/Program.h"

#include "llvm/ADT/DenseSet.h"

#include <condition_variable>

namespace rondo {

/// The memory of a call or of a saved state, to make tensors of it.
struct ValueSource {
  const Schedule &schedule;
  llvm::ArrayRef<DeviceRef> devices;
  llvm::ArrayRef<Value> inputs; ///< unless everything is saved
  const Block *slab = nullptr, *results = nullptr;
  llvm::ArrayRef<PlacedResult> placed = {}; ///< results that lie elsewhere

  Value value(const ResultPlan &plan, llvm::ArrayRef<Slot> scalars) const;

private:
  Tensor tensor(const ResultPlan &plan) const;
};

using RegionList = std::shared_ptr<const std::vector<ScheduledRegion>>;

/// One side of a variant.
struct SidePlan {
  Schedule schedule;
  RegionList regions;
  BlockPool results;
  llvm::SmallVector<RNGState *, 2> generators;
  std::vector<std::byte *> staticAddresses; ///< by input, of the first call; for StaticMove::Error
};

/// A pair with concrete sizes, made ready to run.
struct Variant {
  uint64_t uid = 0;
  SidePlan forward;
  std::optional<SidePlan> backward;
  Padding padding; ///< of the forward's inputs
  BlockPool slabs;
  BlockRef noSlab; ///< in place of slabs where nothing is saved: used by all calls, holds nothing
  uint32_t nextRegion = 0; ///< uid of the next region that a split makes
  /// Made in a storm of sizes and not called again: builds no graphs. Under the program's lock.
  bool isTransient = false;

  /// Of all its blocks, but for noSlab.
  llvm::SmallVector<BlockPool *, 4> pools() {
    llvm::SmallVector<BlockPool *, 4> pools = {&slabs, &forward.results, &padding.blocks};
    if (backward)
      pools.push_back(&backward->results);
    return pools;
  }
  /// Does a call, a SavedState or a graph of the caller use one of them?
  bool isLeased() {
    return llvm::any_of(pools(), [](const BlockPool *pool) { return pool->isLeased(); });
  }
  SidePlan &side(Side side) { return side == Side::Forward ? forward : *backward; }
};

/// What the last call of one side of a variant on a lane found out. The next one begins from it, so
/// that a replay compares pointers, allocates nothing and looks nothing up.
struct Frame {
  BoundArguments bound;
  llvm::SmallVector<std::byte *, 0> saved; ///< addresses of what a backward is given by its forward
  /// What a region used: saves the cache's lock and look-up while keys do not change.
  struct Recent {
    GraphKey key;
    std::weak_ptr<GraphEntry> entry;
    // Where the buffers were when the entry's addresses were last compared.
    uint64_t version = 0; ///< of `bound`; 0: never
    std::byte *results = nullptr, *forwardResults = nullptr;

    bool isUpToDate(const BoundArguments &bound, const Bases &bases) const {
      return version == bound.version && results == bases.results.front() &&
             forwardResults == bases.forwardResults.front() && bases.relocations.empty();
    }
    void note(const BoundArguments &bound, const Bases &bases) {
      version = bases.relocations.empty() ? bound.version : 0;
      results = bases.results.front();
      forwardResults = bases.forwardResults.front();
    }
  };

  RegionList regions;         ///< as they stood
  std::vector<Recent> recent; ///< by region

  /// What was found out is forgotten if they have changed.
  void useRegions(const RegionList &now) {
    if (regions == now)
      return;
    regions = now;
    recent.assign(now->size(), Recent());
  }
  /// `region` is one of `regions`.
  Recent &recentOf(const ScheduledRegion &region) { return recent[&region - regions->data()]; }
};

/// Room for one call at a time: an arena, and a stream for each further device.
struct Lane {
  BlockRef arena;                               ///< of the call that has the lane, or had it last
  std::vector<BlockRef> arenas;                 ///< all there are, each larger than the one before
  std::vector<std::unique_ptr<Stream>> streams; ///< by device; null for the first
  /// Set under the lock; cleared, by the call that has it, without.
  std::atomic<bool> isBusy = false;
  llvm::DenseMap<std::pair<uint64_t, unsigned>, std::unique_ptr<Frame>> frames; ///< variant, side
};

class ProgramImpl {
public:
  ProgramImpl(TracePair pair, llvm::ArrayRef<DeviceRef> devices,
              llvm::ArrayRef<const Executor *> executors, Pipeline pipeline,
              ProgramOptions options);
  ~ProgramImpl();

  /// What can be done before the first call.
  llvm::Error prepare();

  bool hasBackward() const { return hasBackward_; }
  llvm::ArrayRef<ParameterInfo> inputs(Side side) const { return inputs_[unsigned(side)]; }
  llvm::ArrayRef<ParameterInfo> results(Side side) const { return results_[unsigned(side)]; }

  llvm::Error forward(Stream &stream, llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs,
                      llvm::SmallVectorImpl<Value> &results, SavedState *saved);
  llvm::Error backward(Stream &stream, SavedState &saved, llvm::ArrayRef<Value> inputs,
                       llvm::ArrayRef<Tensor> outputs, llvm::SmallVectorImpl<Value> &results);
  llvm::Expected<std::vector<SavedValue>> savedValues(const SavedState &saved) const;
  void setEager(bool eager) { isEager_ = eager; }
  bool consumesSaved() const { return options_.consumeSaved; }
  void trim();

  const std::shared_ptr<Generators> &generators() const { return options_.generators; }
  CacheCounters counters() const;
  uint64_t paddedBytes() const { return paddedBytes_; }
  void forEachGraph(llvm::function_ref<void(Graph &, GraphExec &)> visit) const;
  std::vector<EntryStatistics> graphs() const;
  std::vector<RegionInfo> regions() const;
  MemoryInfo memory(Side side) const;
  MemoryPlanInfo memoryPlan(Side side) const;
  std::vector<std::string> takeRemarks();

private:
  friend class Call;
  friend class PaddedCall;

  //===--- Compile.cpp ----------------------------------------------------===//
  llvm::Expected<VariantRef> variantFor(llvm::ArrayRef<Value> inputs);
  llvm::Expected<VariantRef> compileVariant(const SymbolBindings &bindings,
                                            const std::vector<int64_t> &sizes);
  llvm::Expected<VariantRef> makeVariant(const SymbolBindings &bindings);
  llvm::Expected<VariantRef> variantOf(const SavedState &saved) const;
  llvm::Error finishSide(SidePlan &plan, Variant &variant);
  /// Under compileMutex_, or before the first call.
  llvm::Expected<BufferCosts> costs(bool withByte);
  llvm::Error checkSignature(const Schedule &schedule, const SymbolBindings &bindings) const;
  // Under the lock.
  void remarkOnStorm();
  void forget(const Variant &variant);
  void dropUnusedCaches(const Variant &variant);

  //===--- Lease.cpp: all under the lock ----------------------------------===//
  Lane *leaseLane(std::unique_lock<std::mutex> &lock, Stream &stream);
  /// Gives a leased lane what a call with `schedule`, which may be of a transient variant, needs.
  llvm::Error prepareLane(Lane &lane, const Schedule &schedule, bool isTransient);
  void waitForLane(std::unique_lock<std::mutex> &lock, llvm::function_ref<bool()> isReady);
  llvm::Error chooseArena(Lane &lane, const Schedule &schedule, bool isTransient);
  llvm::Error growArena(Lane &lane, const Schedule &schedule, bool isTransient);
  llvm::SmallVector<uint64_t, 1> nextArenaBytes(const Lane &lane, const Schedule &schedule) const;
  llvm::Error dropArenas(Lane &lane, llvm::function_ref<bool(const Block &)> mustGo);
  bool holdsGraphs(const Block &arena) const;
  llvm::Expected<BlockRef> leaseBlock(BlockPool &pool, llvm::ArrayRef<uint64_t> bytes,
                                      Stream &stream, bool onlySameStream);
  llvm::Expected<BlockRef> createBlock(llvm::ArrayRef<uint64_t> bytes);
  void returnLane(Lane &lane);
  /// The graph that `stream` is being captured to keeps `kept` alive, or, where nobody here sees
  /// that graph, the program does.
  void keepForCapture(Stream &stream, std::unique_ptr<Retired> kept);
  bool mayWait() const;
  void dropGraphsOf(llvm::ArrayRef<BlockRef> blocks);
  void trimLocked();

  /// What was submitted to `stream` is the last use of `block`. Not under the lock.
  llvm::Error releaseUse(Block &block, Stream &stream);

  //===--- Call.cpp -------------------------------------------------------===//
  llvm::Error call(Variant &variant, Side side, Stream &stream, llvm::ArrayRef<Value> inputs,
                   llvm::ArrayRef<Tensor> outputs, llvm::SmallVectorImpl<Value> &results,
                   BlockRef &slab);

  //===--- RegionChanges.cpp ----------------------------------------------===//
  /// A capture of `region` was invalidated or out of memory, and the one tried next, too. False
  /// when that has happened to so many calls that the region itself must be to blame.
  bool isStillPassing(const Variant &variant, uint32_t region);
  void remarkUnpatchable(const Variant &variant, const ScheduledRegion &region,
                         llvm::StringRef buffer, llvm::StringRef problem);
  /// Patches from now on what was chosen to be copied and does not move: each copy is time on the
  /// device. The region's next call captures it anew.
  void stopCopying(Variant &variant, Side side, uint32_t uid, llvm::ArrayRef<uint32_t> storages);
  void replaceRegion(Variant &variant, Side side, uint32_t uid, std::optional<uint32_t> step,
                     const std::string &reason);

  const llvm::SmallVector<DeviceRef, 1> devices_;
  const std::vector<const Executor *> executors_;
  const Pipeline pipeline_;
  ProgramOptions options_;
  std::optional<BufferCosts> costs_; ///< as far as they were measured
  bool hasBackward_ = false;
  std::vector<ParameterInfo> inputs_[2], results_[2];
  std::vector<std::string> symbols_; ///< sorted
  std::optional<TracePair> pair_;    ///< kept while variants may still be made
  CaptureDomainRef ownDomain_;       ///< for regions that name none

  std::atomic<bool> isEager_ = false;
  std::atomic<bool> usesSeveralStreams_ = false;
  std::atomic<uint64_t> paddedBytes_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable laneReturned_;
  std::atomic<unsigned> waiters_ = 0; ///< for lanes
  std::mutex compileMutex_;           ///< taken before mutex_
  VariantTable variants_;
  VariantRef latest_; ///< never changes where there are no symbols
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::shared_ptr<GraphCache>> caches_; ///< of all regions, without duplicates
  CacheCounters pastCounters_;                      ///< of caches that no region uses any more
  std::vector<std::shared_ptr<Retired>> captured_;  ///< for graphs that only the caller sees
  std::vector<std::string> remarks_;
  bool hasRemarkedOnStorm_ = false;
  llvm::DenseSet<std::pair<uint64_t, uint32_t>> remarked_, remarkedBuffers_; ///< (variant, region)
  llvm::DenseMap<std::pair<uint64_t, uint32_t>, unsigned> passingFailures_;  ///< likewise: calls
};

} // namespace rondo
