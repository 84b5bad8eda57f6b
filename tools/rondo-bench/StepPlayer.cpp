//===- StepPlayer.cpp - Steps of a trace ----------------------------------===//

#include "StepPlayer.h"

#include "MemoryWatch.h"

#include "support/Arguments.h"
#include "support/Devices.h"
#include "support/Files.h"

#include "rondo/ir/Liveness.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/Passes.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace rondo;

llvm::Error StepPlayer::read(llvm::StringRef path) {
  outputs_.clear();
  llvm::Expected<TracePair> read = readPair(path, InputFormat::Auto, setup_.registry, &outputs_);
  if (!read)
    return read.takeError();
  return compilePlaced(std::move(*read));
}

llvm::Error StepPlayer::load(llvm::StringRef path) {
  if (llvm::Error error = read(path))
    return error;
  if (llvm::Error error = makeStream())
    return error;
  return fillArguments(path);
}

llvm::Error StepPlayer::load(TracePair pair,
                             llvm::function_ref<double(const ParameterInfo &)> scaleOf) {
  if (llvm::Error error = compilePlaced(std::move(pair)))
    return error;
  if (llvm::Error error = makeStream())
    return error;
  for (Side side : {Side::Forward, Side::Backward})
    if (side == Side::Forward || program_->hasBackward())
      if (llvm::Error error = fillRandom(*program_, side, 0, devices_, *stream_,
                                         arguments_[unsigned(side)], scaleOf))
        return error;
  return llvm::Error::success();
}

llvm::Error StepPlayer::compilePlaced(TracePair unplaced) {
  llvm::Expected<TracePair> pair = placeOn(setup_.device->device(), std::move(unplaced));
  if (!pair)
    return pair.takeError();
  name_ = pair->name().str();
  devices_ = devicesOf(*pair, setup_.device);
  pair_.emplace(std::move(*pair));
  return compileProgram();
}

llvm::Error StepPlayer::makeStream() {
  llvm::Expected<std::unique_ptr<Stream>> stream = setup_.device->createStream();
  if (!stream)
    return stream.takeError();
  stream_ = std::move(*stream);
  return llvm::Error::success();
}

llvm::Error StepPlayer::compileProgram() {
  program_.reset();
  llvm::Expected<Program> program = compile(
      pair_->clone(), devices_, setup_.executors,
      [this](TracePair pair, const SymbolBindings &) { return runPasses(std::move(pair)); },
      options_);
  if (!program)
    return program.takeError();
  program_.emplace(std::move(*program));
  return llvm::Error::success();
}

llvm::Expected<TracePair> StepPlayer::runPasses(TracePair pair) {
  PassRegistry passes;
  std::vector<const ClaimSource *> sources(setup_.executors.begin(), setup_.executors.end());
  if (llvm::Error error = registerPasses(passes, sources))
    return error;
  PassManager manager;
  if (!budget_) {
    recomputation_ = RematerialiseReport();
    if (llvm::Error error = passes.parsePipeline(pipeline_, manager))
      return error;
    return manager.run(std::move(pair));
  }
  if (llvm::Error error = passes.parsePipeline("dce,cse,canonicalise", manager))
    return error;
  auto recompute = std::make_unique<RematerializationPass>(
      RematerialiseOptions{budget_, RecomputeRemarks::None});
  const RematerializationPass &recomputing = *recompute;
  manager.add(std::move(recompute));
  if (llvm::Error error = passes.parsePipeline("dce,execution,cuda-graph,del", manager))
    return error;
  llvm::Expected<TracePair> result = manager.run(std::move(pair));
  recomputation_ = result ? recomputing.report() : RematerialiseReport();
  return result;
}

