//===- Program.h - A compiled pair ------------------------------*- C++ -*-===//
//
//   llvm::Expected<Program> program = compile(std::move(pair), {device}, {&host}, pipeline);
//   std::unique_ptr<Stream> stream = cantFail(device->createStream());
//   SavedState saved;
//   llvm::SmallVector<Value> loss, gradients;
//   cantFail(program->forward(*stream, inputs, loss, &saved));
//   cantFail(program->backward(*stream, std::move(saved), {tangent}, gradients));
//
// The first call of a region runs it eagerly, as that call, and captures it; later calls replay the
// graph. Results belong to the caller: no later call overwrites a result that is still held.
// Everything between arguments and results lies in memory that is planned once.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Executor.h"
#include "rondo/executors/Value.h"
#include "rondo/ir/TracePair.h"
#include "rondo/runtime/BufferCosts.h"
#include "rondo/runtime/Generators.h"
#include "rondo/runtime/GraphCache.h"
#include "rondo/runtime/MemoryInfo.h"
#include "rondo/runtime/RegionHooks.h"

#include <map>

namespace rondo {

class Block;
class ProgramImpl;

/// The caller's pipeline: makes of a pair one whose ops are claimed, with or without regions and
/// dels. Called by `compile`, or, for a pair with symbols, at the first call for each binding of
/// them (with buckets: to each bucket): then it has to specialise the pair first. Called by one
/// thread at a time.
using Pipeline =
    std::function<llvm::Expected<TracePair>(TracePair pair, const SymbolBindings &bindings)>;

/// What becomes of a region that cannot be captured.
enum class CaptureFailure : uint8_t {
  Error, ///< the call fails, naming the op
  Split, ///< the op runs eagerly, what comes before and after it becomes a region each
  Eager, ///< the region runs eagerly from then on
};

/// What happens when a static input's address is another than at capture.
enum class StaticMove : uint8_t {
  Follow, ///< the pointers in the graph are changed, or it is captured anew
  Error,  ///< the call fails before anything runs, naming the argument
};

struct ProgramOptions {
  /// Most calls in flight on different streams; each needs an arena and graphs of its own. Further
  /// streams wait for a lane.
  unsigned maxLanes = 1;
  CaptureFailure onCaptureFailure = CaptureFailure::Split;
  StaticMove onStaticMove = StaticMove::Follow;
  /// What policy `auto` decides by; absent: measured when the first pair that needs them compiles.
  std::optional<BufferCosts> costs;
  /// When the pointers of a graph are changed for the first time, the region first runs on copies
  /// of its buffers, eagerly and by the graph, and both must give the same bits and write nothing
  /// elsewhere: for tests and for executors that are new. An error of the call otherwise.
  bool verifyPatches = false;
  /// Sizes for which a pair with symbols is kept compiled, with memory and graphs, at least 1.
  /// Beyond it those go whose compilation costs least for how often they were called, unless a call
  /// or a SavedState uses them. If they are as many, and more than half of the last 64 forwards
  /// brought others (a storm of sizes, which is remarked upon), forwards with further ones push
  /// nothing out: they run eagerly and capture nothing until the same sizes come again.
  unsigned maxVariants = 64;
  /// Sizes that a symbol is compiled for, positive, ascending. A call with a size between them runs
  /// the next greater one: inputs are padded in memory of the program's, and results are views of
  /// what is not padding. So each bucket has one specialisation, and its regions one graph,
  /// whatever the sizes. An input that has its bucket's size is handed on as it is; of a padded one
  /// that is written, the caller's part is copied back. Ops do not know padding: a sum counts it,
  /// an index must be good, a write to another argument is done, generators advance by what the
  /// bucket draws.
  ///
  /// Errors of `compile`: the pair has a backward; an argument or a result has a size that is
  /// computed from the symbol (2*B); an argument with the symbol is static, with StaticMove::Error,
  /// or not on the first device. Errors of a call: a size above the greatest bucket; an output for
  /// a result with the symbol; a result that is a view of a part of an argument with the symbol.
  std::map<std::string, std::vector<int64_t>> buckets;
  /// What elements that are padding hold, by the input's name; 0 where it is not given. Floating
  /// point is rounded. Errors of `compile`: a name that no input with buckets has; a number that
  /// the dtype does not have, of 8-bit floats any but 0.
  std::map<std::string, double> padding;
  /// A backward may overwrite what its forward saved, once it needs it no more: less memory where
  /// much is saved, and read from the last to the first. backwardRetaining is an error; what
  /// savedValues gave is not to be read after the backward, nor the state used again if a backward
  /// failed; a graph of the caller's that a backward joined without its forward is to be launched
  /// once. Error of `compile` with `verifyPatches`, which runs regions twice.
  bool consumeSaved = false;
  /// What is called when regions are captured, and when they run for the first time.
  RegionHooks hooks;
  /// Generators to draw from; null: the program has its own.
  std::shared_ptr<Generators> generators;
  /// Fills planned memory with 0xFF when what was in it is dead, eagerly and in graphs: for tests.
  bool poison = false;
  /// Proves for every graph that any two nodes that touch the same bytes, one of them writing, are
  /// ordered by its edges; quadratic in the number of nodes. An error otherwise.
  bool checkGraphs = false;
};

/// One argument or result of a trace, as the caller sees it.
struct ParameterInfo {
  std::string name; ///< of the value
  std::string path; ///< in the user's model; may be empty
  Type type = ScalarKind::I64;
  ValueTags tags = ValueTags::None;
  bool isMissing = false; ///< a result that is never there (no gradient)
};

/// A buffer of the caller's that a region uses.
struct BufferInfo {
  std::string name; ///< of the value
  BufferPolicy policy = BufferPolicy::Patched;
  std::string why; ///< who chose the policy, or what it was chosen by
  uint64_t bytes = 0;
  unsigned consumers = 0; ///< ops that use it
  bool isWritten = false;
};

/// What became of one region.
struct RegionInfo {
  Side side = Side::Forward;
  unsigned id = 0; ///< the attribute `region`
  unsigned numOps = 0;
  std::vector<BufferInfo> buffers;
  uint64_t copiedBytes = 0; ///< per replay, in and out

