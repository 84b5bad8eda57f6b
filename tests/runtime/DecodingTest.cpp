//===- DecodingTest.cpp - Decoding with a cache ---------------------------===//

#include "DecodingTesting.h"

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, DecodingTest, testing::Values(hostileHost()), suiteTargetName);
} // namespace rondo