llvm::Error StepPlayer::fillArguments(llvm::StringRef path) {
  llvm::SmallString<128> beside(path);
  llvm::sys::path::replace_extension(beside, ".safetensors");
  std::optional<RecordedValues> recorded;
  if (llvm::sys::fs::exists(beside)) {
    llvm::Expected<RecordedValues> opened = RecordedValues::open(beside, outputs_);
    if (!opened)
      return opened.takeError();
    recorded.emplace(std::move(*opened));
  }
  for (Side side : {Side::Forward, Side::Backward}) {
    if (side == Side::Backward && !program_->hasBackward())
      continue;
    std::vector<Value> &arguments = arguments_[unsigned(side)];
    if (llvm::Error error =
            recorded ? fillRecorded(*program_, side, *recorded, devices_, *stream_, arguments)
                     : fillRandom(*program_, side, 0, devices_, *stream_, arguments))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error StepPlayer::submit(llvm::function_ref<llvm::Error()> afterCall) {
  auto ended = [&] { return afterCall ? afterCall() : llvm::Error::success(); };
  SavedState saved;
  if (llvm::Error error = program_->forward(*stream_, arguments_[0], results_[0], &saved))
    return error;
  if (llvm::Error error = ended())
    return error;
  if (!program_->hasBackward())
    return llvm::Error::success();
  if (llvm::Error error =
          program_->backward(*stream_, std::move(saved), arguments_[1], results_[1]))
    return error;
  return ended();
}

llvm::Expected<StepPlayer::Times> StepPlayer::step(bool isEager,
                                                   llvm::function_ref<llvm::Error()> afterCall) {
  using Clock = std::chrono::steady_clock;
  program_->setEager(isEager);
  if (llvm::Error error = setup_.raw.startClock(*stream_))
    return error;
  auto begin = Clock::now();
  if (llvm::Error error = submit(afterCall))
    return error;
  std::chrono::duration<double> calls = Clock::now() - begin;
  llvm::Expected<std::optional<double>> device = setup_.raw.stopClock(*stream_);
  if (!device)
    return device.takeError();
  if (llvm::Error error = stream_->synchronize())
    return error;
  std::chrono::duration<double> done = Clock::now() - begin;
  for (llvm::SmallVector<Value> &results : results_)
    results.clear();
  return Times{calls.count(), done.count(), *device};
}

llvm::Expected<uint64_t> StepPlayer::measurePeak() {
  program_.reset();
  llvm::Expected<MemoryWatch> watch = MemoryWatch::create(setup_);
  if (!watch)
    return watch.takeError();
  if (llvm::Error error = compileProgram())
    return error;
  for (unsigned i = 0; i < 3; ++i)
    if (llvm::Error error = step(/*isEager=*/false, [&] { return watch->sample(); }).takeError())
      return error;
  return watch->mostBytes();
}

//===----------------------------------------------------------------------===//
// What benchmarks of steps share
//===----------------------------------------------------------------------===//

llvm::Expected<std::vector<StepTimes>>
rondo::timeSteps(const BenchSetup &setup,
                 llvm::ArrayRef<std::function<llvm::Expected<StepPlayer::Times>()>> steps,
                 std::chrono::seconds longest) {
  using Clock = std::chrono::steady_clock;
  std::vector<StepTimes> all(steps.size());
  auto begin = Clock::now();
  for (unsigned round = 0; round <= setup.rounds; ++round) {
    if (round > 1 && Clock::now() - begin > longest)
      break;
    for (size_t i = 0; i < steps.size(); ++i) {
      size_t which = (i + round) % steps.size();
      llvm::Expected<StepPlayer::Times> times = steps[which]();
      if (!times)
        return times.takeError();
      if (round == 0) // warms up
        continue;
      all[which].calls.push_back(times->calls);
      all[which].done.push_back(times->done);
      if (times->device)
        all[which].device.push_back(*times->device);
    }
  }
  return all;
}

void rondo::pushTimes(const char *bench, const std::string &what, const StepTimes &times,
                      const StepTimes &baseline, const char *baselineName,
                      std::vector<Figure> &figures) {
  for (auto [name, of] :
       {std::pair("CPU time", &StepTimes::calls), std::pair("device time", &StepTimes::device),
        std::pair("until done", &StepTimes::done)})
    if (!(times.*of).empty())
      figures.push_back({bench, what + name, "us", medianOf(times.*of) * 1e6,
                         medianOf(baseline.*of) * 1e6, baselineName});
}

llvm::Expected<ProgramOptions> rondo::optionsWithCosts(const BenchSetup &setup) {
  llvm::Expected<BufferCosts> costs = measureBufferCosts(setup.device);
  if (!costs)
    return costs.takeError();
  ProgramOptions options;
  options.costs = *costs;
  return options;
}

PlannedMemory rondo::plannedMemory(const Program &program, Device device) {
  PlannedMemory planned;
  for (Side side : {Side::Forward, Side::Backward})
    for (const ParameterInfo &argument : program.inputs(side))
      if (const TensorType *tensor = argument.type.asTensor(); tensor && tensor->device == device)
        planned.arguments += storageBytes(argument.type).value_or(0);
  MemoryInfo forward = program.memory(Side::Forward), backward;
  if (program.hasBackward())
    backward = program.memory(Side::Backward);
  planned.peak = planned.arguments + forward.slab + forward.results + backward.results +
                 std::max(forward.arena, backward.arena);
  planned.needed = std::max(forward.lowerBound, backward.lowerBound);
  return planned;
}
