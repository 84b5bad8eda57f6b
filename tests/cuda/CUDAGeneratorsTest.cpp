//===- CUDAGeneratorsTest.cpp - Generators on a GPU -----------------------===//

#include "CUDAProgramTesting.h"

#include "runtime/GeneratorsTesting.h"

using namespace rondo;

namespace {

class CUDAGeneratorsTest : public OnCUDA<GeneratorsFixture> {};

// Two generators in one region are apart, and each advances by its own total.
TEST_F(CUDAGeneratorsTest, TwoInOneRegion) {
  drawFromTwo();
}

// Saved states, restored, give the same numbers again.
TEST_F(CUDAGeneratorsTest, SavedAndRestored) {
  saveAndRestore();
}

// States of many generators are apart.
TEST_F(CUDAGeneratorsTest, Many) {
  saveMany();
}

// What is set while replays are in flight counts for the calls that follow, on any stream.
TEST_F(CUDAGeneratorsTest, SetInFlight) {
  setInFlight();
}

// The first use of a generator may come while its thread captures.
TEST_F(CUDAGeneratorsTest, MadeWhileCapturing) {
  makeWhileCapturing();
}

// So may the first call of a program that draws.
TEST_F(CUDAGeneratorsTest, FirstCallWhileCapturing) {
  callFirstWhileCapturing();
}

// Streams by way of which states cannot be read or set are refused.
TEST_F(CUDAGeneratorsTest, RefusedStreams) {
  refuseStreams(nullptr);
}

// 8: captures on another thread change nothing of what replays draw, nor replays what they draw.
TEST_F(CUDAGeneratorsTest, Case8CapturesOnAnotherThread) {
  replayBesideCaptures();
}

// 9: the mask that a backward draws again is the forward's.
TEST_F(CUDAGeneratorsTest, Case9RecomputedDropout) {
  recomputeDropout();
}

// 13: choices are by the weights of the call.
TEST_F(CUDAGeneratorsTest, Case13Multinomial) {
  chooseByWeights();
}

} // namespace
