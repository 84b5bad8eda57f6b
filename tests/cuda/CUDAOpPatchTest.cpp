//===- CUDAOpPatchTest.cpp - Pointers in every kernel can be changed ------===//
//
// The proof for what is patched on a GPU: kernels of our own, and calls of cuBLASLt and cuDNN with
// the algorithms that the executors choose.
//
//===----------------------------------------------------------------------===//

#include "CUDATesting.h"

#include "runtime/PatchedLaunch.h"

#include "support/OpCases.h"
#include "support/OpConformance.h"

#include "rondo/cuda/CUDAExecutors.h"

using namespace rondo;

namespace {

class CUDAOpPatchTest : public testing::TestWithParam<DType> {};

// Every kernel can be captured anywhere and run elsewhere: it gives the bits that it gives eagerly,
// in every layout, and does nothing at the addresses of its capture.
TEST_P(CUDAOpPatchTest, EveryKernel) {
  OpTarget target;
  target.device = cudaTestDevice();
  if (!target.device)
    GTEST_SKIP() << "no device";
  std::vector<std::unique_ptr<Executor>> executors = llvm::cantFail(createCUDAExecutors(nullptr));
  for (const std::unique_ptr<Executor> &executor : executors)
    if (executor->name() != "cudnn") // makes plans for a second each; CuDNNPatchTest has it
      target.executors.push_back(executor.get());
  PatchedLaunch patched(target.device);
  target.launch = [&](auto &&...args) { return patched.launch(args...); };
  for (const OpCases &cases : opCaseTable()) {
    if (!llvm::is_contained(cases.dtypes, GetParam()))
      continue;
    if (llvm::StringRef(cases.op) == "print") // of a scalar: prints when it is put into a graph
      continue;
    for (const std::string &failure : findDisagreements(target, cases, GetParam()))
      ADD_FAILURE() << cases.op << ' ' << failure;
  }
  const PatchedLaunch::Counts &counts = patched.counts();
  std::cout << dtypeName(GetParam()).str() << ": " << counts << '\n';
  EXPECT_GT(counts.launches, 500u);
}

INSTANTIATE_TEST_SUITE_P(, CUDAOpPatchTest,
                         testing::Values(DType::F32, DType::BF16, DType::F16, DType::I64),
                         [](const auto &info) { return dtypeName(info.param).str(); });

} // namespace
