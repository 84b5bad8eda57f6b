//===- MemoryBench.cpp - The memory of a step -----------------------------===//
//
// What is measured is all that a program takes of the device between its making and the end of its
// third step, what capturing takes for a moment, graphs, and what pools keep included, on top of
// the arguments, which are there before. What the libraries load once in a process is there, too:
// another program has run a step.
//
//===----------------------------------------------------------------------===//

#include "StepPlayer.h"

using namespace rondo;

llvm::Error rondo::benchMemory(const BenchSetup &setup, llvm::StringRef path,
                               std::vector<Figure> &figures) {
  llvm::Expected<ProgramOptions> options = optionsWithCosts(setup);
  if (!options)
    return options.takeError();
  StepPlayer player(setup, std::move(*options));
  if (llvm::Error error = player.load(path))
    return error;
  if (llvm::Error error = player.step(/*isEager=*/false).takeError())
    return error;
  llvm::Expected<uint64_t> peak = player.measurePeak();
  if (!peak)
    return peak.takeError();

  PlannedMemory memory = plannedMemory(player.program(), setup.device->device());
  auto push = [&](const char *what, uint64_t bytes, std::optional<double> bound = std::nullopt) {
    figures.push_back({"memory", player.name() + ", " + what, "KiB", inKiB(double(bytes)), bound,
                       bound ? "lower bound" : ""});
  };
  push("peak of 3 steps", memory.arguments + *peak, inKiB(double(memory.needed)));
  push("planned", memory.peak, inKiB(double(memory.needed)));
  push("arguments", memory.arguments);
  return llvm::Error::success();
}
