//===- Run.cpp - A trace, run eagerly and replayed ------------------------===//
//
// A step is a forward and, if there is one, its backward. Arguments have the same values in every
// step, whatever the step before wrote; those that are not static are elsewhere each time. The
// first step captures, the following ones replay, and others run eagerly; every one is compared
// with what was recorded, and the replayed ones bit by bit with an eager one.
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "support/Arguments.h"
#include "support/Devices.h"
#include "support/Files.h"

#include "rondo/host/HostDevice.h"
#include "rondo/passes/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

#include <chrono>

using namespace rondo;

namespace {

/// The results of a step, in host memory, by what they are.
struct StepResults {
  struct Item {
    std::string text;
    Tensor tensor; ///< row-major, on the host
    const Tensor *recorded = nullptr;
    bool isLoss = false;
  };
  std::vector<Item> items;
};

class Runner {
public:
  Runner(llvm::StringRef path, const RunOptions &options, const OpRegistry &registry,
         llvm::ArrayRef<const Executor *> executors, const DeviceRef &device)
      : path_(path.str()), options_(options), registry_(registry), executors_(executors),
        device_(device) {}

  llvm::Expected<RunReport> run() {
    if (llvm::Error error = load())
      return error;
    if (llvm::Error error = compileProgram())
      return error;
    if (llvm::Error error = runSteps())
      return error;
    report_.regions = program_->regions();
    report_.counters = program_->counters();
    report_.graphs = program_->graphs();
    report_.memory[0] = program_->memory(Side::Forward);
    report_.memory[1] = program_->memory(Side::Backward);
    report_.lowerBound = stepBound();
    report_.remarks = program_->takeRemarks();
    return std::move(report_);
  }

  llvm::Expected<PlanReport> plan() {
    if (llvm::Error error = load())
      return error;
    llvm::SmallVector<std::string, 4> symbols;
    for (ValueId argument : pair_->forward().arguments())
      pair_->forward().type(argument).collectSymbols(symbols);
    if (!symbols.empty())
      return makeError(report_.name + ": size '" + symbols.front() +
                       "' is a symbol: memory is planned when a call gives it a value");
    if (llvm::Error error = compileProgram())
      return error;
    PlanReport plan{report_.name, program_->memoryPlan(Side::Forward), {}};
    if (program_->hasBackward())
      plan.backward = program_->memoryPlan(Side::Backward);
    return plan;
  }

private:
  llvm::Error load() {
    std::vector<FXOutput> outputs;
    llvm::Expected<TracePair> pair = readPair(path_, InputFormat::Auto, registry_, &outputs);
    if (!pair)
      return pair.takeError();
    llvm::Expected<TracePair> placed = placeOn(device_->device(), std::move(*pair));
    if (!placed)
      return placed.takeError();
    llvm::Expected<TracePair> prepared = runPasses(std::move(*placed), options_.prepare);
    if (!prepared)
      return prepared.takeError();
    pair_ = std::move(*prepared);
    devices_ = devicesOf(*pair_, device_);
    report_.name = pair_->name().str();

    std::string valuesPath = options_.valuesPath;
    if (valuesPath.empty()) {
      llvm::SmallString<128> beside(path_);
      llvm::sys::path::replace_extension(beside, ".safetensors");
      if (!llvm::sys::fs::exists(beside))
        return llvm::Error::success();
      valuesPath = beside.str().str();
    }
    llvm::Expected<RecordedValues> values = RecordedValues::open(valuesPath, outputs);
    if (!values)
      return values.takeError();
    values_ = std::move(*values);
    report_.errors.emplace();
    return llvm::Error::success();
  }

  llvm::Expected<TracePair> runPasses(TracePair pair, llvm::StringRef pipeline) const {
    PassRegistry passes;
    std::vector<const ClaimSource *> sources(executors_.begin(), executors_.end());
    if (llvm::Error error = registerPasses(passes, sources))
      return error;
    PassManager manager;
    if (llvm::Error error = passes.parsePipeline(pipeline, manager))
      return error;
    return manager.run(std::move(pair));
  }

  llvm::Error compileProgram() {
    auto pipeline = [this](TracePair pair,
                           const SymbolBindings &bindings) -> llvm::Expected<TracePair> {
      if (llvm::Error error =
              bindings.empty() ? llvm::Error::success() : specialise(pair, bindings))
        return error;
      llvm::Expected<TracePair> result = runPasses(std::move(pair), options_.pipeline);
      if (result)
        countOps(*result);
      return result;
    };
    ProgramOptions options;
    options.checkGraphs = options.poison = options_.checkGraphs;
    llvm::Expected<Program> program =
        compile(std::move(*pair_), devices_, executors_, pipeline, options);
    if (!program)
      return program.takeError();
    program_.emplace(std::move(*program));
    for (Side side : {Side::Forward, Side::Backward})
      for (llvm::ArrayRef<ParameterInfo> infos : {program_->inputs(side), program_->results(side)})
        for (const ParameterInfo &info : infos)
          if (const TensorType *type = info.type.asTensor())
            report_.isReducedPrecision |= isFloat(type->dtype) && dtypeSize(type->dtype) < 4;
    llvm::Expected<std::unique_ptr<Stream>> stream = device_->createStream();
    if (!stream)
      return stream.takeError();
    stream_ = std::move(*stream);
    return llvm::Error::success();
  }

