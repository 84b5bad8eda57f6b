//===- CheckpointBench.cpp - Steps with checkpoints -----------------------===//
//
// A step whose blocks are computed again in the backward, beside the same step that saves what its
// backward needs: how long it takes, and how much memory beyond arguments and gradients. peer.py
// measures PyTorch's own checkpoints with the same model under the same names.
//
//===----------------------------------------------------------------------===//

#include "CheckpointTrace.h"
#include "StepPlayer.h"

#include "rondo/ir/Text.h"

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
  CheckpointPlayer(const BenchSetup &setup, const CheckpointShape &shape,
                   const ProgramOptions &options)
      : setup_(setup), shape_(shape), player_(setup, options, checkpointPipeline) {}

  /// Makes the step, and finds out what memory it takes.
  llvm::Error prepare();
  llvm::Expected<StepPlayer::Times> step() { return player_.step(/*isEager=*/false); }

  /// Bytes beyond those of arguments and gradients, at most, of three steps; planned for a step.
  double peakBytes() const { return peakBytes_; }
  double plannedBytes() const;

private:
  double gradientBytes() const;

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
  if (llvm::Error error = step().takeError())
    return error;
  llvm::Expected<uint64_t> peak = player_.measurePeak();
  if (!peak)
    return peak.takeError();
  peakBytes_ = double(*peak) - gradientBytes();
  return llvm::Error::success();
}

double CheckpointPlayer::gradientBytes() const {
  double bytes = 0;
  for (const ParameterInfo &info : player_.program().results(Side::Backward))
    bytes += double(info.type.asTensor()->numBytes().value());
  return bytes;
}

double CheckpointPlayer::plannedBytes() const {
  PlannedMemory planned = plannedMemory(player_.program(), setup_.device->device());
  return double(planned.peak - planned.arguments) - gradientBytes();
}

/// One dtype and form of GELU.
static llvm::Error benchShape(const BenchSetup &setup, CheckpointShape shape,
                              const ProgramOptions &options, std::vector<Figure> &figures) {
  shape.checkpoints = true;
  CheckpointPlayer checkpointed(setup, shape, options);
  shape.checkpoints = false;
  CheckpointPlayer saving(setup, shape, options);
  for (CheckpointPlayer *player : {&checkpointed, &saving})
    if (llvm::Error error = player->prepare())
      return error;
  llvm::Expected<std::vector<StepTimes>> times =
      timeSteps(setup, {[&] { return checkpointed.step(); }, [&] { return saving.step(); }});
  if (!times)
    return times.takeError();

  const std::string name =
      dtypeName(shape.dtype).str() + ", GELU by " + (shape.tanhGELU ? "tanh" : "erf") + ", ";
  pushTimes("checkpoint", name, (*times)[0], (*times)[1], "all saved", figures);
  auto push = [&](const char *what, double bytes, double baseline) {
    figures.push_back(
        {"checkpoint", name + what, "KiB", inKiB(bytes), inKiB(baseline), "all saved"});
  };
  push("peak", checkpointed.peakBytes(), saving.peakBytes());
  push("planned", checkpointed.plannedBytes(), saving.plannedBytes());
  return llvm::Error::success();
}

llvm::Error rondo::benchCheckpoint(const BenchSetup &setup, const CheckpointSizes &sizes,
                                   std::vector<Figure> &figures) {
  llvm::Expected<ProgramOptions> options = optionsWithCosts(setup);
  if (!options)
    return options.takeError();
  options->consumeSaved = true; // as PyTorch's backward does, unless it is told otherwise
  for (DType dtype : {DType::F32, DType::BF16}) {
    for (bool tanhGELU : {false, true}) {
      CheckpointShape shape;
      shape.blocks = sizes.blocks;
      shape.batch = sizes.batch;
      shape.width = sizes.width;
      shape.hidden = 4 * int64_t(sizes.width);
      shape.dtype = dtype;
      shape.tanhGELU = tanhGELU;
      if (llvm::Error error = benchShape(setup, shape, *options, figures))
        return error;
    }
  }
  return llvm::Error::success();
}
