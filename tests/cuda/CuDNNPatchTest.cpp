//===- CuDNNPatchTest.cpp - Pointers in cuDNN's kernels can be changed ----===//
//
// cuDNN passes tensors to its kernels in structs of its own, with descriptors for the copy engine
// among them.
//
//===----------------------------------------------------------------------===//

#include "AttentionSettings.h"
#include "CUDAProgramTesting.h"
#include "ClaimedOpPatch.h"

using namespace rondo;

namespace {

class CuDNNPatchTest : public testing::TestWithParam<DType> {};

// Every attention that cuDNN takes, forward and backward, can be captured anywhere and run
// elsewhere: it gives the bits that it gives eagerly, and does nothing at the addresses of its
// capture. It takes some.
TEST_P(CuDNNPatchTest, EveryAttention) {
  DeviceRef device = cudaTestDevice();
  if (!device)
    GTEST_SKIP() << "no device";
  CoreRegistry registry;
  CUDATestExecutors executors;
  std::vector<const Executor *> list = executors.list();
  if (llvm::none_of(list, [](const Executor *executor) { return executor->name() == "cudnn"; }))
    GTEST_SKIP() << "no cuDNN";
  PatchedLaunch patched(device);
  std::string dtype = dtypeName(GetParam()).str();
  unsigned numClaims = 0;
  for (const AttentionSetting &setting : attentionSettings())
    if (setting.dtype == dtype)
      numClaims +=
          patchClaimedOps(cantFail(parseTrace(setting.text("@cuda:0"), "t.trace", registry)), list,
                          "cudnn", patched, device, setting.name());
  std::cout << dtype << ", attention: " << patched.counts() << '\n';
  EXPECT_GT(numClaims, 0u);
  EXPECT_EQ(patched.counts().launches, numClaims);
}

INSTANTIATE_TEST_SUITE_P(, CuDNNPatchTest, testing::Values(DType::BF16, DType::F16),
                         [](const auto &info) { return dtypeName(info.param).str(); });

} // namespace
