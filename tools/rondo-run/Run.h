//===- Run.h - A trace, run eagerly and replayed ----------------*- C++ -*-===//

#pragma once

#include "rondo/executors/RecordedValues.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/runtime/Program.h"

namespace rondo {

struct RunOptions {
  std::string valuesPath; ///< empty: TRACE.safetensors if it is there, else random arguments
  std::string prepare;    ///< passes that run first, on the device
  std::string pipeline;   ///< passes that end with claims
  unsigned steps = 10;    ///< of each kind, after the first
  uint64_t seed = 0;      ///< of random arguments and of generators
  bool useGraphs = true;
  bool checkGraphs = false; ///< ProgramOptions::checkGraphs and poison
  bool showProgress = false;
};

/// How far results are from recorded ones: ‖a − b‖ / ‖b‖.
struct Errors {
  double loss = 0;   ///< greatest over the results of the forward
  double other = 0;  ///< greatest over gradients, saved values and written arguments
  std::string worst; ///< what `other` is of
  unsigned numCompared = 0;
  unsigned numMissing = 0; ///< results that were not recorded
};

/// What a run showed.
struct RunReport {
  std::string name;
  bool isReducedPrecision = false;     ///< some argument or result has fewer bits than f32
  unsigned numOps[2] = {0, 0};         ///< that launch something, per side, regions included
  unsigned numCapturedOps[2] = {0, 0}; ///< of them, in regions
  std::vector<RegionInfo> regions;
  CacheCounters counters;
  std::vector<EntryStatistics> graphs;
  uint64_t copiedPerStep = 0;   ///< bytes that the replay of one step copies
  std::optional<Errors> errors; ///< if values were recorded; the worst of eager and replayed
  /// Replayed results have the bits of eager ones; nothing if nothing was replayed.
  std::optional<bool> isReplayEqual;
  uint64_t peakBytes = 0; ///< on the device, in a step
  /// What such a step needs: arguments, outputs, saved values and the greatest sum of the bytes of
  /// live temporaries.
  uint64_t lowerBound = 0;
  MemoryInfo memory[2];
  double eagerSeconds = 0, replaySeconds = 0; ///< medians, of a step
  std::vector<std::string> remarks;
};

/// The memory plans of a trace.
struct PlanReport {
  std::string name;
  MemoryPlanInfo forward;
  std::optional<MemoryPlanInfo> backward;
};

/// Loads and compiles the trace in file `path` for `device`, and runs nothing. Errors: as those of
/// runTrace; sizes that are symbols.
llvm::Expected<PlanReport> planTrace(llvm::StringRef path, const RunOptions &options,
                                     const OpRegistry &registry,
                                     llvm::ArrayRef<const Executor *> executors,
                                     const DeviceRef &device);

/// Loads, compiles and runs the trace in file `path` on `device`, and on the host where it has
/// values there. `executors` are asked for every op in this order. Errors: located, as those of
/// what is used.
llvm::Expected<RunReport> runTrace(llvm::StringRef path, const RunOptions &options,
                                   const OpRegistry &registry,
                                   llvm::ArrayRef<const Executor *> executors,
                                   const DeviceRef &device);

} // namespace rondo