  unsigned count(BufferPolicy policy) const;
};

/// Values that a forward saved for its backward. Moved, not copied. Dropping it gives the memory
/// back, in stream order. May outlive the program. One thread at a time.
class SavedState {
public:
  SavedState();
  SavedState(SavedState &&) noexcept;
  SavedState &operator=(SavedState &&) noexcept;
  ~SavedState();

  /// Was it filled by a forward, and not consumed since?
  bool isValid() const { return bool(block_); }

private:
  friend class ProgramImpl;
  llvm::IntrusiveRefCntPtr<Block> block_;
};

/// A value that a forward saved.
struct SavedValue {
  std::string name; ///< of the argument of the backward
  Value value;
};

/// A pair made ready to run. May be called from several threads. Destroying it waits for its calls
/// that are in flight; where a capture forbids to wait, what they use is destroyed when that has
/// ended. Results and SavedStates may outlive it; what it was compiled from need not live, except
/// that executors must outlive it if the pair has symbols.
class Program {
public:
  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;
  ~Program();

  bool hasBackward() const;
  /// Arguments that the caller gives, in order: of the backward, those that are not saved.
  llvm::ArrayRef<ParameterInfo> inputs(Side side = Side::Forward) const;
  /// Results that the caller gets, in order.
  llvm::ArrayRef<ParameterInfo> results(Side side = Side::Forward) const;

