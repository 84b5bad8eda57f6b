//===- SavedStateTest.cpp - What a forward saves for its backward ---------===//

#include "SavedStateTesting.h"

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, SavedStateTest, testing::Values(hostileHost()), suiteTargetName);
} // namespace rondo
