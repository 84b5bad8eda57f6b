//===- GraphBuilder.h - A region becomes a graph ----------------*- C++ -*-===//

#pragma once

#include "PatchTable.h"
#include "Schedule.h"

#include "llvm/ADT/DenseMap.h"

namespace rondo {

/// Where an argument of a call is.
struct BoundArgument {
  std::byte *address = nullptr; ///< null for a scalar
  LayoutRef layout;             ///< that fits; of a scalar, one that no tensor has
};

/// Storages that are elsewhere than their space says.
using Relocations = llvm::SmallDenseMap<uint32_t, std::byte *, 8>;

/// Where the bytes of a call are. Borrowed.
struct Bases {
  const Schedule *schedule = nullptr;
  llvm::ArrayRef<BoundArgument> arguments;
  llvm::ArrayRef<std::byte *> saved;
  // Per device.
  llvm::SmallVector<std::byte *, 1> arena, slab, results, forwardResults;
  llvm::ArrayRef<RNGState *> generators;
  Relocations relocations;

  std::byte *address(uint32_t storage) const;
};

/// The slots of one run of a step. Addresses in it are good for as long as the bases.
class StepArgs {
public:
  /// `staged` maps storages to those that take their place; `scalars` are those of the call.
  StepArgs(const Step &step, const Bases &bases, Slot *scalars,
           const llvm::DenseMap<uint32_t, uint32_t> *staged = nullptr);
  KernelArgs args() const { return {operands_, results_, workspace_, generators_}; }

private:
  llvm::SmallVector<Slot, 8> operands_;
  llvm::SmallVector<Slot, 4> results_;
  void *workspace_ = nullptr;
  llvm::SmallVector<RNGState *, 1> generators_;
};

/// What a graph is built for. Borrowed.
struct GraphRequest {
  const DeviceRef &device;
  const Schedule &schedule;
  const ScheduledRegion &region;
  const Bases &bases;
  llvm::ArrayRef<Slot> scalars;
  bool check = false; ///< prove the order of nodes (OrderChecker.h)
  /// Of a graph that is looked at and never run: the most bytes of a fill or copy.
  std::optional<size_t> maxBytes = std::nullopt;
};

/// Why a graph could not be built: which step it was, if it was one.
struct BuildFailure {
  std::optional<uint32_t> step;
  std::string message;
};

/// A captured region. Holds all that its graph needs to run, and nothing else. Used by one call at
/// a time.
class GraphEntry {
public:
  /// One whose address nodes name.
  struct Buffer {
    uint32_t storage;
    std::byte *address; ///< that they name now
  };
  /// A host scalar that nodes hold.
  struct Scalar {
    unsigned number;
    uint64_t bits; ///< that they hold now
  };
  /// A buffer that nodes copy to and from planned memory.
  struct Copy {
    uint32_t storage, staging; ///< `staging` is a planned storage
    size_t bytes;
    GraphNodeId in, out; ///< invalid if it is not copied in by a node of its own, or not out
    std::byte *address, *stagingAddress; ///< what the nodes name now
    unsigned moves = 0;                  ///< of the buffer, in watched launches
  };
  /// The node that copies several small buffers in.
  struct Gather {
    GraphNodeId node;
    llvm::SmallVector<unsigned, 8> copies; ///< in the order of the pieces
  };
  /// The nodes of a step begin with `node`.
  struct StepNodes {
    GraphNodeId node;
    uint32_t step;
    std::string text; ///< the op
  };

  std::vector<KernelRef> kernels;
  std::vector<Buffer> buffers;
  std::vector<Scalar> scalars;
  std::vector<Copy> copies;
  std::optional<Gather> gather;
  uint64_t copiedBytes = 0; ///< per replay
  std::vector<StepNodes> nodes;
  bool hasCalls = false;   ///< of nodes that libraries submitted by themselves
  bool isVerified = false; ///< PatchVerifier.h
  /// Launches that its cache has not counted yet.
  std::atomic<uint64_t> uses = 0;
  std::unique_ptr<Graph> graph; ///< outlives the exec
  std::unique_ptr<GraphExec> exec;

  // What the graph holds of a call: its buffers, and behind them its scalars, by number.

  size_t numSources() const { return buffers.size() + scalars.size(); }
  /// Of a source, as the call has it.
  uint64_t valueOf(unsigned source, const Bases &bases, llvm::ArrayRef<Slot> slots) const;
  /// As the nodes have it.
  uint64_t heldValue(unsigned source) const;
  /// Adds to `changed` the sources that the graph holds as they were in another call.
  void findChanged(const Bases &bases, llvm::ArrayRef<Slot> slots,
                   llvm::SmallVectorImpl<unsigned> &changed) const;

  /// Finds out which of its words are which sources, unless that is known: building it does, unless
  /// there is no memory. Executes nothing. Of the request, the region and the scalars are those
  /// that the graph was built for. Errors: the device's; the entry is as before.
  llvm::Error explain(const GraphRequest &request);
  bool isExplained() const { return bool(patches_); }
  /// After `explain`: why a source cannot be changed in the graph; empty if it can.
  llvm::StringRef problem(unsigned source) const { return patches_->problem(source); }
  /// The same for a change to what the call has: kernels may depend on the alignment of an address.
  llvm::StringRef problemOfChange(unsigned source, const Bases &bases,
                                  llvm::ArrayRef<Slot> slots) const;
  /// After `explain`: an address can be changed by multiples of this many bytes.
  uint64_t addressUnit() const { return addressUnit_; }
  /// After `explain`: lets nodes hold sources, none of which has a problem, as the call has them.
  /// Returns how many nodes were changed.
  llvm::Expected<size_t> patch(const Bases &bases, llvm::ArrayRef<Slot> slots,
                               llvm::ArrayRef<unsigned> sources);
  /// Captures the region anew where everything is now, into the same exec if the device can.
  llvm::Error rebuild(const GraphRequest &request, BuildFailure &failure);

  /// Points the copies at the call's buffers and launches; `stream` is not being captured.
  llvm::Error launch(Stream &stream, const Bases &bases);

  /// After each launch: adds to `settled` the storages of copied buffers that moved in few of the
  /// last `watchedLaunches`; nothing as long as there were not so many.
  void takeSettled(llvm::SmallVectorImpl<uint32_t> &settled);
  static constexpr unsigned watchedLaunches = 64, fewMoves = 4;

private:
  class Explainer;

  llvm::Error pointCopies(const Bases &bases);
  bool move(Copy &copy, const Bases &bases);

  unsigned launches_ = 0; ///< since copies were looked at
  std::optional<PatchTable> patches_;
  uint64_t addressUnit_ = DeviceAPI::minAlignment;
  llvm::SmallVector<PatchTable::Change, 4> changes_; ///< room to work in
};

/// Makes the graph of `entry`, without an exec. Errors name the op.
llvm::Error buildNodes(const GraphRequest &request, GraphEntry &entry, BuildFailure &failure);

/// Builds the graph of `region` for a call. Executes nothing. After an error nothing is left
/// behind; `failure` says which op was to blame.
llvm::Expected<GraphEntryRef> buildGraph(const GraphRequest &request, BuildFailure &failure);

} // namespace rondo
