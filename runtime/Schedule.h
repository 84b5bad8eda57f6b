//===- Schedule.h - A trace as a flat list of steps -------------*- C++ -*-===//
//
// What a trace is lowered to: kernels in program order, the storages that they touch, and the
// ranges of steps that are regions. Nothing in it points to the trace.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/ErrorText.h"
#include "rondo/executors/Executor.h"
#include "rondo/executors/Value.h"
#include "rondo/ir/TracePair.h"
#include "rondo/runtime/Program.h"

#include <atomic>

namespace rondo {

/// Whose memory a storage lies in.
enum class Space : uint8_t {
  Argument,       ///< the caller's: argument `index`
  Saved,          ///< the caller's, saved by the forward: `index` into the saved tensors
  Arena,          ///< the lane's
  Slab,           ///< saved for backward
  Results,        ///< the caller gets it
  ForwardResults, ///< of a backward: what the caller got from the forward
};

/// One storage root. Steps are numbered from 0.
struct PlannedStorage {
  Space space = Space::Arena;
  unsigned index = 0;  ///< Argument, Saved; ForwardResults: the storage in the forward's schedule
  unsigned device = 0; ///< position among the program's devices
  uint64_t bytes = 0;
  uint64_t offset = 0;           ///< in the block of its space, unless Argument or Saved
  uint32_t begin = ~0u, end = 0; ///< first and last step that touches it; `begin` is 0 for what is
                                 ///< there from the start, `end` ~0 for what outlives the call
  int32_t takesOver = -1;        ///< storage whose bytes it has, and whose `end` is its `begin`
  bool isStatic = false;
  bool isWritten = false;  ///< an argument that steps write
  bool isForwards = false; ///< of a backward: in the slab, or among the results, of its forward
  std::string name;        ///< of the root value, for messages

  bool isCallers() const { return space == Space::Argument || space == Space::Saved; }
};

/// Where a value is: in a storage, in a slot of host scalars, or nowhere (absent, or missing).
struct Place {
  int32_t storage = -1, scalar = -1;
  int64_t byteOffset = 0;

  bool isTensor() const { return storage >= 0; }
  bool isScalar() const { return scalar >= 0; }
};

/// Bytes that a step touches.
struct Access {
  uint32_t storage;
  uint64_t begin, end; ///< within the storage
  bool isWrite;
  bool isDense = false; ///< all of them: the value has no gaps
};

struct Step {
  KernelRef kernel;
  llvm::SmallVector<Place, 4> operands;
  llvm::SmallVector<Place, 2> results;
  int32_t workspace = -1; ///< storage
  llvm::SmallVector<unsigned, 1> generators;
  llvm::SmallVector<Access, 4> accesses; ///< workspace included
  /// Resources that are no generator, by number: accesses of one, a write among them, keep order.
  llvm::SmallVector<std::pair<unsigned, bool>, 1> resources;
  unsigned device = 0;
  bool crossesDevices = false; ///< the host waits for it
  std::string text;            ///< `'add' op`, with location and module path, for messages
};

/// A storage whose address a graph cannot know once and for all: the caller's, or memory of
/// results.
struct RegionBuffer {
  uint32_t storage = 0;
  BufferPolicy policy = BufferPolicy::Patched;
  std::string why;        ///< the policy
  unsigned consumers = 0; ///< steps that touch it
  bool isRead = false;    ///< what was in it before the region
  bool isWritten = false;
  uint32_t staging = 0;  ///< of a copied one: a planned storage of the same size
  bool isChosen = false; ///< the policy, by costs: neither by the caller nor by what it is
};

/// What is found out about a region's graphs when they are used. Shared by all that is left of it
/// after splits.
struct RegionFacts {
  /// Where results lie could not be changed in a graph: each set of results needs one of its own.
  std::atomic<bool> isTiedToResults = false;
  /// Scalars, as positions in `scalars` (all above 63 as one), that could not be changed in a
  /// graph: each value needs one of its own.
  std::atomic<uint64_t> keyedScalars = 0;

