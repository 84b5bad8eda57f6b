//===- StepPlayer.h - Steps of a trace --------------------------*- C++ -*-===//

#pragma once

#include "Bench.h"

#include "rondo/ir/ImportFX.h"
#include "rondo/passes/Rematerialise.h"

#include <chrono>

namespace rondo {

/// Bytes of a step on one device, as its program planned them.
struct PlannedMemory {
  uint64_t arguments = 0; ///< of both sides, without what the forward saves
  uint64_t peak = 0;      ///< with these, what is saved, results and temporaries of both sides
  uint64_t needed = 0;    ///< greatest sum of live bytes, of the side where that is more
};
/// Of the specialisation called last, which has no symbols.
PlannedMemory plannedMemory(const Program &program, Device device);

/// Options of programs whose memory is measured: what handing over costs, which takes memory to
/// find out, is given. Measures it.
llvm::Expected<ProgramOptions> optionsWithCosts(const BenchSetup &setup);

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
  /// Destroys the program and makes it again; arguments stay.
  llvm::Error compileProgram();
  /// Of what is compiled from here on, by the usual passes and `rematerialise` in place of the
  /// pipeline: the bytes that the forward may save.
  void setBudget(int64_t bytes) { budget_ = bytes; }
  /// Of the program that was compiled last, if it had a budget.
  const RematerialiseReport &recomputation() const { return recomputation_; }

  const std::string &name() const { return name_; }
  const Program &program() const { return *program_; }

  /// Times of one step, in seconds: of the calls, and until all their work is done.
  struct Times {
    double calls = 0, done = 0;
    std::optional<double> device; ///< by the device's clock
  };
  /// `afterCall`, if given, is called when a call has returned, while its results are held.
  llvm::Expected<Times> step(bool isEager, llvm::function_ref<llvm::Error()> afterCall = nullptr);

  /// Destroys the program, makes it again and replays three steps, the first of which captures. The
  /// most bytes that this took of the device, on top of what was there: arguments, and what the
  /// libraries load once in a process, if a step has run before.
  llvm::Expected<uint64_t> measurePeak();

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

/// What steps of one kind took, in seconds by round.
struct StepTimes {
  std::vector<double> calls, done;
  std::vector<double> device; ///< empty if the device has no clock
};

/// Takes each of `steps` once in each of the setup's rounds, in another order each; fewer rounds if
/// they take longer than `longest`. A round before them warms up. By step.
llvm::Expected<std::vector<StepTimes>>
timeSteps(const BenchSetup &setup,
          llvm::ArrayRef<std::function<llvm::Expected<StepPlayer::Times>()>> steps,
          std::chrono::seconds longest = std::chrono::seconds(5));

/// Appends the medians of `times` beside those of `baseline`. `what` begins their names.
void pushTimes(const char *bench, const std::string &what, const StepTimes &times,
               const StepTimes &baseline, const char *baselineName, std::vector<Figure> &figures);

} // namespace rondo
