//===- PatchTableTest.cpp - Words of nodes that are addresses -------------===//

#include "PatchTable.h"

#include "rondo/host/HostDevice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <gmock/gmock.h>

#include <cstring>

using namespace rondo;
using llvm::cantFail;
using testing::HasSubstr;

namespace {

using Words = std::vector<uint64_t>;

Words lastRun;
template <size_t count> void recordWords(const std::byte *parameters) {
  lastRun.resize(count);
  std::memcpy(lastRun.data(), parameters, count * sizeof(uint64_t));
}
void doNothing(const std::byte *) {}

/// Builds a graph three times, for buffers that are elsewhere each time, and explains it.
class PatchTableTest : public testing::Test {
protected:
  using Addresses = std::vector<uint64_t>;
  using Build = llvm::function_ref<void(Graph &, const Addresses &)>;

  static KernelLaunch kernel(HostFunction function, const Words &words, size_t bytes = 0) {
    KernelLaunch launch;
    launch.function = reinterpret_cast<const void *>(function);
    launch.parameters = {reinterpret_cast<const std::byte *>(words.data()),
                         bytes ? bytes : words.size() * sizeof(uint64_t)};
    return launch;
  }

  /// Each node may touch the buffers that `touched` names, by node; without it, all.
  PatchTable explain(Build build, std::vector<std::vector<unsigned>> touched = {},
                     std::vector<GraphNodeId> excluded = {}) {
    for (unsigned i = 0; i < 3; ++i) {
      graphs[i] = cantFail(device->createGraph());
      build(*graphs[i], where[i]);
    }
    if (isControlled) {
      control = cantFail(device->createGraph());
      build(*control, where[0]);
    }
    std::vector<PatchSource> sources;
    for (unsigned b = 0; b < where[0].size(); ++b)
      sources.push_back({kind, {where[0][b], where[1][b], where[2][b]}});
    auto uses = [&](GraphNodeId node, llvm::function_ref<void(unsigned)> visit) {
      for (unsigned b = 0; b < sources.size(); ++b)
        if (touched.empty() || llvm::is_contained(touched[node.index()], b))
          visit(b);
    };
    PatchTable table =
        cantFail(PatchTable::explain({{graphs[0].get(), graphs[1].get(), graphs[2].get()},
                                      sources,
                                      excluded,
                                      uses,
                                      ~size_t(0),
                                      control.get()}));
    exec = cantFail(graphs[0]->instantiate());
    return table;
  }

  static std::byte *address(uint64_t number) { return reinterpret_cast<std::byte *>(number); }
  void launch() { cantFail(exec->launch(*stream)); }

