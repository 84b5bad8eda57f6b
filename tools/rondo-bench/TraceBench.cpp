//===- TraceBench.cpp - Steps of traces, eager and replayed ---------------===//

#include "StepPlayer.h"

#include <chrono>

using namespace rondo;

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
