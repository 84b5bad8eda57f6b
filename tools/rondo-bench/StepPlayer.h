//===- StepPlayer.h - Steps of a trace --------------------------*- C++ -*-===//

#pragma once

#include "Bench.h"

#include "rondo/ir/ImportFX.h"

namespace rondo {

/// A program of a trace, with arguments that stay where they are.
class StepPlayer {
public:
  /// The passes that traces are run with.
  static constexpr const char *usualPipeline = "dce,cse,canonicalise,execution,cuda-graph,del";

  /// `options` and `pipeline` are for every program that it compiles.
  explicit StepPlayer(const BenchSetup &setup, ProgramOptions options = {},
                      std::string pipeline = usualPipeline)
      : setup_(setup), options_(std::move(options)), pipeline_(std::move(pipeline)) {}

  /// Reads the trace in file `path`, compiles it, and makes its arguments: those that were
  /// recorded, if they are beside it, else random ones.
  llvm::Error load(llvm::StringRef path);
  /// The same of `pair`, whose tensors are on the host. Arguments are random: between plus and
  /// minus what `scaleOf` says of them.
  llvm::Error load(TracePair pair, llvm::function_ref<double(const ParameterInfo &)> scaleOf);
  /// Destroys the program; arguments stay.
  void dropProgram() { program_.reset(); }
  /// Makes it again.
  llvm::Error compileProgram();

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
  llvm::Expected<TracePair> runPasses(TracePair pair) const;
  llvm::Error fillArguments(llvm::StringRef path, llvm::ArrayRef<FXOutput> outputs);
  llvm::Error submit(llvm::function_ref<llvm::Error()> afterCall);

  const BenchSetup &setup_;
  const ProgramOptions options_;
  const std::string pipeline_;
  std::string name_;
  std::optional<TracePair> pair_;
  std::vector<DeviceRef> devices_;
  std::unique_ptr<Stream> stream_;
  std::optional<Program> program_;
  std::vector<Value> arguments_[2];
  llvm::SmallVector<Value> results_[2];
};

} // namespace rondo
