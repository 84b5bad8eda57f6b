//===- CaptureDomainThreadsTest.cpp - A domain used by threads ------------===//

#include "rondo/ir/CaptureDomain.h"

#include "support/RunThreads.h"

#include <gtest/gtest.h>

#include <atomic>

using namespace rondo;

namespace {

constexpr int numThreads = 8;
const char keys[4] = {};

/// However many threads ask at once, each slot is made once and all get the same content.
TEST(CaptureDomainThreads, SlotIsMadeOnce) {
  for (int round = 0; round < 50; ++round) {
    CaptureDomainRef domain = CaptureDomain::create("d");
    std::atomic<int> calls = 0;
    std::shared_ptr<void> got[numThreads][std::size(keys)];
    runThreads(numThreads, [&](int t) {
      for (size_t i = 0; i < std::size(keys); ++i) {
        size_t k = (i + t) % std::size(keys);
        got[t][k] = domain->slot(&keys[k], [&] { return std::make_shared<int>(++calls); });
      }
    });
    EXPECT_EQ(calls, int(std::size(keys)));
    for (size_t k = 0; k < std::size(keys); ++k)
      for (int t = 0; t < numThreads; ++t)
        EXPECT_EQ(got[t][k], domain->findSlot(&keys[k]));
  }
}

/// Filling, finding and erasing at once loses nothing: every content made dies exactly once.
TEST(CaptureDomainThreads, EraseWhileUsed) {
  struct Counted {
    std::atomic<int> &made, &died;
    Counted(std::atomic<int> &made, std::atomic<int> &died) : made(made), died(died) { ++made; }
    ~Counted() { ++died; }
  };
  std::atomic<int> made = 0, died = 0;
  {
    CaptureDomainRef domain = CaptureDomain::create("d");
    std::atomic<int> missing = 0;
    runThreads(numThreads, [&](int t) {
      for (int i = 0; i < 500; ++i) {
        const void *key = &keys[(i + t) % std::size(keys)];
        auto content = domain->slot(key, [&] { return std::make_shared<Counted>(made, died); });
        missing += content == nullptr;
        if (i % 3 == 0)
          domain->eraseSlot(key);
        domain->findSlot(key);
      }
    });
    EXPECT_EQ(missing, 0);
    EXPECT_GT(made, 0);
  }
  EXPECT_EQ(made, died);
}

/// References may be copied and dropped by all threads; the domain dies with the last one.
TEST(CaptureDomainThreads, CountedByAllThreads) {
  bool dead = false;
  struct Witness {
    bool &dead;
    ~Witness() { dead = true; }
  };
  CaptureDomainRef domain = CaptureDomain::create("d");
  domain->slot(&keys[0], [&] { return std::shared_ptr<Witness>(new Witness{dead}); });
  CaptureDomainRef perThread[numThreads];
  for (CaptureDomainRef &reference : perThread)
    reference = domain;
  domain.reset();
  runThreads(numThreads, [&](int t) {
    for (int i = 0; i < 1000; ++i)
      CaptureDomainRef copy = perThread[t];
    perThread[t].reset();
  });
  EXPECT_TRUE(dead);
}

} // namespace
