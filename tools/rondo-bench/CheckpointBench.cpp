//===- CheckpointBench.cpp - Steps with checkpoints -----------------------===//
//
// A step whose blocks are computed again in the backward, beside the same step that saves what its
// backward needs: how long it takes, and how much memory beyond arguments and gradients. peer.py
// measures PyTorch's own checkpoints with the same model under the same names.
//
//===----------------------------------------------------------------------===//

#include "CheckpointTrace.h"
#include "MemoryWatch.h"
#include "StepPlayer.h"

#include "rondo/ir/Text.h"

#include <chrono>
#include <cmath>

using namespace rondo;

/// As PyTorch's linear layers begin: within 1 / sqrt(n), n being how many elements a row of the
/// weight has. So no number becomes too great for its type.
static double scaleOf(const ParameterInfo &info, int64_t width) {
  if (!any(info.tags & ValueTags::Parameter))
    return 1;
  const TensorType &type = *info.type.asTensor();
  return 1 / std::sqrt(double(type.rank() == 2 ? type.shape[1].value() : width));
}

namespace {

/// One of the two ways to make a step.
class CheckpointPlayer {
public:
  CheckpointPlayer(const BenchSetup &setup, const CheckpointShape &shape, const BufferCosts &costs)
      : setup_(setup), shape_(shape), player_(setup, optionsOf(costs), checkpointPipeline) {}

  /// Makes the step, and finds out what memory it takes.
  llvm::Error prepare();
  llvm::Expected<StepPlayer::Times> step() { return player_.step(/*isEager=*/false); }

  /// Bytes beyond those of arguments and gradients, at most, of three steps; planned for a step.
  double peakBytes() const { return peakBytes_; }
  double plannedBytes() const;

private:
  static ProgramOptions optionsOf(const BufferCosts &costs) {
    ProgramOptions options;
    options.costs = costs;       // to measure them takes memory
    options.consumeSaved = true; // as PyTorch's backward does, unless it is told otherwise
    return options;
  }
  uint64_t gradientBytes() const;

  const BenchSetup &setup_;
  const CheckpointShape shape_;
  StepPlayer player_;
  double peakBytes_ = 0;
};

} // namespace

llvm::Error CheckpointPlayer::prepare() {
  llvm::Expected<TracePair> pair =
      parsePair(CheckpointTrace(shape_).text(), "checkpoint", setup_.registry);
  if (!pair)
    return pair.takeError();
  auto scale = [&](const ParameterInfo &info) { return scaleOf(info, shape_.width); };
  if (llvm::Error error = player_.load(std::move(*pair), scale))
    return error;
  if (llvm::Expected<StepPlayer::Times> times = step(); !times)
    return times.takeError();
  player_.dropProgram();
  llvm::Expected<MemoryWatch> watch = MemoryWatch::create(setup_);
  if (!watch)
    return watch.takeError();
  if (llvm::Error error = player_.compileProgram())
    return error;
  for (unsigned i = 0; i < 3; ++i)
    if (llvm::Expected<StepPlayer::Times> times =
            player_.step(/*isEager=*/false, [&] { return watch->sample(); });
        !times)
      return times.takeError();
  peakBytes_ = double(watch->mostBytes()) - double(gradientBytes());
  return llvm::Error::success();
}

uint64_t CheckpointPlayer::gradientBytes() const {
  uint64_t bytes = 0;
  for (const ParameterInfo &info : player_.program().results(Side::Backward))
    bytes += info.type.asTensor()->numBytes().value();
  return bytes;
}

double CheckpointPlayer::plannedBytes() const {
  MemoryInfo forward = player_.program().memory(Side::Forward),
             backward = player_.program().memory(Side::Backward);
  return double(forward.slab + forward.results + backward.results +
                std::max(forward.arena, backward.arena)) -
         double(gradientBytes());
}

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

namespace {

/// Times of one way, by round.
struct StepTimes {
  std::vector<double> calls, done, device;

  void add(const StepPlayer::Times &times) {
    calls.push_back(times.calls);
    done.push_back(times.done);
    if (times.device)
      device.push_back(*times.device);
  }
};

} // namespace

/// Fewer rounds if they take long.
static llvm::Error timeSteps(const BenchSetup &setup, CheckpointPlayer &checkpointed,
                             CheckpointPlayer &saving, StepTimes (&all)[2]) {
  constexpr std::chrono::seconds longest(5);
  auto begin = std::chrono::steady_clock::now();
  for (unsigned round = 0; round <= setup.rounds; ++round) {
    if (round > 1 && std::chrono::steady_clock::now() - begin > longest)
      break;
    for (unsigned turn : {0, 1}) {
      unsigned which = (turn + round) % 2;
      llvm::Expected<StepPlayer::Times> times = (which == 0 ? checkpointed : saving).step();
      if (!times)
        return times.takeError();
      if (round > 0) // the first warms up
        all[which].add(*times);
    }
  }
  return llvm::Error::success();
}

/// One dtype and form of GELU.
static llvm::Error benchShape(const BenchSetup &setup, CheckpointShape shape,
                              const BufferCosts &costs, std::vector<Figure> &figures) {
  shape.checkpoints = true;
  CheckpointPlayer checkpointed(setup, shape, costs);
  shape.checkpoints = false;
  CheckpointPlayer saving(setup, shape, costs);
  for (CheckpointPlayer *player : {&checkpointed, &saving})
    if (llvm::Error error = player->prepare())
      return error;
  StepTimes times[2];
  if (llvm::Error error = timeSteps(setup, checkpointed, saving, times))
    return error;

  const std::string name =
      dtypeName(shape.dtype).str() + ", GELU by " + (shape.tanhGELU ? "tanh" : "erf") + ", ";
  auto push = [&](const char *what, const char *unit, double value, double baseline) {
    figures.push_back({"checkpoint", name + what, unit, value, baseline, "all saved"});
  };
  for (auto [what, of] :
       {std::pair("CPU time", &StepTimes::calls), std::pair("device time", &StepTimes::device),
        std::pair("until done", &StepTimes::done)})
    if (!(times[0].*of).empty())
      push(what, "us", medianOf(times[0].*of) * 1e6, medianOf(times[1].*of) * 1e6);
  constexpr double unit = 1024;
  push("peak", "KiB", checkpointed.peakBytes() / unit, saving.peakBytes() / unit);
  push("planned", "KiB", checkpointed.plannedBytes() / unit, saving.plannedBytes() / unit);
  return llvm::Error::success();
}

llvm::Error rondo::benchCheckpoint(const BenchSetup &setup, const CheckpointSizes &sizes,
                                   std::vector<Figure> &figures) {
  llvm::Expected<BufferCosts> costs = measureBufferCosts(setup.device);
  if (!costs)
    return costs.takeError();
  for (DType dtype : {DType::F32, DType::BF16}) {
    for (bool tanhGELU : {false, true}) {
      CheckpointShape shape;
      shape.blocks = sizes.blocks;
      shape.batch = sizes.batch;
      shape.width = sizes.width;
      shape.hidden = 4 * int64_t(sizes.width);
      shape.dtype = dtype;
      shape.tanhGELU = tanhGELU;
      if (llvm::Error error = benchShape(setup, shape, *costs, figures))
        return error;
    }
  }
  return llvm::Error::success();
}
