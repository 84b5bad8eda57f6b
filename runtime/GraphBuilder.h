//===- GraphBuilder.h - A region becomes a graph ----------------*- C++ -*-===//

#pragma once

#include "Schedule.h"

namespace rondo {

/// Where an argument of a call is.
struct BoundArgument {
  std::byte *address = nullptr; ///< null for a scalar
  LayoutRef layout;             ///< that fits; of a scalar, one that no tensor has
};

/// Where the bytes of a call are. Borrowed.
struct Bases {
  llvm::ArrayRef<BoundArgument> arguments;
  llvm::ArrayRef<std::byte *> saved;
  // Per device.
  llvm::SmallVector<std::byte *, 1> arena, slab, results, forwardResults;
  llvm::ArrayRef<RNGState *> generators;

  std::byte *address(const PlannedStorage &storage) const;
};

/// The slots of one run of a step. Addresses in it are good for as long as the bases.
class StepArgs {
public:
  /// `staged` maps storages to those that take their place; `scalars` are those of the call.
  StepArgs(const Schedule &schedule, const Step &step, const Bases &bases, Slot *scalars,
           const llvm::DenseMap<uint32_t, uint32_t> *staged = nullptr);
  KernelArgs args() const { return {operands_, results_, workspace_, generators_}; }

private:
  llvm::SmallVector<Slot, 8> operands_;
  llvm::SmallVector<Slot, 4> results_;
  void *workspace_ = nullptr;
  llvm::SmallVector<RNGState *, 1> generators_;
};

/// A captured region. Holds all that its graph needs to run, and nothing else. Used by one call at
/// a time.
class GraphEntry {
public:
  struct Static {
    uint32_t storage;
    std::byte *address;
  };
  struct Copy {
    uint32_t storage;
    std::byte *staging;
    size_t bytes;
    GraphNodeId in, out; ///< invalid if it is not copied in, or not out
    std::byte *address;  ///< what the nodes name now
  };

  std::vector<KernelRef> kernels;
  std::vector<Static> statics;
  std::vector<Copy> copies;
  uint64_t copiedBytes = 0;
  std::vector<std::pair<GraphNodeId, std::string>> nodes; ///< first node of each step, and its op
  /// Launches that its cache has not counted yet.
  std::atomic<uint64_t> uses = 0;
  std::unique_ptr<Graph> graph; ///< outlives the exec
  std::unique_ptr<GraphExec> exec;

  /// The static input that is elsewhere than at capture, or null.
  const Static *findMoved(const Schedule &schedule, const Bases &bases) const;
  /// Points the copies at the call's buffers and launches; `stream` is not being captured.
  llvm::Error launch(Stream &stream, const Schedule &schedule, const Bases &bases);
};

/// Why a graph could not be built: which step it was, if it was one.
struct BuildFailure {
  std::optional<uint32_t> step;
  std::string message;
};

/// Builds the graph of `region` for a call with `bases` and `scalars`. Executes nothing. After an
/// error nothing is left behind; `failure` says which op was to blame. `check` proves the order of
/// nodes (OrderChecker.h).
llvm::Expected<GraphEntryRef> buildGraph(const DeviceRef &device, const Schedule &schedule,
                                         const ScheduledRegion &region, const Bases &bases,
                                         llvm::ArrayRef<Slot> scalars, bool check,
                                         BuildFailure &failure);

} // namespace rondo