  void countOps(const TracePair &pair) {
    for (Side side : {Side::Forward, Side::Backward}) {
      if (side == Side::Backward && !pair.hasBackward())
        continue;
      const Trace &trace = pair.trace(side);
      forEachOp(trace, [&](const Op &op) {
        if (!op.spec().launches || !op.bodies().empty())
          return;
        ++report_.numOps[unsigned(side)];
        if (op.body() != Trace::topBody())
          ++report_.numCapturedOps[unsigned(side)];
      });
    }
  }

  //===--- Steps ----------------------------------------------------------===//

  llvm::Error runSteps() {
    StepResults eager;
    std::vector<double> eagerTimes, replayTimes;
    for (bool isEager : {false, true}) {
      if (!isEager && !options_.useGraphs)
        continue;
      program_->setEager(isEager);
      for (unsigned i = 0; i <= options_.steps; ++i) {
        showProgress(isEager ? "eager" : "replay", i);
        bool isLast = i == options_.steps;
        StepResults results;
        CacheCounters before = program_->counters();
        llvm::Expected<double> time = runStep(results, isLast && isEager == !options_.useGraphs);
        if (!time)
          return time.takeError();
        compare(results);
        if (i > 0)
          (isEager ? eagerTimes : replayTimes).push_back(*time);
        if (isLast && !isEager) {
          report_.copiedPerStep = program_->counters().copiedBytes - before.copiedBytes;
          replayed_ = std::move(results);
        } else if (isLast) {
          eager = std::move(results);
        }
      }
    }
    if (options_.useGraphs)
      report_.isReplayEqual = haveEqualBits(eager, replayed_);
    report_.eagerSeconds = median(eagerTimes);
    report_.replaySeconds = median(replayTimes);
    return llvm::Error::success();
  }

  /// One step; the time that the calls took, in seconds, with the wait for their work.
  llvm::Expected<double> runStep(StepResults &results, bool measurePeak) {
    using Clock = std::chrono::steady_clock;
    // A state that generators of earlier steps have not changed.
    if (llvm::Error error = seedGenerators())
      return error;
    for (Side side : {Side::Forward, Side::Backward})
      if (llvm::Error error = fillArguments(side))
        return error;
    if (measurePeak)
      device_->resetPeak();

    SavedState saved;
    auto begin = Clock::now();
    if (llvm::Error error = program_->forward(*stream_, arguments_[0], forward_, &saved))
      return error;
    if (llvm::Error error = stream_->synchronize())
      return error;
    std::chrono::duration<double> time = Clock::now() - begin;
    if (llvm::Error error = collectForward(arguments_[0], saved, results))
      return error;
    if (program_->hasBackward()) {
      begin = Clock::now();
      if (llvm::Error error =
              program_->backward(*stream_, std::move(saved), arguments_[1], backward_))
        return error;
      if (llvm::Error error = stream_->synchronize())
        return error;
      time += Clock::now() - begin;
    }
    if (measurePeak)
      report_.peakBytes = device_->memoryUse().peakBytes;
    if (llvm::Error error = collectBackward(results))
      return error;
    forward_.clear();
    backward_.clear();
    return time.count();
  }

  llvm::Error seedGenerators() {
    return program_->generators()->set(*stream_, "default", RNGState{options_.seed, 0});
  }

  llvm::Error fillArguments(Side side) {
    std::vector<Value> &arguments = arguments_[unsigned(side)];
    if (side == Side::Backward && !program_->hasBackward())
      return llvm::Error::success();
    return values_ ? fillRecorded(*program_, side, *values_, devices_, *stream_, arguments)
                   : fillRandom(*program_, side, options_.seed, devices_, *stream_, arguments);
  }

  //===--- Results --------------------------------------------------------===//

  llvm::Error collect(StepResults &results, const Value &value, std::string text,
                      const Tensor *recorded, bool isLoss) {
    const Tensor *tensor = value.asTensor();
    if (!tensor)
      return llvm::Error::success();
    llvm::Expected<Tensor> copy = copyTo(resultMemory_, *tensor, *stream_);
    if (!copy)
      return copy.takeError();
    results.items.push_back({std::move(text), std::move(*copy), recorded, isLoss});
    return llvm::Error::success();
  }