  /// Submits the forward to `stream`, which is of the first device, and returns without waiting
  /// unless an op does. `inputs` are in the order of inputs(); the state of a generator is given,
  /// and got, as a tensor i64[2] of seed and base offset. `results` is replaced; an in-place write
  /// to an input reaches the caller's tensor, and a result that is an input, or a view of one,
  /// shares its storage. With `saved` what the backward needs is kept there; without, or if the
  /// pair has no backward, it is dropped.
  ///
  /// While `stream` is being captured the ops go into that capture, and the program's graphs are
  /// left alone. What the call allocates, unless an earlier call on `stream` left it idle, the
  /// capture has to allow. The caller's graph, its execs, and graphs that these are launched into
  /// keep what they use of the program: kernels, generators, and memory, which nothing else uses
  /// until they are gone, but for the arena: the caller orders launches with the program's calls.
  /// So the program may be destroyed before, even during the capture. The caller keeps the
  /// arguments, and completes launches by native handles before the exec goes. A graph that
  /// somebody else's capture makes, whose end nobody here sees, has to go before the program.
  ///
  /// Errors, before anything runs: DiagnosticError that names the argument: a wrong number, kind,
  /// dtype, shape, strides or device, a null tensor, one that overlaps another that is written, one
  /// whose address is not a multiple of 16 and that is static. Also the device's errors; then
  /// results are empty.
  llvm::Error forward(Stream &stream, llvm::ArrayRef<Value> inputs,
                      llvm::SmallVectorImpl<Value> &results, SavedState *saved = nullptr);
  /// The same, but a result that `outputs` holds a tensor for is written to it and is that tensor:
  /// nothing is copied. `outputs` has one for each result, null for memory of the program's. Errors
  /// also, before anything runs, naming the result: an output of another dtype, shape, strides or
  /// device, at an address that is not a multiple of 16, that shares memory with an argument,
  /// something saved, or another output; for a result that is missing, a scalar, an argument, or a
  /// part of a larger value.
  llvm::Error forwardInto(Stream &stream, llvm::ArrayRef<Value> inputs,
                          llvm::ArrayRef<Tensor> outputs, llvm::SmallVectorImpl<Value> &results,
                          SavedState *saved = nullptr);
  /// The same as forward for the backward, whose inputs are the incoming gradients. Consumes
  /// `saved`; the memory goes back when the work is done. Errors also: `saved` is empty, consumed,
  /// or of another program.
  llvm::Error backward(Stream &stream, SavedState &&saved, llvm::ArrayRef<Value> inputs,
                       llvm::SmallVectorImpl<Value> &results);
  llvm::Error backwardInto(Stream &stream, SavedState &&saved, llvm::ArrayRef<Value> inputs,
                           llvm::ArrayRef<Tensor> outputs, llvm::SmallVectorImpl<Value> &results);
  /// As backward, but `saved` can be used again. Also an error with `consumeSaved`.
  llvm::Error backwardRetaining(Stream &stream, SavedState &saved, llvm::ArrayRef<Value> inputs,
                                llvm::SmallVectorImpl<Value> &results);

  /// What `saved` holds, to look at after the work on the forward's stream. Tensors share the saved
  /// memory, which is not used again before they are gone. Errors: as backward.
  llvm::Expected<std::vector<SavedValue>> savedValues(const SavedState &saved) const;

  /// Runs everything eagerly from now on, or replays again. Both give the same bits.
  void setEager(bool eager);
  /// Gives back what no call and no caller uses: idle slabs and sets of results and their graphs.
  /// Waits for the work in flight; where a capture forbids that, memory comes back when it has
  /// ended.
  void trim();

  const std::shared_ptr<Generators> &generators() const;
  /// Sum over the caches that the program's regions use, of all programs that share them.
  CacheCounters counters() const;
  /// Every graph that these caches hold.
  std::vector<EntryStatistics> graphs() const;
  /// Bytes that were copied and filled because sizes lay between buckets.
  uint64_t paddedBytes() const;
  /// Calls `visit` with every graph in those caches; see GraphCache::forEachGraph.
  void forEachGraph(llvm::function_ref<void(Graph &, GraphExec &)> visit) const;
  /// Of the specialisation called last. Empty for a pair with symbols before its first call.
  std::vector<RegionInfo> regions() const;
  MemoryInfo memory(Side side) const;
  MemoryPlanInfo memoryPlan(Side side) const;
  /// Remarks, such as why a region was split; those of one region come once, and so does the
  /// warning of a storm of sizes.
  std::vector<std::string> takeRemarks();

private:
  friend llvm::Expected<Program> compile(TracePair, llvm::ArrayRef<DeviceRef>,
                                         llvm::ArrayRef<const Executor *>, Pipeline,
                                         ProgramOptions);
  explicit Program(std::unique_ptr<ProgramImpl> impl);
  std::unique_ptr<ProgramImpl> impl_;
};

/// Compiles `pair`: runs `pipeline`, makes the kernels and plans the memory. `devices` are those
/// whose values occur in the pair, the one whose streams calls name first; ops that are on another
/// one run eagerly, and the host waits for them. `executors` are those that claims name. Errors: of
/// the pipeline; DiagnosticErrors located at the op: no claim, a claim by an executor that is not
/// given, a value on a device that is not given, a kernel that cannot be made.
llvm::Expected<Program> compile(TracePair pair, llvm::ArrayRef<DeviceRef> devices,
                                llvm::ArrayRef<const Executor *> executors, Pipeline pipeline,
                                ProgramOptions options = {});

} // namespace rondo
