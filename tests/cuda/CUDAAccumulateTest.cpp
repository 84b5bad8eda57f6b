//===- CUDAAccumulateTest.cpp - Microbatches that are added up, on a GPU --===//

#include "CUDAProgramTesting.h"

#include "runtime/AccumulateTesting.h"

using namespace rondo;

namespace {

using CUDAAccumulateTest = OnCUDA<AccumulateFixture>;

// Four microbatches of a recorded trace in replay are four eager ones, the first of which
// overwrites.
TEST_F(CUDAAccumulateTest, FourMicrobatches) {
  for (const char *trace :
       {"mlp", "gpt_tiny", "llama_tiny", "gpt_tiny_checkpoint", "gpt_tiny_dropout"}) {
    SCOPED_TRACE(trace);
    accumulateFourMicrobatches(target, trace);
  }
}

// 11: microbatches without zeroing accumulate.
TEST_F(CUDAAccumulateTest, Case11WithoutZeroing) {
  accumulatesWithoutZeroing();
}

// 11: what is returned fresh is the caller's own.
TEST_F(CUDAAccumulateTest, Case11FreshGradients) {
  returnsFreshGradients();
}

// The flag on the device says in every call whether buffers are overwritten, be they nan.
TEST_F(CUDAAccumulateTest, FlagDecides) {
  flagDecides();
}

// Parameters are accumulated or fresh one by one.
TEST_F(CUDAAccumulateTest, SomeAccumulate) {
  someAccumulate();
}

} // namespace