  llvm::Error collectForward(llvm::ArrayRef<Value> inputs, const SavedState &saved,
                             StepResults &results) {
    for (unsigned i = 0; i < forward_.size(); ++i)
      if (llvm::Error error = collect(results, forward_[i], "result " + std::to_string(i),
                                      values_ ? values_->result(Side::Forward, i) : nullptr, true))
        return error;
    for (unsigned i = 0; values_ && i < inputs.size(); ++i) {
      const std::string &name = program_->inputs()[i].name;
      if (const Tensor *recorded = values_->mutated(name))
        if (llvm::Error error =
                collect(results, inputs[i], "argument '" + name + "'", recorded, false))
          return error;
    }
    if (!saved.isValid())
      return llvm::Error::success();
    llvm::Expected<std::vector<SavedValue>> values = program_->savedValues(saved);
    if (!values)
      return values.takeError();
    for (const SavedValue &value : *values)
      if (llvm::Error error = collect(results, value.value, "saved '" + value.name + "'",
                                      values_ ? values_->saved(value.name) : nullptr, false))
        return error;
    return llvm::Error::success();
  }

  llvm::Error collectBackward(StepResults &results) {
    for (unsigned i = 0; i < backward_.size(); ++i)
      if (llvm::Error error =
              collect(results, backward_[i], "gradient " + std::to_string(i),
                      values_ ? values_->result(Side::Backward, i) : nullptr, false))
        return error;
    return llvm::Error::success();
  }

  void compare(const StepResults &results) {
    if (!report_.errors)
      return;
    Errors &errors = *report_.errors;
    errors.numCompared = errors.numMissing = 0;
    for (const StepResults::Item &item : results.items) {
      if (!item.recorded) {
        ++errors.numMissing;
        continue;
      }
      ++errors.numCompared;
      double error = relativeError(item.tensor, *item.recorded);
      if (item.isLoss) {
        errors.loss = std::max(errors.loss, error);
      } else if (error > errors.other || errors.worst.empty()) {
        errors.other = std::max(errors.other, error);
        errors.worst = item.text;
      }
    }
  }

  static bool haveEqualBits(const StepResults &a, const StepResults &b) {
    return a.items.size() == b.items.size() &&
           llvm::all_of(llvm::zip(a.items, b.items), [](const auto &both) {
             const Tensor &x = std::get<0>(both).tensor, &y = std::get<1>(both).tensor;
             return x.extentBytes() == y.extentBytes() &&
                    std::equal(x.data(), x.data() + x.extentBytes(), y.data());
           });
  }

  //===--- Figures --------------------------------------------------------===//

  /// Arguments and outputs of both sides, and the temporaries of the side that needs more.
  uint64_t stepBound() const {
    const MemoryInfo &forward = report_.memory[0], &backward = report_.memory[1];
    uint64_t outputs = forward.slab + forward.results + backward.results;
    return forward.arguments + tangentBytes() + outputs +
           std::max(forward.temporaries, backward.temporaries);
  }

  uint64_t tangentBytes() const {
    uint64_t bytes = 0;
    if (!program_->hasBackward())
      return bytes;
    for (const ParameterInfo &info : program_->inputs(Side::Backward))
      if (const TensorType *type = info.type.asTensor())
        bytes +=
            stridedExtentBytes(type->dtype, constantDims(type->shape), constantDims(type->strides));
    return bytes;
  }

  static double median(std::vector<double> values) {
    if (values.empty())
      return 0;
    llvm::sort(values);
    return values[values.size() / 2];
  }

  void showProgress(llvm::StringRef what, unsigned step) {
    using Clock = std::chrono::steady_clock;
    if (!options_.showProgress || Clock::now() - lastProgress_ < std::chrono::seconds(1))
      return;
    lastProgress_ = Clock::now();
    llvm::errs() << report_.name << ": " << what << " step " << step << " of " << options_.steps
                 << '\n';
  }

  const std::string path_;
  const RunOptions &options_;
  const OpRegistry &registry_;
  const llvm::ArrayRef<const Executor *> executors_;
  const DeviceRef &device_;
  std::vector<DeviceRef> devices_;
  /// Copies of results do not count as the program's memory.
  const DeviceRef resultMemory_ = createHostDevice();
  std::optional<TracePair> pair_;
  std::optional<RecordedValues> values_;
  std::optional<Program> program_;
  std::unique_ptr<Stream> stream_;
  std::vector<Value> arguments_[2];
  llvm::SmallVector<Value> forward_, backward_;
  StepResults replayed_;
  RunReport report_;
  std::chrono::steady_clock::time_point lastProgress_ = std::chrono::steady_clock::now();
};

} // namespace

llvm::Expected<RunReport> rondo::runTrace(llvm::StringRef path, const RunOptions &options,
                                          const OpRegistry &registry,
                                          llvm::ArrayRef<const Executor *> executors,
                                          const DeviceRef &device) {
  return Runner(path, options, registry, executors, device).run();
}

llvm::Expected<PlanReport> rondo::planTrace(llvm::StringRef path, const RunOptions &options,
                                            const OpRegistry &registry,
                                            llvm::ArrayRef<const Executor *> executors,
                                            const DeviceRef &device) {
  return Runner(path, options, registry, executors, device).plan();
}
