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

/// Of those in the memory of the device.
static uint64_t argumentBytes(const StepPlayer &player, Device device) {
  uint64_t bytes = 0;
  for (Side side : {Side::Forward, Side::Backward})
    for (const Value &argument : player.arguments(side))
      if (const Tensor *tensor = argument.asTensor(); tensor && tensor->device() == device)
        bytes += tensor->extentBytes();
  return bytes;
}

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

  const Program &program = player.program();
  MemoryInfo forward = program.memory(Side::Forward), backward = program.memory(Side::Backward);
  uint64_t arguments = argumentBytes(player, setup.device->device());
  uint64_t planned = arguments + forward.slab + forward.results + backward.results +
                     std::max(forward.arena, backward.arena);
  uint64_t needed = std::max(forward.lowerBound, backward.lowerBound);
  constexpr double unit = 1024;
  auto push = [&](const char *what, double bytes) -> Figure & {
    figures.push_back({"memory", player.name() + ", " + what, "KiB", bytes / unit});
    return figures.back();
  };
  for (auto [what, bytes] : {std::pair("peak of 3 steps", arguments + watch->mostBytes()),
                             std::pair("planned", planned)}) {
    Figure &figure = push(what, double(bytes));
    figure.baseline = double(needed) / unit;
    figure.baselineName = "lower bound";
  }
  push("arguments", double(arguments));
  return llvm::Error::success();
}
