//===- StepPlayer.h - Steps of a trace --------------------------*- C++ -*-===//

#pragma once

#include "Bench.h"

#include "rondo/ir/ImportFX.h"
#include "rondo/passes/Rematerialise.h"

namespace rondo {

/// Bytes of a step on one device, as its program planned them.
struct PlannedMemory {
  uint64_t arguments = 0; ///< of both sides, without what the forward saves
  uint64_t peak = 0;      ///< with these, what is saved, results and temporaries of both sides
  uint64_t needed = 0;    ///< greatest sum of live bytes, of the side where that is more
};
/// Of the specialisation called last, which has no symbols.
PlannedMemory plannedMemory(const Program &program, Device device);

/// A program of a trace, with arguments that stay where they are.
class StepPlayer {
public:
  /// The passes that traces are run with.
  static constexpr const char *usualPipeline = "dce,cse,canonicalise,execution,cuda-graph,del";

  /// `options` and `pipeline` are for every program that it compiles.
  explicit StepPlayer(const BenchSetup &setup, ProgramOptions options = {},
                      std::string pipeline = usualPipeline)
      : setup_(setup), options_(std::move(options)), pipeline_(std::move(pipeline)) {}

  /// Reads the trace in file `path` and compiles it, for a look at the program.
  llvm::Error read(llvm::StringRef path);
  /// What `read` does; then makes its arguments: those that were recorded, if they are beside it,
  /// else random ones.
  llvm::Error load(llvm::StringRef path);
  /// The same of `pair`, whose tensors are on the host. Arguments are random: between plus and
  /// minus what `scaleOf` says of them.
  llvm::Error load(TracePair pair, llvm::function_ref<double(const ParameterInfo &)> scaleOf);
  /// Destroys the program; arguments stay.
  void dropProgram() { program_.reset(); }
  /// Makes it again.
  llvm::Error compileProgram();
  /// Of what is compiled from here on, by the usual passes and `rematerialise`: the bytes that the
  /// forward may save. None: as many as it does.
  void setBudget(std::optional<int64_t> bytes) { budget_ = bytes; }
  /// Of the program that was compiled last, if it had a budget.
  const RematerialiseReport &recomputation() const { return recomputation_; }

  const std::string &name() const { return name_; }
  const Program &program() const { return *program_; }
  const std::vector<Value> &arguments(Side side) const { return arguments_[unsigned(side)]; }

  /// Times of one step, in seconds: of the calls, and until all their work is done.
  struct Times {
    double calls = 0, done = 0;
    std::optional<double> device; ///< by the device's clock
  };
  /// `afterCall`, if given, is called when a call has returned, while its results are held.
  llvm::Expected<Times> step(bool isEager, llvm::function_ref<llvm::Error()> afterCall = nullptr);

private:
  /// Compiles `pair`, placed on the device.
  llvm::Error compilePlaced(TracePair pair);
  llvm::Error makeStream();
  llvm::Expected<TracePair> runPasses(TracePair pair);
  llvm::Error fillArguments(llvm::StringRef path);
  llvm::Error submit(llvm::function_ref<llvm::Error()> afterCall);

  const BenchSetup &setup_;
  const ProgramOptions options_;
  const std::string pipeline_;
  std::string name_;
  std::optional<TracePair> pair_;
  std::vector<FXOutput> outputs_; ///< of the trace as it was recorded
  std::optional<int64_t> budget_;
  RematerialiseReport recomputation_;
  std::vector<DeviceRef> devices_;
  std::unique_ptr<Stream> stream_;
  std::optional<Program> program_;
  std::vector<Value> arguments_[2];
  llvm::SmallVector<Value> results_[2];
};

} // namespace rondo
