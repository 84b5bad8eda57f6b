//===- HostScalarsTest.cpp - Host scalars that change ---------------------===//

#include "HostScalarsTesting.h"

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, HostScalarsTest, testing::Values(hostileHost()), suiteTargetName);
} // namespace rondo
