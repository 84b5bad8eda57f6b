//===- CUDASeveralCallablesTest.cpp - Layers through one transform --------===//
//
// Three stages, each a pair of its own, through one transform, on a GPU.
//
//===----------------------------------------------------------------------===//

#include "CUDAProgramTesting.h"

#include "runtime/SeveralCallablesTesting.h"

using namespace rondo;

namespace {

using CUDASeveralCallablesTest = OnCUDA<SeveralCallablesFixture>;

// Forward 1 … N, backward N … 1, again and again; all forwards first; one forward, one backward.
TEST_F(CUDASeveralCallablesTest, Orders) {
  equalsEager(oneByOne(numStages, 4));
  equalsEager(forwardsFirst(numStages, 4));
  equalsEager(oneForwardOneBackward(numStages, 6));
}

// Any order that data allows, another in every round.
TEST_F(CUDASeveralCallablesTest, RandomOrders) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    equalsEager(randomOrder(numStages, 5, seed), 2);
  }
}

// Memory stays at the level of the first round.
TEST_F(CUDASeveralCallablesTest, MemoryStaysLevel) {
  staysLevel(oneForwardOneBackward(numStages, 6), {3, 2, 1});
  staysLevel(forwardsFirst(numStages, 4), {4, 4, 4});
}

} // namespace
