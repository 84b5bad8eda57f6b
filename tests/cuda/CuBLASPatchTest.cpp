//===- CuBLASPatchTest.cpp - Pointers in cuBLASLt's kernels can be changed ===//
//
// Groups with epilogues pass biases, gradients of biases and what goes into GELU to the library as
// pointers in its descriptors. CUDAOpPatchTest sees products without epilogues only.
//
//===----------------------------------------------------------------------===//

#include "CUDAProgramTesting.h"
#include "CUDATraceTesting.h"
#include "ClaimedOpPatch.h"
#include "CuBLASGroupTexts.h"

using namespace rondo;

namespace {

class CuBLASPatchTest : public testing::TestWithParam<DType> {};

// Every group can be captured anywhere and run elsewhere: it gives the bits that it gives eagerly,
// and does nothing at the addresses of its capture.
TEST_P(CuBLASPatchTest, EveryGroup) {
  DeviceRef device = cudaTestDevice();
  if (!device)
    GTEST_SKIP() << "no device";
  CoreRegistry registry;
  CUDATestExecutors executors;
  PatchedLaunch patched(device);
  std::string dtype = dtypeName(GetParam()).str();
  for (const CuBLASGroupText &group : cublasGroups) {
    Trace trace = cantFail(parseTrace(onCUDA(group.text, dtype), group.name, registry));
    EXPECT_EQ(
        patchClaimedOps(std::move(trace), executors.list(), "cublas", patched, device, group.name),
        1u)
        << group.name << ": the ops are one";
  }
  std::cout << dtype << ", products with epilogues: " << patched.counts() << '\n';
  EXPECT_EQ(patched.counts().launches, std::size(cublasGroups));
}

INSTANTIATE_TEST_SUITE_P(, CuBLASPatchTest, testing::Values(DType::F32, DType::BF16, DType::F16),
                         [](const auto &info) { return dtypeName(info.param).str(); });

} // namespace
