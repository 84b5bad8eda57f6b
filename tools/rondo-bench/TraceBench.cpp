//===- TraceBench.cpp - Steps of traces, eager and replayed ---------------===//

#include "Bench.h"

#include "support/Arguments.h"
#include "support/Devices.h"
#include "support/Files.h"

#include "rondo/passes/PassRegistry.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <chrono>

using namespace rondo;

namespace {

/// A program of a trace, with arguments that stay where they are.
class StepPlayer {
public:
  explicit StepPlayer(const BenchSetup &setup) : setup_(setup) {}

  const std::string &name() const { return name_; }

  llvm::Error load(llvm::StringRef path) {
    std::vector<FXOutput> outputs;
    llvm::Expected<TracePair> read = readPair(path, InputFormat::Auto, setup_.registry, &outputs);
    if (!read)
      return read.takeError();
    llvm::Expected<TracePair> pair = placeOn(setup_.device->device(), std::move(*read));
    if (!pair)
      return pair.takeError();
    name_ = pair->name().str();
    std::vector<DeviceRef> devices = devicesOf(*pair, setup_.device);
    llvm::Expected<Program> program =
        compile(std::move(*pair), devices, setup_.executors,
                [this](TracePair pair, const SymbolBindings &) { return run(std::move(pair)); });
    if (!program)
      return program.takeError();
    program_.emplace(std::move(*program));
    llvm::Expected<std::unique_ptr<Stream>> stream = setup_.device->createStream();
    if (!stream)
      return stream.takeError();
    stream_ = std::move(*stream);

    llvm::SmallString<128> values(path);
    llvm::sys::path::replace_extension(values, ".safetensors");
    if (!llvm::sys::fs::exists(values))
      return fill([&](Side side) {
        return fillRandom(*program_, side, 0, devices, *stream_, arguments_[unsigned(side)]);
      });
    llvm::Expected<RecordedValues> recorded = RecordedValues::open(values, outputs);
    if (!recorded)
      return recorded.takeError();
    return fill([&](Side side) {
      return fillRecorded(*program_, side, *recorded, devices, *stream_,
                          arguments_[unsigned(side)]);
    });
  }

  /// Times of one step, in seconds: of the calls, and until all their work is done.
  struct Times {
    double calls = 0, done = 0;
    std::optional<double> device; ///< by the device's clock
  };
  llvm::Expected<Times> step(bool isEager) {
    using Clock = std::chrono::steady_clock;
    program_->setEager(isEager);
    if (llvm::Error error = setup_.raw.startClock(*stream_))
      return error;
    auto begin = Clock::now();
    SavedState saved;
    if (llvm::Error error = program_->forward(*stream_, arguments_[0], results_[0], &saved))
      return error;
    if (program_->hasBackward())
      if (llvm::Error error =
              program_->backward(*stream_, std::move(saved), arguments_[1], results_[1]))
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

private:
  llvm::Expected<TracePair> run(TracePair pair) const {
    PassRegistry passes;
    std::vector<const ClaimSource *> sources(setup_.executors.begin(), setup_.executors.end());
    if (llvm::Error error = registerPasses(passes, sources))
      return error;
    PassManager manager;
    if (llvm::Error error =
            passes.parsePipeline("dce,cse,canonicalise,execution,cuda-graph,del", manager))
      return error;
    return manager.run(std::move(pair));
  }

  llvm::Error fill(llvm::function_ref<llvm::Error(Side)> fillSide) const {
    if (llvm::Error error = fillSide(Side::Forward))
      return error;
    return program_->hasBackward() ? fillSide(Side::Backward) : llvm::Error::success();
  }

  const BenchSetup &setup_;
  std::string name_;
  std::unique_ptr<Stream> stream_;
  std::optional<Program> program_;
  std::vector<Value> arguments_[2];
  llvm::SmallVector<Value> results_[2];
};

} // namespace

llvm::Error rondo::benchTrace(const BenchSetup &setup, llvm::StringRef path,
                              std::vector<Figure> &figures) {
  StepPlayer player(setup);
  if (llvm::Error error = player.load(path))
    return error;
  struct Medians {
    std::vector<double> calls, done, device;
  } all[2];
  constexpr std::chrono::seconds longest(5);
  auto begin = std::chrono::steady_clock::now();
  for (unsigned round = 0; round <= setup.rounds; ++round) {
    if (round > 1 && std::chrono::steady_clock::now() - begin > longest)
      break;
    for (bool isEager : {false, true}) {
      llvm::Expected<StepPlayer::Times> times = player.step(isEager);
      if (!times)
        return times.takeError();
      if (round == 0) // captures
        continue;
      all[isEager].calls.push_back(times->calls);
      all[isEager].done.push_back(times->done);
      if (times->device)
        all[isEager].device.push_back(*times->device);
    }
  }
  auto push = [&](const char *what, std::vector<double> Medians::*times) {
    if (!(all[0].*times).empty())
      figures.push_back({"traces", player.name() + ", replayed step, " + what, "us",
                         medianOf(all[0].*times) * 1e6, medianOf(all[1].*times) * 1e6, "eager"});
  };
  push("CPU time", &Medians::calls);
  push("device time", &Medians::device);
  push("until done", &Medians::done);
  return llvm::Error::success();
}
