//===- OrderCheckerTest.cpp - Graphs with and without an edge -------------===//

#include "OrderChecker.h"

#include "HazardTracker.h"

#include "rondo/host/HostDevice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace rondo;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

using Edges = std::vector<std::set<uint32_t>>; ///< by node: what it waits for

std::unique_ptr<Graph> graphOf(const DeviceRef &device, const Edges &edges) {
  std::unique_ptr<Graph> graph = cantFail(device->createGraph());
  for (const std::set<uint32_t> &dependencies : edges) {
    llvm::SmallVector<GraphNodeId, 4> nodes;
    for (uint32_t dependency : dependencies)
      nodes.push_back(GraphNodeId(dependency));
    cantFail(graph->addEmpty(nodes));
  }
  return graph;
}

TouchedBytes touch(uint32_t node, uint64_t begin, uint64_t end, bool isWrite) {
  return {GraphNodeId(node), GraphNodeId(node), begin, end, isWrite};
}

class OrderCheckerTest : public testing::Test {
protected:
  std::string errorOf(const Edges &edges, llvm::ArrayRef<TouchedBytes> touched) const {
    llvm::Error error = checkOrder(*graphOf(device, edges), touched);
    return error ? llvm::toString(std::move(error)) : "";
  }
  DeviceRef device = createHostDevice();
};

/// Does `to` wait for `from`, directly or not?
bool waits(const Edges &edges, uint32_t to, uint32_t from) {
  if (to <= from)
    return false;
  for (uint32_t dependency : edges[to])
    if (dependency == from || waits(edges, dependency, from))
      return true;
  return false;
}

} // namespace

// What conflicts has to be ordered, directly or through other nodes; what does not may be free.
TEST_F(OrderCheckerTest, Cases) {
  struct Case {
    const char *what;
    Edges edges;
    std::vector<TouchedBytes> touched;
    bool isOrdered;
  };
  const Case cases[] = {
      {"nothing", {}, {}, true},
      {"read after write", {{}, {0}}, {touch(0, 0, 8, true), touch(1, 4, 12, false)}, true},
      {"the same without an edge", {{}, {}}, {touch(0, 0, 8, true), touch(1, 4, 12, false)}, false},
      {"write after read", {{}, {}}, {touch(0, 0, 8, false), touch(1, 7, 8, true)}, false},
      {"write after write", {{}, {}}, {touch(0, 0, 8, true), touch(1, 0, 8, true)}, false},
      {"two reads", {{}, {}}, {touch(0, 0, 8, false), touch(1, 0, 8, false)}, true},
      {"bytes that only meet", {{}, {}}, {touch(0, 0, 8, true), touch(1, 8, 16, true)}, true},
      {"through a third", {{}, {0}, {1}}, {touch(0, 0, 8, true), touch(2, 0, 8, true)}, true},
      {"common parent", {{}, {0}, {0}}, {touch(1, 0, 8, true), touch(2, 0, 8, true)}, false},
      {"one step twice", {{}}, {touch(0, 0, 8, false), touch(0, 0, 8, true)}, true},
      {"the later given first", {{}, {0}}, {touch(1, 0, 8, true), touch(0, 0, 8, true)}, true},
  };
  for (const Case &item : cases) {
    SCOPED_TRACE(item.what);
    std::string error = errorOf(item.edges, item.touched);
    EXPECT_EQ(error.empty(), item.isOrdered) << error;
    if (!item.isOrdered) {
      EXPECT_THAT(error, AllOf(HasSubstr("nodes"), HasSubstr("no order")));
    }
  }
}

// Of a step with several nodes the first has to wait for the last of the other step.
TEST_F(OrderCheckerTest, StepsOfSeveralNodes) {
  std::vector<TouchedBytes> touched = {{GraphNodeId(0), GraphNodeId(1), 0, 8, true},
                                       {GraphNodeId(2), GraphNodeId(3), 0, 8, true}};
  EXPECT_EQ(errorOf({{}, {0}, {1}, {2}}, touched), "");
  EXPECT_THAT(errorOf({{}, {0}, {0}, {2}}, touched), HasSubstr("n1 and n2"));
  EXPECT_THAT(errorOf({{}, {0}, {}, {1, 2}}, touched), HasSubstr("n1 and n2"));
}

// Graphs whose edges the tracker found pass; without one of the edges they pass only if the rest
// still orders what it ordered.
TEST_F(OrderCheckerTest, FindsARemovedEdge) {
  std::mt19937 random(3);
  unsigned found = 0;
  for (unsigned round = 0; round < 100; ++round) {
    HazardTracker tracker;
    Edges edges(4 + random() % 12);
    std::vector<TouchedBytes> touched;
    for (uint32_t node = 0; node < edges.size(); ++node) {
      std::vector<TouchedBytes> own;
      llvm::SmallVector<uint32_t, 8> dependencies;
      for (unsigned i = 0; i < 2; ++i) {
        uint64_t begin = random() % 16;
        own.push_back(touch(node, begin, begin + 1 + random() % 8, random() % 2));
        tracker.depend(own[i].begin, own[i].end, own[i].isWrite, dependencies);
      }
      for (const TouchedBytes &bytes : own)
        tracker.note(bytes.begin, bytes.end, bytes.isWrite, node);
      touched.insert(touched.end(), own.begin(), own.end());
      edges[node].insert(dependencies.begin(), dependencies.end());
    }
    ASSERT_EQ(errorOf(edges, touched), "");
    for (uint32_t node = 0; node < edges.size(); ++node) {
      for (uint32_t dependency : std::set<uint32_t>(edges[node])) {
        Edges damaged = edges;
        damaged[node].erase(dependency);
        bool isStillOrdered = waits(damaged, node, dependency);
        EXPECT_EQ(errorOf(damaged, touched).empty(), isStillOrdered)
            << "round " << round << ": without " << dependency << " before " << node;
        found += !isStillOrdered;
      }
    }
  }
  EXPECT_GT(found, 100u);
}
