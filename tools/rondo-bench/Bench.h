//===- Bench.h - Benchmarks against a device's own API ----------*- C++ -*-===//

#pragma once

#include "Figures.h"
#include "Raw.h"

#include "rondo/executors/Executor.h"
#include "rondo/ir/OpRegistry.h"
#include "rondo/runtime/Program.h"

#include <limits>
#include <vector>

namespace rondo {

class CUDAGraphTransform;

/// What all benchmarks run on. Borrowed.
struct BenchSetup {
  const OpRegistry &registry;
  const DeviceRef &device;
  llvm::ArrayRef<const Executor *> executors;
  RawAPI &raw;
  unsigned rounds = 0; ///< in each of which everything that is compared has its turn
  unsigned calls = 0;  ///< of each in a round
  /// What has taken longer has no more turns, after that of the first round.
  double mostSeconds = std::numeric_limits<double>::infinity();
};

// Each appends its figures. Errors: of what it uses; what was measured before stays.

/// `replay`: Program::forward of one region of 64 small kernels with 150 static inputs and 4
/// results against a launch of its graph; allocations.
llvm::Error benchReplay(const BenchSetup &setup, std::vector<Figure> &figures);
/// `eager`: a kernel through its stream, and the ops of a program one by one, against the raw
/// launch.
llvm::Error benchEager(const BenchSetup &setup, std::vector<Figure> &figures);
/// `capture`: making and instantiating a graph, and the capture of a region, per node.
llvm::Error benchCapture(const BenchSetup &setup, std::vector<Figure> &figures);
/// `traces`: a step of the trace in file `path`, eager and replayed; fewer rounds if they take
/// long.
llvm::Error benchTrace(const BenchSetup &setup, llvm::StringRef path, std::vector<Figure> &figures);
/// `handover`: what an input adds to a call if it has moved since the one before, patched and
/// copied, by its size and by how many ops use it.
llvm::Error benchHandover(const BenchSetup &setup, std::vector<Figure> &figures);
/// `policies`: calls whose inputs move, patched, copied, and as policy `auto` chooses by what
/// measureBufferCosts says. Inputs have 1 KiB to `mostBytes`, a multiple of 4.
llvm::Error benchPolicies(const BenchSetup &setup, uint64_t mostBytes,
                          std::vector<Figure> &figures);
/// `memory`: the most memory that steps of the trace in file `path` take, beside what is planned.
llvm::Error benchMemory(const BenchSetup &setup, llvm::StringRef path,
                        std::vector<Figure> &figures);
/// `remat`: a step of the trace in file `path` for budgets of what its forward may save: saved,
/// work repeated, planned peak; on other devices than the host also the most memory that it takes,
/// and its time. Errors also: the trace has no backward.
llvm::Error benchRemat(const BenchSetup &setup, llvm::StringRef path, std::vector<Figure> &figures);

/// Of the model of `checkpoint`; each at least 1.
struct CheckpointSizes {
  unsigned blocks = 8, batch = 2048, width = 1024;
};
/// `checkpoint`: a step whose blocks are computed again in the backward, beside the same step
/// without: time, and memory beyond arguments and gradients; f32 and bf16, both forms of GELU.
llvm::Error benchCheckpoint(const BenchSetup &setup, const CheckpointSizes &sizes,
                            std::vector<Figure> &figures);

//===----------------------------------------------------------------------===//
// What they share
//===----------------------------------------------------------------------===//

/// One of several calls that are timed side by side.
struct Contestant {
  std::function<llvm::Error()> call;
  std::function<llvm::Error()> before = nullptr; ///< each turn; outside of the time
};

/// Seconds of one call of each: the median over the rounds of the mean of a turn. Turns are taken
/// in another order each round; `settle` waits for the device after each. Errors: the first of a
/// call.
llvm::Expected<std::vector<double>> medianTimes(const BenchSetup &setup,
                                                llvm::ArrayRef<Contestant> contestants,
                                                llvm::function_ref<llvm::Error()> settle);
double medianOf(std::vector<double> values);

/// A program of one region, with arguments in memory of the device.
class ChainProgram {
public:
  static constexpr unsigned numKernels = 64, numInputs = 150, numResults = 4;

  /// Errors: the region is not what it should be, and those of what is used.
  static llvm::Expected<std::unique_ptr<ChainProgram>> create(const BenchSetup &setup);

  Stream &stream() const { return *stream_; }
  Program &program() { return *program_; }
  /// A forward whose results are dropped; does not wait.
  llvm::Error call();
  llvm::Error settle() { return stream_->synchronize(); }
  /// The graph that a replay launches, and how many nodes it has. Errors: there is none.
  llvm::Expected<GraphExec *> exec(size_t &numNodes) const;
  /// Forgets the graph: the next call captures.
  void forgetGraph();

private:
  ChainProgram() = default;
  std::shared_ptr<GraphCache> cache() const;

  const CUDAGraphTransform *transform_ = nullptr; ///< the program's pipeline owns it
  DeviceRef device_;
  std::unique_ptr<Stream> stream_;
  std::optional<Program> program_;
  std::vector<Value> inputs_;
  llvm::SmallVector<Value> results_;
};

} // namespace rondo
