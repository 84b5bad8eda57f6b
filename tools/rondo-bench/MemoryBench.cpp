//===- MemoryBench.cpp - The memory of a step -----------------------------===//
//
// What is measured is all that a program takes of the device between its making and the end of its
// third step, what capturing takes for a moment, graphs, and what pools keep included, on top of
// the arguments, which are there before. What the libraries load once in a process is there, too:
// another program has run a step.
//
//===----------------------------------------------------------------------===//

#include "MemoryWatch.h"
#include "StepPlayer.h"

using namespace rondo;

llvm::Error rondo::benchMemory(const BenchSetup &setup, llvm::StringRef path,
                               std::vector<Figure> &figures) {
  ProgramOptions options;
  llvm::Expected<BufferCosts> costs = measureBufferCosts(setup.device);
  if (!costs)
    return costs.takeError();
  options.costs = *costs; // to measure them takes memory
  StepPlayer player(setup, std::move(options));
  if (llvm::Error error = player.load(path))
    return error;
  if (llvm::Expected<StepPlayer::Times> times = player.step(/*isEager=*/false); !times)
    return times.takeError();
  player.dropProgram();

  constexpr unsigned numSteps = 3;
  llvm::Expected<MemoryWatch> watch = MemoryWatch::create(setup);
  if (!watch)
    return watch.takeError();
  if (llvm::Error error = player.compileProgram())
    return error;
  for (unsigned i = 0; i < numSteps; ++i)
    if (llvm::Expected<StepPlayer::Times> times =
            player.step(/*isEager=*/false, [&] { return watch->sample(); });
        !times)
      return times.takeError();

  PlannedMemory memory = plannedMemory(player.program(), setup.device->device());
  constexpr double unit = 1024;
  auto push = [&](const char *what, double bytes) -> Figure & {
    figures.push_back({"memory", player.name() + ", " + what, "KiB", bytes / unit});
    return figures.back();
  };
  for (auto [what, bytes] : {std::pair("peak of 3 steps", memory.arguments + watch->mostBytes()),
                             std::pair("planned", memory.peak)}) {
    Figure &figure = push(what, double(bytes));
    figure.baseline = double(memory.needed) / unit;
    figure.baselineName = "lower bound";
  }
  push("arguments", double(memory.arguments));
  return llvm::Error::success();
}