  DeviceRef device = createHostDevice();
  std::unique_ptr<Stream> stream = cantFail(device->createStream());
  PatchSource::Kind kind = PatchSource::Address;
  /// Of two buffers, in each of the graphs.
  std::array<Addresses, 3> where = {Addresses{0x1000, 0x2000}, Addresses{0x9010, 0xa0f0},
                                    Addresses{0x5550, 0x7770}};
  std::array<std::unique_ptr<Graph>, 3> graphs;
  bool isControlled = false; ///< is the first graph built once more, at last?
  std::unique_ptr<Graph> control;
  std::unique_ptr<GraphExec> exec;
};

// Addresses are found with what is added to them; numbers that stay the same are none, and a patch
// changes the words of the buffers that moved and no other.
TEST_F(PatchTableTest, FindsWords) {
  PatchTable table = explain([](Graph &graph, const Addresses &at) {
    Words words = {at[0] + 64, 7, at[1], at[0], 0x1000};
    cantFail(graph.addKernel(kernel(&recordWords<5>, words), {}));
  });
  EXPECT_EQ(table.problem(0), "");
  EXPECT_EQ(table.problem(1), "");
  EXPECT_EQ(table.numNodes(0), 1u);
  EXPECT_EQ(cantFail(table.patch(*exec, PatchTable::Change{0, 0x30000})), 1u);
  launch();
  EXPECT_EQ(lastRun, (Words{0x30040, 7, 0x2000, 0x30000, 0x1000}));
  EXPECT_EQ(cantFail(table.patch(*exec, {{0, 0x40000}, {1, 0x50000}})), 1u)
      << "the node is set once";
  launch();
  EXPECT_EQ(lastRun, (Words{0x40040, 7, 0x50000, 0x40000, 0x1000}));
}

// Nodes that name no buffer are left alone, and what each buffer costs is known.
TEST_F(PatchTableTest, ManyNodes) {
  PatchTable table = explain([](Graph &graph, const Addresses &at) {
    for (uint64_t i = 0; i < 6; ++i)
      cantFail(graph.addKernel(
          kernel(&recordWords<2>, i % 2 ? Words{at[0], i} : Words{i, i / 4 ? at[1] : i}), {}));
  });
  EXPECT_EQ(table.numNodes(0), 3u);
  EXPECT_EQ(table.numNodes(1), 1u);
  EXPECT_EQ(cantFail(table.patch(*exec, PatchTable::Change{0, 0x10})), 3u);
  EXPECT_EQ(cantFail(table.patch(*exec, {})), 0u);
}

// Fills and copies name buffers, too.
TEST_F(PatchTableTest, FillsAndCopies) {
  std::array<std::vector<std::byte>, 3> memory;
  for (unsigned i = 0; i < 3; ++i) {
    memory[i].assign(64 + 16 * i, std::byte(0));
    where[i] = {asWord(memory[i].data()), asWord(memory[i].data()) + 16 + 8 * i};
  }
  PatchTable table = explain([](Graph &graph, const Addresses &at) {
    GraphNodeId fill = cantFail(graph.addFill(address(at[0]), 0x5a, 4, {}));
    cantFail(graph.addCopy(address(at[1]) + 4, address(at[0]), 4, fill));
    cantFail(graph.addEmpty({}));
  });
  EXPECT_EQ(table.numNodes(0), 2u);
  EXPECT_EQ(table.numNodes(1), 1u);
  std::vector<std::byte> other(32);
  EXPECT_EQ(
      cantFail(table.patch(*exec, {{0, asWord(other.data())}, {1, asWord(other.data() + 16)}})),
      2u);
  launch();
  for (unsigned i = 0; i < other.size(); ++i)
    EXPECT_EQ(other[i], std::byte(i < 4 || (i >= 20 && i < 24) ? 0x5a : 0)) << i;
  EXPECT_EQ(memory[0], std::vector<std::byte>(64)) << "nothing is done at the old addresses";
}

// A word that changed by something else than a buffer's address makes all that its node may touch
// unpatchable, and nothing else.
TEST_F(PatchTableTest, WhatIsNotUnderstood) {
  struct Case {
    const char *name;
    Words (*words)(const Addresses &);
  };
  const Case cases[] = {
      {"shifted",
       [](const Addresses &at) {
         return Words{at[0] >> 4, 0};
       }},
      {"negated",
       [](const Addresses &at) {
         return Words{~at[0], 0};
       }},
      {"a difference",
       [](const Addresses &at) {
         return Words{at[1] - at[0], 0};
       }},
      {"a sum",
       [](const Addresses &at) {
         return Words{at[1] + at[0], 0};
       }},
      {"low half",
       [](const Addresses &at) {
         return Words{at[0] << 32, at[0]};
       }},
  };
  for (const Case &item : cases) {
    SCOPED_TRACE(item.name);
    PatchTable table = explain(
        [&](Graph &graph, const Addresses &at) {
          Words words = item.words(at);
          cantFail(graph.addKernel(kernel(&recordWords<2>, words), {}));
          Words good = {at[0], at[1]};
          cantFail(graph.addKernel(kernel(&recordWords<2>, good), {}));
        },
        {{0}, {0, 1}});
    EXPECT_THAT(table.problem(0).str(), HasSubstr("computed from it"));
    EXPECT_EQ(table.problem(1), "");
  }
}

// What differs though nothing moved says nothing: a pointer into the host's memory, of which other
// bytes differ each time, is no obstacle. What only differs when something moves is one.
TEST_F(PatchTableTest, Noise) {
  const Words pointers = {0x5575d4e8a100, 0x5575d4fb8300, 0x5575d503fa00, 0x5575d4fa7000};
  for (bool isNoise : {true, false}) {
    isControlled = true;
    unsigned number = 0;
    PatchTable table = explain([&](Graph &graph, const Addresses &at) {
      unsigned build = number++;
      Words words = {at[0], pointers[!isNoise && build == 3 ? 0 : build], at[1]};
      cantFail(graph.addKernel(kernel(&recordWords<3>, words), {}));
    });
    EXPECT_EQ(table.problem(0).empty(), isNoise);
    EXPECT_EQ(table.problem(1).empty(), isNoise);
    if (!isNoise)
      continue;
    cantFail(table.patch(*exec, {{0, 0x30000}, {1, 0x40000}}));
    launch();
    EXPECT_EQ(lastRun, (Words{0x30000, pointers[0], 0x40000}));
  }
}

// The last bytes of a block count though they are no word.
TEST_F(PatchTableTest, TailOfABlock) {
  for (bool isInTail : {false, true}) {
    PatchTable table = explain([&](Graph &graph, const Addresses &at) {
      Words words = {at[1], isInTail ? at[0] : 3};
      cantFail(graph.addKernel(kernel(&doNothing, words, 12), {}));
    });
    EXPECT_EQ(table.problem(0).empty(), !isInTail);
    EXPECT_EQ(table.problem(1).empty(), !isInTail);
  }
}

// Another kernel, another launch, other nodes: what is submitted depends on addresses.
TEST_F(PatchTableTest, OtherNodes) {
  auto isFirst = [&](const Addresses &at) { return at[0] == where[0][0]; };
  PatchTable table = explain([&](Graph &graph, const Addresses &at) {
    Words words = {at[0]};
    cantFail(graph.addKernel(kernel(isFirst(at) ? &recordWords<1> : &doNothing, words), {}));
  });
  EXPECT_THAT(table.problem(0).str(), HasSubstr("the kernel that runs"));
  table = explain([&](Graph &graph, const Addresses &at) {
    Words words = {at[0]};
    KernelLaunch launch = kernel(&doNothing, words);
    launch.grid = {isFirst(at) ? 1u : 2u, 1, 1};
    cantFail(graph.addKernel(launch, {}));
  });
  EXPECT_THAT(table.problem(0).str(), HasSubstr("the kernel that runs"));
  table = explain([&](Graph &graph, const Addresses &at) {
    Words words = {at[0]};
    cantFail(graph.addKernel(kernel(&doNothing, words), {}));
    if (!isFirst(at))
      cantFail(graph.addKernel(kernel(&doNothing, words), {}));
  });
  EXPECT_THAT(table.problem(0).str(), HasSubstr("what is submitted"));
  EXPECT_THAT(table.problem(1).str(), HasSubstr("what is submitted"));
}

// A node that somebody else points at things is not looked at.
TEST_F(PatchTableTest, Excluded) {
  PatchTable table = explain(
      [](Graph &graph, const Addresses &at) {
        Words words = {at[0] >> 4};
        cantFail(graph.addKernel(kernel(&recordWords<1>, words), {}));
      },
      {}, {GraphNodeId(0)});
  EXPECT_EQ(table.problem(0), "");
  EXPECT_EQ(table.numNodes(0), 0u);
}

// Probes in which two buffers moved alike, or one did not move, prove nothing.
TEST_F(PatchTableTest, ProbesThatCannotBeToldApart) {
  auto build = [](Graph &graph, const Addresses &at) {
    Words words = {at[0], at[1]};
    cantFail(graph.addKernel(kernel(&recordWords<2>, words), {}));
  };
  where = {Addresses{0x1000, 0x2000}, Addresses{0x3000, 0x4000}, Addresses{0x5000, 0x6000}};
  EXPECT_NE(explain(build).problem(0), "");
  where = {Addresses{0x1000, 0x2000}, Addresses{0x1000, 0x4010}, Addresses{0x5000, 0x6000}};
  EXPECT_NE(explain(build).problem(0), "");
}

/// The bits of a number.
uint64_t bitsOf(double value) {
  return llvm::bit_cast<uint64_t>(value);
}
uint64_t bitsOf(float low, float high) {
  return uint64_t(llvm::bit_cast<uint32_t>(high)) << 32 | llvm::bit_cast<uint32_t>(low);
}

// Host scalars are found as they are, and doubles rounded to f32 in either half of a word; what is
// computed from one is not understood.
TEST_F(PatchTableTest, Scalars) {
  kind = PatchSource::Double;
  where = {Addresses{bitsOf(1.1), bitsOf(5.0)}, Addresses{bitsOf(1.7), bitsOf(3.3)},
           Addresses{bitsOf(1.3), bitsOf(7.9)}};
  auto number = [](uint64_t bits) { return llvm::bit_cast<double>(bits); };
  PatchTable table = explain(
      [&](Graph &graph, const Addresses &at) {
        Words words = {at[0], bitsOf(float(number(at[0])), 8), bitsOf(9, float(number(at[0])))};
        cantFail(graph.addKernel(kernel(&recordWords<3>, words), {}));
        words = {bitsOf(1 - number(at[1]))};
        cantFail(graph.addKernel(kernel(&doNothing, words), {}));
      },
      {{0}, {1}});
  EXPECT_EQ(table.problem(0), "");
  EXPECT_THAT(table.problem(1).str(), HasSubstr("computed from it"));
  EXPECT_EQ(cantFail(table.patch(*exec, PatchTable::Change{0, bitsOf(0.1)})), 1u);
  launch();
  EXPECT_EQ(lastRun, (Words{bitsOf(0.1), bitsOf(0.1f, 8), bitsOf(9, 0.1f)}));

  // At a distance from an integer is no integer, and no f32 is looked for.
  kind = PatchSource::Integer;
  where = {Addresses{3}, Addresses{10}, Addresses{5}};
  EXPECT_EQ(explain([](Graph &graph, const Addresses &at) {
              Words words = {at[0]};
              cantFail(graph.addKernel(kernel(&doNothing, words), {}));
            }).problem(0),
            "");
  EXPECT_NE(explain([](Graph &graph, const Addresses &at) {
              Words words = {at[0] + 1};
              cantFail(graph.addKernel(kernel(&doNothing, words), {}));
            }).problem(0),
            "");
}

// A graph without nodes, and one without sources.
TEST_F(PatchTableTest, Degenerate) {
  PatchTable table = explain([](Graph &, const Addresses &) {});
  EXPECT_EQ(table.numNodes(0), 0u);
  where = {};
  table = explain([](Graph &graph, const Addresses &) {
    Words words = {3};
    cantFail(graph.addKernel(kernel(&recordWords<1>, words), {}));
  });
  EXPECT_EQ(cantFail(table.patch(*exec, {})), 0u);
}

} // namespace