  bool isKeyed(unsigned position) const { return keyedScalars >> std::min(position, 63u) & 1; }
  void setKeyed(unsigned position) { keyedScalars |= uint64_t(1) << std::min(position, 63u); }
};

/// One region.
struct ScheduledRegion {
  uint32_t begin = 0, end = 0; ///< steps, half open
  uint32_t uid = 0;            ///< in the graph's key
  unsigned id = 0, numOps = 0;
  CaptureDomainRef domain;
  std::shared_ptr<GraphCache> cache;
  bool isEager = false;                   ///< could not be captured
  std::vector<RegionBuffer> buffers;      ///< the caller's first, in the order of their first use
  llvm::SmallVector<unsigned, 2> scalars; ///< that steps take and no step of it makes
  bool usesSlab = false, usesResults = false, usesForwardResults = false;
  std::shared_ptr<RegionFacts> facts = std::make_shared<RegionFacts>();
};

/// A value that the caller can look at. The state of a generator counts as i64[2].
struct ResultPlan {
  Place place;
  LayoutRef layout; ///< of a tensor
  ScalarKind scalarKind = ScalarKind::I64;
};

/// A value that the forward saves: where it is at the end of the forward.
struct SavedPlan {
  SavedId id;
  std::string name; ///< of the argument of the backward
  ResultPlan value;
};

struct Schedule {
  Side side = Side::Forward;
  std::vector<Step> steps;
  std::vector<PlannedStorage> storages;
  std::vector<ScheduledRegion> regions; ///< in order, disjoint

  std::vector<ParameterInfo> inputs, results;
  std::vector<Place> inputPlaces; ///< of inputs
  std::vector<ResultPlan> resultPlans;
  std::vector<SavedPlan> saved; ///< forward: what goes into the SavedState
  /// Storages of the forward's arguments that are saved, in the order of Space::Saved's index.
  std::vector<uint32_t> savedArguments;
  bool savesResults = false; ///< forward: something that is saved lies in Space::Results
  /// Temporaries lie in Space::Results, too.
  bool hasTemporariesInResults = false;
  /// Scalars that are saved: scalar of the forward, in the order of the saved scalars.
  std::vector<unsigned> savedScalars;
  /// Backward: scalars that come from the saved state: (scalar here, position there).
  std::vector<std::pair<unsigned, unsigned>> scalarsFromSaved;

  std::vector<ScalarKind> scalarKinds;              ///< of host scalars, by number
  std::vector<std::pair<unsigned, Slot>> constants; ///< scalars with a fixed value
  std::vector<std::string> generators;              ///< named by steps
  std::vector<uint32_t> writtenInputs;              ///< storages of arguments that steps write
  /// By step, the planned storages whose bytes nothing touches after it; empty unless they are
  /// poisoned.
  std::vector<llvm::SmallVector<uint32_t, 2>> deadAfter;

  /// Bytes of each space's block, per device: filled in by planMemory.
  llvm::SmallVector<uint64_t, 1> arenaBytes, slabBytes, resultBytes;
  MemoryInfo memory; ///< of device 0
};

/// What handing over buffers costs on the first device, with or without the price of bytes; asked
/// only where a policy depends on it. May be null: then nothing costs anything.
using CostSource = std::function<llvm::Expected<BufferCosts>(bool withByte)>;

struct LoweringContext {
  llvm::ArrayRef<DeviceRef> devices;
  llvm::ArrayRef<const Executor *> executors;
  /// The forward's, when a backward is lowered.
  const Schedule *forward = nullptr;
  CostSource costs = nullptr;
  bool consumesSaved = false; ///< what is in the slab dies with the backward's last use of it
};

/// Lowers one trace of `pair`, without offsets. Errors: DiagnosticError, several.
llvm::Expected<Schedule> lower(const TracePair &pair, Side side, const LoweringContext &context);

/// The type of the tensor that stands for a value: of an RNG state, seed and base offset; none of
/// what is no tensor.
std::optional<TensorType> tensorTypeOf(const Type &type);
/// Of each storage, whether another takes over its bytes.
std::vector<bool> findTakenOver(const Schedule &schedule);
/// Fills in `deadAfter`; after planMemory, which says what is taken over.
void findDeadStorages(Schedule &schedule);

} // namespace rondo
