//===- CUDAOpConformanceTest.cpp - CUDA's kernels against the host's ------===//
//
// Once by the executors in the order in which they are offered ops, and once by `cuda` alone, which
// has a kernel for every op.
//
//===----------------------------------------------------------------------===//

#include "CUDATesting.h"

#include "support/OpConformance.h"

#include "rondo/cuda/CUDAExecutors.h"

using namespace rondo;

namespace {

/// Who executes ops on the first GPU: those named `only`, or all of them.
OpTarget cudaTarget(llvm::StringRef only = {}) {
  OpTarget target;
  target.device = cudaTestDevice();
  if (!target.device)
    return target;
  // Kept for all tests; they go with the process.
  static auto *executors = new std::vector<std::unique_ptr<Executor>>;
  std::vector<std::string> remarks;
  llvm::Expected<std::vector<std::unique_ptr<Executor>>> made = createCUDAExecutors(&remarks);
  if (!made) {
    ADD_FAILURE() << llvm::toString(made.takeError());
    return target;
  }
  for (std::unique_ptr<Executor> &executor : *made) {
    if (only.empty() || executor->name() == only)
      target.executors.push_back(executor.get());
    executors->push_back(std::move(executor));
  }
  for (const std::string &remark : remarks)
    std::cout << remark << "\n";
  return target;
}

} // namespace

namespace rondo {
INSTANTIATE_TEST_SUITE_P(CUDA, OpConformance,
                         testing::ValuesIn(opConformanceTests({[] { return cudaTarget(); }})),
                         opConformanceName);
INSTANTIATE_TEST_SUITE_P(CUDAAlone, OpConformance,
                         testing::ValuesIn(opConformanceTests({[] { return cudaTarget("cuda"); }})),
                         opConformanceName);
} // namespace rondo
