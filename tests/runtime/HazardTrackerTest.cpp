//===- HazardTrackerTest.cpp - Orderings against an oracle per byte -------===//

#include "HazardTracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bitset>
#include <random>
#include <set>

using namespace rondo;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

namespace {

struct Touch {
  uint64_t begin, end;
  bool isWrite;
};

constexpr unsigned maxSteps = 48;
using Steps = std::bitset<maxSteps>;

/// The steps that each step waits for by its edges, directly or not.
std::vector<Steps> closure(const std::vector<std::set<uint32_t>> &edges) {
  std::vector<Steps> before(edges.size());
  for (size_t step = 0; step < edges.size(); ++step)
    for (uint32_t dependency : edges[step])
      before[step] |= before[dependency] | Steps().set(dependency);
  return before;
}

/// Two steps are ordered if one writes a byte that the other touches.
std::vector<std::set<uint32_t>> conflicts(const std::vector<std::vector<Touch>> &steps) {
  std::vector<std::set<uint32_t>> edges(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      for (const Touch &a : steps[i])
        for (const Touch &b : steps[k])
          for (uint64_t byte = a.begin; byte < a.end; ++byte)
            if (byte >= b.begin && byte < b.end && (a.isWrite || b.isWrite))
              edges[i].insert(k);
  return edges;
}

std::vector<std::set<uint32_t>> tracked(const std::vector<std::vector<Touch>> &steps) {
  HazardTracker tracker;
  std::vector<std::set<uint32_t>> edges(steps.size());
  for (uint32_t i = 0; i < steps.size(); ++i) {
    llvm::SmallVector<uint32_t, 8> dependencies;
    for (const Touch &touch : steps[i])
      tracker.depend(touch.begin, touch.end, touch.isWrite, dependencies);
    for (const Touch &touch : steps[i])
      tracker.note(touch.begin, touch.end, touch.isWrite, i);
    edges[i].insert(dependencies.begin(), dependencies.end());
  }
  return edges;
}

llvm::SmallVector<uint32_t, 8> depend(HazardTracker &tracker, uint64_t begin, uint64_t end,
                                      bool isWrite) {
  llvm::SmallVector<uint32_t, 8> dependencies;
  tracker.depend(begin, end, isWrite, dependencies);
  return dependencies;
}

} // namespace

// For random accesses exactly the orderings hold that a comparison byte by byte asks for.
TEST(HazardTrackerTest, EqualsOracle) {
  std::mt19937 random(7);
  auto below = [&](unsigned limit) { return random() % limit; };
  for (unsigned round = 0; round < 400; ++round) {
    unsigned bytes = 1 + below(40), writePercent = below(101);
    std::vector<std::vector<Touch>> steps(1 + below(maxSteps));
    for (std::vector<Touch> &touches : steps) {
      touches.resize(below(5));
      for (Touch &touch : touches) {
        touch.begin = below(bytes);
        touch.end = touch.begin + below(bytes - touch.begin + 1); // may be empty
        touch.isWrite = below(100) < writePercent;
      }
    }
    ASSERT_EQ(closure(tracked(steps)), closure(conflicts(steps))) << "round " << round;
  }
}

// Reads wait for the write before them, not for each other; a write waits for all reads since, and
// through them for the write before.
TEST(HazardTrackerTest, ReadsAreUnordered) {
  HazardTracker tracker;
  tracker.note(0, 8, true, 0);
  EXPECT_THAT(depend(tracker, 0, 4, false), UnorderedElementsAre(0));
  tracker.note(0, 4, false, 1);
  EXPECT_THAT(depend(tracker, 2, 8, false), testing::Each(0));
  tracker.note(2, 8, false, 2);
  EXPECT_THAT(depend(tracker, 4, 6, true), UnorderedElementsAre(2)) << "which waits for 0";
  auto write = depend(tracker, 0, 8, true);
  EXPECT_EQ(std::set<uint32_t>(write.begin(), write.end()), (std::set<uint32_t>{1, 2}));
  EXPECT_THAT(depend(tracker, 8, 12, true), IsEmpty());
}

// An empty access touches nothing: it waits for nothing and nothing waits for it.
TEST(HazardTrackerTest, EmptyAccess) {
  HazardTracker tracker;
  tracker.note(0, 8, true, 0);
  EXPECT_THAT(depend(tracker, 4, 4, true), IsEmpty());
  tracker.note(4, 4, true, 1);
  EXPECT_THAT(depend(tracker, 0, 8, false), UnorderedElementsAre(0));
}

// Addresses at the upper end count like any other.
TEST(HazardTrackerTest, HighAddresses) {
  HazardTracker tracker;
  uint64_t top = ~uint64_t(0);
  tracker.note(top - 2, top - 1, true, 3);
  tracker.note(top - 1, top, true, 4);
  EXPECT_THAT(depend(tracker, top - 2, top - 1, true), UnorderedElementsAre(3));
  EXPECT_THAT(depend(tracker, top - 1, top, false), UnorderedElementsAre(4));
  EXPECT_THAT(depend(tracker, 0, top - 2, true), IsEmpty());
}
