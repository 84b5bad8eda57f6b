//===- SeveralCallablesTest.cpp - Layers through one transform ------------===//
//
// Three stages, each a pair of its own, through one transform, on a hostile host device: nodes of a
// graph in any valid order, dead memory poisoned.
//
//===----------------------------------------------------------------------===//

#include "SeveralCallablesTesting.h"

using namespace rondo;

namespace {

class SeveralCallablesTest : public SeveralCallablesFixture {
protected:
  SeveralCallablesTest() {
    useTarget({createHostDevice({.randomOrderSeed = 11, .poison = true}), {&host}});
  }
  HostExecutor host;
};

// Forward 1 … N, backward N … 1, again and again.
TEST_F(SeveralCallablesTest, OneByOne) {
  equalsEager(oneByOne(numStages, 4));
}

// All forwards, and then all backwards from the last: each finds its own saved values.
TEST_F(SeveralCallablesTest, ForwardsFirst) {
  equalsEager(forwardsFirst(numStages, 4));
}

// One forward, one backward, with as many microbatches in flight as there are stages.
TEST_F(SeveralCallablesTest, OneForwardOneBackward) {
  equalsEager(oneForwardOneBackward(numStages, 6));
}

// Any order that data allows, another in every round.
TEST_F(SeveralCallablesTest, RandomOrders) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    equalsEager(randomOrder(numStages, 5, seed), 2);
  }
}

// The same stages, called in one order after the other.
TEST_F(SeveralCallablesTest, ChangingOrders) {
  CUDAGraphTransform transform(graphOptions()), unused(graphOptions());
  Stages eager = makeStages(unused, true), stages = makeStages(transform);
  for (unsigned round = 0; round < 30; ++round) {
    StageOrder order = round % 5 == 0   ? oneForwardOneBackward(numStages, 4)
                       : round % 5 == 1 ? oneByOne(numStages, 4)
                                        : randomOrder(numStages, 1 + round % 7, round);
    ASSERT_EQ(play(stages, order, round), play(eager, order, round)) << "round " << round;
  }
}

// Memory stays at the level of the first round.
TEST_F(SeveralCallablesTest, MemoryStaysLevel) {
  staysLevel(oneByOne(numStages, 4), {1, 1, 1});
  staysLevel(oneForwardOneBackward(numStages, 6), {3, 2, 1});
  staysLevel(forwardsFirst(numStages, 4), {4, 4, 4});
}

// A stage that goes leaves the graphs of the others, which share its cache, as they are.
TEST_F(SeveralCallablesTest, OneStageGoes) {
  CUDAGraphTransform transform(graphOptions());
  Stages stages = makeStages(transform);
  StageOrder order = oneByOne(numStages, 1);
  play(stages, order, 1);
  std::shared_ptr<GraphCache> cache = GraphCache::find(transform.domain(), *device);
  EXPECT_EQ(cache->counters().entries, 2 * numStages);
  Stages others = makeStages(transform);
  play(others, order, 1);
  EXPECT_EQ(cache->counters().entries, 4 * numStages);
  others.clear();
  EXPECT_EQ(cache->counters().entries, 2 * numStages);
  play(stages, order, 2);
  EXPECT_EQ(cache->counters().captures, 4 * numStages);
}

} // namespace
