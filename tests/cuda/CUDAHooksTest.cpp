//===- CUDAHooksTest.cpp - What first calls do, on a GPU ------------------===//

#include "CUDAProgramTesting.h"

#include "runtime/HooksTesting.h"

using namespace rondo;

namespace {

using CUDAHooksTest = OnCUDA<HooksFixture>;

// Hooks that use the device disturb nothing.
TEST_F(CUDAHooksTest, UseTheDevice) {
  useTheDevice();
}

// 12: everything advances once per call, whatever the first calls captured.
TEST_F(CUDAHooksTest, Case12AdvanceOnce) {
  advanceOnce();
}

} // namespace
