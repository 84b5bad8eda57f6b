//===- TraceBench.cpp - Steps of traces, eager and replayed ---------------===//

#include "StepPlayer.h"

using namespace rondo;

llvm::Error rondo::benchTrace(const BenchSetup &setup, llvm::StringRef path,
                              std::vector<Figure> &figures) {
  StepPlayer player(setup);
  if (llvm::Error error = player.load(path))
    return error;
  llvm::Expected<std::vector<StepTimes>> times =
      timeSteps(setup, {[&] { return player.step(/*isEager=*/false); },
                        [&] { return player.step(/*isEager=*/true); }});
  if (!times)
    return times.takeError();
  pushTimes("traces", player.name() + ", replayed step, ", (*times)[0], (*times)[1], "eager",
            figures);
  return llvm::Error::success();
}
