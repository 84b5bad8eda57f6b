//===- ReplayBench.cpp - A replay against the launch of its graph ---------===//

#include "Bench.h"
#include "HeapCount.h"

using namespace rondo;

/// Allocations in a call, of the device and of the host, once everything is there.
static llvm::Error countAllocations(const BenchSetup &setup, ChainProgram &chain,
                                    std::vector<Figure> &figures) {
  constexpr unsigned calls = 100;
  uint64_t device = setup.device->memoryUse().allocations;
  std::optional<uint64_t> heap = countHeapAllocations();
  for (unsigned i = 0; i < calls; ++i)
    if (llvm::Error error = chain.call())
      return error;
  if (heap)
    heap = *countHeapAllocations() - *heap;
  if (llvm::Error error = chain.settle())
    return error;
  device = setup.device->memoryUse().allocations - device;
  figures.push_back({"replay", "device allocations per call", "", double(device) / calls});
  figures.back().bar = 0;
  if (heap)
    figures.push_back({"replay", "heap allocations per call", "", double(*heap) / calls});
  return llvm::Error::success();
}

llvm::Error rondo::benchReplay(const BenchSetup &setup, std::vector<Figure> &figures) {
  llvm::Expected<std::unique_ptr<ChainProgram>> made = ChainProgram::create(setup);
  if (!made)
    return made.takeError();
  ChainProgram &chain = **made;
  size_t numNodes = 0;
  llvm::Expected<GraphExec *> exec = chain.exec(numNodes);
  if (!exec)
    return exec.takeError();
  figures.push_back({"replay", "nodes of the graph", "", double(numNodes)});

  auto raw = [&] { return setup.raw.launch(**exec, chain.stream()); };
  llvm::Expected<std::vector<double>> times =
      medianTimes(setup, {{[&] { return chain.call(); }}, {raw}}, [&] { return chain.settle(); });
  if (!times)
    return times.takeError();
  Figure figure{"replay",          "Program::forward, CPU time",     "us", (*times)[0] * 1e6,
                (*times)[1] * 1e6, setup.raw.graphLaunchName().str()};
  figure.bar = 1.5;
  figures.push_back(std::move(figure));
  return countAllocations(setup, chain, figures);
}
