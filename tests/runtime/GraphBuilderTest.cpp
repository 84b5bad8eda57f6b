//===- GraphBuilderTest.cpp - Nodes and edges of small regions ------------===//

#include "ScheduleTesting.h"

#include "GraphBuilder.h"
#include "MemoryPlan.h"
#include "RegionBuffers.h"

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

class GraphBuilderTest : public ScheduleFixture {
protected:
  /// Plans the only region of `text` and builds its graph over memory of the test.
  void build(llvm::StringRef text, llvm::StringRef pipeline = regionPipeline) {
    build(lowered(text, pipeline));
  }
  void build(Schedule lowered, llvm::function_ref<void(Schedule &)> change = nullptr) {
    entry = nullptr;
    schedule = std::move(lowered);
    ASSERT_THAT(schedule.regions, SizeIs(1));
    planMemory(schedule, 1);
    addResultBuffers(schedule);
    if (change)
      change(schedule);
    region = schedule.regions[0];
    auto allocate = [&](uint64_t bytes) {
      memory.push_back(cantFail(Storage::allocate(device, bytes + 1)));
      return memory.back()->data();
    };
    bases = Bases();
    bases.schedule = &schedule;
    arguments.clear();
    for (const Place &place : schedule.inputPlaces)
      arguments.push_back(
          {place.isTensor() ? allocate(schedule.storages[place.storage].bytes) : nullptr, nullptr});
    bases.arguments = arguments;
    bases.arena.push_back(allocate(schedule.arenaBytes[0]));
    bases.slab.push_back(allocate(schedule.slabBytes[0]));
    bases.results.push_back(allocate(schedule.resultBytes[0]));
    bases.forwardResults.push_back(nullptr);
    scalars.assign(schedule.scalarKinds.size(), Slot());
    llvm::Expected<GraphEntryRef> made = buildGraph(request(), failure);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    entry = std::move(*made);
  }

  GraphRequest request() const { return {device, schedule, region, bases, scalars, true}; }

  size_t numNodes() const { return entry ? entry->graph->numNodes() : 0; }
  std::vector<GraphNodeKind> kinds() const {
    std::vector<GraphNodeKind> kinds;
    for (uint32_t i = 0; i < numNodes(); ++i)
      kinds.push_back(entry->graph->kind(GraphNodeId(i)));
    return kinds;
  }
  /// `1<0` for: node 1 waits for node 0.
  std::vector<std::string> edges() const {
    std::vector<std::string> edges;
    for (uint32_t i = 0; i < numNodes(); ++i)
      for (GraphNodeId dependency : entry->graph->dependencies(GraphNodeId(i)))
        edges.push_back(std::to_string(i) + "<" + std::to_string(dependency.index()));
    return edges;
  }

  static constexpr GraphNodeKind kernel = GraphNodeKind::Kernel, copy = GraphNodeKind::Copy;
  Schedule schedule;
  ScheduledRegion region;
  std::vector<StorageRef> memory;
  std::vector<BoundArgument> arguments;
  Bases bases;
  std::vector<Slot> scalars;
  BuildFailure failure;
  GraphEntryRef entry;
};

} // namespace

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

// Ops that share no data are not ordered; one that uses both waits for both.
TEST_F(GraphBuilderTest, IndependentOps) {
  build(R"(trace @t(%w: f32[4] parameter) {
  %a: f32[4] = neg(%w)
  %b: f32[4] = exp(%w)
  %c: f32[4] = add(%a, %b)
  return(%a, %b, %c)
})");
  EXPECT_THAT(kinds(), ElementsAre(kernel, kernel, kernel));
  EXPECT_THAT(edges(), ElementsAre("2<0", "2<1"));
}

// A value that takes the bytes of a dead one waits for who read that, and for nobody else.
TEST_F(GraphBuilderTest, WriteAfterReadInSharedMemory) {
  constexpr llvm::StringLiteral text = R"(trace @t(%w: f32[4] parameter) {
  %a: f32[4] = neg(%w)
  %b: f32[] = sum(%a)
  %c: f32[4] = exp(%w)
  %d: f32[] = sum(%c)
  return(%b, %d)
})";
  auto moveC = [&](bool isShared) {
    return [isShared](Schedule &schedule) {
      PlannedStorage *a = nullptr, *c = nullptr;
      for (PlannedStorage &storage : schedule.storages) {
        if (storage.name == "%a")
          a = &storage;
        if (storage.name == "%c")
          c = &storage;
      }
      schedule.arenaBytes[0] = 64;
      a->space = c->space = Space::Arena;
      a->offset = 0;
      c->offset = isShared ? 0 : 32;
    };
  };
  build(lowered(text), moveC(true));
  EXPECT_THAT(edges(), ElementsAre("1<0", "2<1", "3<2"));
  build(lowered(text), moveC(false));
  EXPECT_THAT(edges(), ElementsAre("1<0", "3<2"));
}

// In-place ops on a static input keep program order: reads wait for writes, writes for reads.
TEST_F(GraphBuilderTest, InPlace) {
  build(R"(trace @t(%b: f32[4] buffer, %w: f32[4] parameter) {
  %a: f32[4] = neg(%b)
  %c: f32[4] = add_(%b, %w)
  %d: f32[4] = exp(%c)
  %e: f32[4] = zero_(%c)
  return(%a, %d)
})");
  EXPECT_THAT(kinds(), ElementsAre(kernel, kernel, kernel, kernel));
  EXPECT_THAT(edges(), ElementsAre("1<0", "2<1", "3<2"));
  EXPECT_THAT(entry->buffers, SizeIs(4)) << "two of the caller's, two results";
  EXPECT_THAT(entry->copies, IsEmpty());
}

// A write to one half of a storage waits for who read a byte of it, not for who read the other.
TEST_F(GraphBuilderTest, PartsOfAStorage) {
  build(R"(trace @t(%b: f32[8] buffer) {
  %right: f32[4] = slice(%b) {dim = 0, start = 4}
  %most: f32[5] = slice(%b) {dim = 0, start = 3}
  %left: f32[4] = slice(%b) {dim = 0, end = 4}
  %c: f32[4] = exp(%right)
  %d: f32[5] = exp(%most)
  %a: f32[4] = zero_(%left)
  return(%c, %d)
})");
  EXPECT_THAT(edges(), ElementsAre("2<1"));
}

// Ops that advance one generator keep their order; the draws in between are free.
TEST_F(GraphBuilderTest, Generators) {
  schedule = lowered(R"(trace @t(%w: f32[4] parameter) {
  %r: rng = generator_read()
  %d: f32[4], %m: bool[4] = dropout(%w, %r) {offset = 0, p = 0.5}
  %e: f32[4], %n: bool[4] = dropout(%w, %r) {offset = 4, p = 0.5}
  generator_advance() {count = 8}
  return(%d, %m, %e, %n)
})");
  RNGState state;
  std::vector<RNGState *> generators = {&state};
  bases.generators = generators;
  // `build` takes bases anew, so the region is built by hand here.
  planMemory(schedule, 1);
  std::vector<std::byte> bytes(4096);
  auto *base =
      reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(bytes.data()) + 255) / 256 * 256);
  std::vector<BoundArgument> inputs = {{base, nullptr}};
  bases.arguments = inputs;
  bases.arena.push_back(base + 256);
  bases.results.push_back(base + 1024);
  bases.slab.push_back(nullptr);
  bases.forwardResults.push_back(nullptr);
  bases.schedule = &schedule;
  entry = cantFail(buildGraph({device, schedule, schedule.regions[0], bases, {}, true}, failure));
  EXPECT_THAT(edges(), ElementsAre("1<0", "2<0", "3<0"));
  EXPECT_EQ(state.offset, 0u) << "building executes nothing";
  cantFail(entry->launch(*stream, bases));
  EXPECT_EQ(state.offset, 8u);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

// An input that may be anywhere is copied in before its first reader and, if it is written, out
// after its last writer; each launch patches the copies.
TEST_F(GraphBuilderTest, CopiesInAndOut) {
  build(R"(trace @t(%x: f32[4], %y: f32[4]) {
  %a: f32[4] = add_(%x, %y)
  %b: f32[4] = exp(%a)
  return(%b)
})",
        copyingPipeline);
  EXPECT_THAT(kinds(), ElementsAre(kernel, kernel, kernel, copy)) << "two copies in by one node";
  EXPECT_THAT(edges(), ElementsAre("1<0", "2<1", "3<1"));
  EXPECT_EQ(entry->copiedBytes, 48u);
  for (float value : {1.0f, 2.0f}) { // in other memory each time
    Tensor x = floats({value, value, value, value}), y = floats({1, 2, 3, 4});
    arguments = {{x.data(), nullptr}, {y.data(), nullptr}};
    bases.arguments = arguments;
    cantFail(entry->launch(*stream, bases));
    EXPECT_THAT(doublesOf(x), ElementsAre(value + 1, value + 2, value + 3, value + 4));
    EXPECT_THAT(doublesOf(y), ElementsAre(1, 2, 3, 4));
  }
}

// What is overwritten as a whole is copied out only; where the layout has gaps it is copied in,
// too.
TEST_F(GraphBuilderTest, Overwritten) {
  build(R"(trace @t(%x: f32[4], %w: f32[4] parameter) {
  %a: f32[4] = copy_(%x, %w)
  return()
})",
        copyingPipeline);
  EXPECT_THAT(kinds(), ElementsAre(kernel, copy));
  EXPECT_THAT(edges(), ElementsAre("1<0"));

  build(R"(trace @t(%x: f32[2; 2]) {
  %a: f32[2; 2] = zero_(%x)
  return()
})",
        copyingPipeline);
  EXPECT_THAT(kinds(), ElementsAre(copy, kernel, copy));
  Tensor x = floats({1, 2, 3});
  arguments = {{x.data(), nullptr}};
  bases.arguments = arguments;
  cantFail(entry->launch(*stream, bases));
  EXPECT_THAT(doublesOf(x), ElementsAre(0, 2, 0));
}

// Small inputs that are only copied in share a node; each launch points it at them.
TEST_F(GraphBuilderTest, Gathers) {
  build(R"(trace @t(%x: f32[4], %y: f32[4], %big: f32[20000]) {
  %a: f32[4] = add(%x, %y)
  %b: f32[20000] = exp(%big)
  return(%a, %b)
})",
        copyingPipeline);
  EXPECT_THAT(kinds(), ElementsAre(kernel, copy, kernel, kernel));
  EXPECT_THAT(edges(), ElementsAre("2<0", "3<1", "3<2")) << "the copies lie where %b will";
  EXPECT_EQ(entry->copiedBytes, 80032u);
  Tensor big = floats(std::vector<float>(20000, 0));
  for (float value : {1.0f, 2.0f}) {
    Tensor x = floats({value, value, value, value}), y = floats({1, 2, 3, 4});
    arguments = {{x.data(), nullptr}, {y.data(), nullptr}, {big.data(), nullptr}};
    bases.arguments = arguments;
    cantFail(entry->launch(*stream, bases));
    EXPECT_EQ(*reinterpret_cast<float *>(bases.address(schedule.resultPlans[0].place.storage)),
              value + 1);
  }
}

//===----------------------------------------------------------------------===//
// Buffers that move
//===----------------------------------------------------------------------===//

// Every buffer that is elsewhere than the graph has it is found, and the graph can follow: inputs,
// those that are written, views of them, and results.
TEST_F(GraphBuilderTest, Patches) {
  build(R"(trace @t(%x: f32[4], %w: f32[4] parameter, %b: f32[8] buffer) {
  %half: f32[4] = slice(%b) {dim = 0, start = 4}
  %a: f32[4] = add_(%half, %x)
  %c: f32[4] = mul(%x, %w)
  %d: f32[4] = add(%c, %a)
  return(%d)
})",
        patchingPipeline);
  EXPECT_THAT(kinds(), ElementsAre(kernel, kernel, kernel));
  llvm::SmallVector<unsigned, 4> moved;
  entry->findChanged(bases, scalars, moved);
  EXPECT_THAT(moved, IsEmpty());

  Tensor x = floats({1, 2, 3, 4}), w = floats({2, 2, 2, 2}),
         b = floats({0, 0, 0, 0, 10, 20, 30, 40}), result = floats({0, 0, 0, 0});
  arguments = {{x.data(), nullptr}, {w.data(), nullptr}, {b.data(), nullptr}};
  bases.arguments = arguments;
  bases.results[0] = result.data();
  entry->findChanged(bases, scalars, moved);
  EXPECT_EQ(moved.size(), entry->buffers.size());
  cantFail(entry->explain(request()));
  for (unsigned i : moved)
    EXPECT_EQ(entry->problem(i), "");
  EXPECT_EQ(cantFail(entry->patch(bases, scalars, moved)), 3u) << "every node once";
  cantFail(entry->launch(*stream, bases));
  EXPECT_THAT(doublesOf(b), ElementsAre(0, 0, 0, 0, 11, 22, 33, 44));
  EXPECT_THAT(doublesOf(result), ElementsAre(13, 26, 39, 52));

  // Only what moved is changed.
  Tensor other = floats({0, 0, 0, 0});
  bases.results[0] = other.data();
  moved.clear();
  entry->findChanged(bases, scalars, moved);
  EXPECT_THAT(moved, SizeIs(2)) << "the result, and %c, whose memory it takes over";
  EXPECT_EQ(cantFail(entry->patch(bases, scalars, moved)), 2u);
  cantFail(entry->launch(*stream, bases));
  EXPECT_THAT(doublesOf(result), ElementsAre(13, 26, 39, 52));
  EXPECT_THAT(doublesOf(other), ElementsAre(14, 28, 42, 56));
}

// A graph that is captured anew keeps nothing of where things were.
TEST_F(GraphBuilderTest, Rebuilds) {
  build(R"(trace @t(%x: f32[4], %w: f32[4] parameter) {
  %a: f32[4] = add(%x, %w)
  %b: f32[4] = exp(%a)
  return(%b)
})");
  Tensor x = floats({0, 0, 0, 0}), w = floats({0, 0, 0, 0}), result = floats({7, 7, 7, 7});
  arguments = {{x.data(), nullptr}, {w.data(), nullptr}};
  bases.arguments = arguments;
  bases.results[0] = result.data();
  cantFail(entry->rebuild(request(), failure));
  llvm::SmallVector<unsigned, 4> moved;
  entry->findChanged(bases, scalars, moved);
  EXPECT_THAT(moved, IsEmpty());
  cantFail(entry->launch(*stream, bases));
  EXPECT_THAT(doublesOf(result), ElementsAre(1, 1, 1, 1));
}

//===----------------------------------------------------------------------===//
// Ops of nodes
//===----------------------------------------------------------------------===//

// The entry knows the op of each node that an op made, with its module and source.
TEST_F(GraphBuilderTest, OpsOfNodes) {
  build(R"(trace @t(%x: f32[4]) {
  %v: f32[2, 2] = reshape(%x) {shape = [2, 2]}
  %a: f32[2, 2] = neg(%v) module "head" loc("m.py":7:1)
  %b: f32[2, 2] = exp(%a)
  return(%b)
})",
        copyingPipeline);
  EXPECT_THAT(kinds(), ElementsAre(copy, kernel, kernel));
  ASSERT_THAT(entry->nodes, SizeIs(2));
  EXPECT_EQ(entry->nodes[0].node, GraphNodeId(1));
  EXPECT_EQ(entry->nodes[0].step, 0u);
  EXPECT_EQ(entry->nodes[0].text, "'neg' op of module head at m.py:7:1");
  EXPECT_EQ(entry->nodes[1].node, GraphNodeId(2));
  EXPECT_THAT(entry->nodes[1].text, HasSubstr("'exp' op"));
  EXPECT_THAT(entry->kernels, SizeIs(2));
}

// Regions of one op, without inputs, without results, and with tensors of no elements.
TEST_F(GraphBuilderTest, Degenerate) {
  build("trace @t(%w: f32[4] parameter) {\n  %a: f32[4] = neg(%w)\n  return(%a)\n}");
  EXPECT_THAT(kinds(), ElementsAre(kernel));

  build(R"(trace @t() {
  %o: f32[5, 5] = full() {dtype = f32, shape = [5, 5], value = 1}
  %m: f32[5, 5] = mul(%o) {scalar = 2}
  return(%m)
})");
  EXPECT_THAT(kinds(), ElementsAre(kernel, kernel));
  EXPECT_THAT(edges(), ElementsAre("1<0"));
  EXPECT_THAT(entry->copies, IsEmpty());

  build("trace @t(%b: f32[4] buffer) {\n  %a: f32[4] = zero_(%b)\n  return()\n}");
  EXPECT_THAT(kinds(), ElementsAre(kernel));

  build(R"(trace @t(%x: f32[0, 4], %y: f32[0, 4]) {
  %a: f32[0, 4] = add_(%x, %y)
  %b: f32[0, 4] = exp(%a)
  return(%b)
})");
  EXPECT_THAT(kinds(), ElementsAre(kernel, kernel));
  EXPECT_THAT(edges(), IsEmpty()) << "no bytes are touched";
  cantFail(entry->launch(*stream, bases));
}

// An op that makes a host scalar is refused: a graph would freeze it.
TEST_F(GraphBuilderTest, HostScalar) {
  Schedule bad = lowered(parse(R"(pair @p {
  domain #0 "d"
  forward @f(%x: f32[]) claimed regions {
    %i: f64 = cuda_graph(%x) {region = 0} domain #0 {
    ^(%a: f32[]):
      %b: f32[] = neg(%a) claim("host")
      %i: f64 = item(%b) claim("host")
      return(%i)
    }
    return(%i)
  }
})"));
  planMemory(bad, 1);
  std::vector<std::byte> bytes(256);
  std::vector<BoundArgument> inputs = {{bytes.data(), nullptr}};
  bases.schedule = &bad;
  bases.arguments = inputs;
  for (auto *base : {&bases.arena, &bases.slab, &bases.results, &bases.forwardResults})
    base->push_back(bytes.data() + 64);
  llvm::Expected<GraphEntryRef> made =
      buildGraph({device, bad, bad.regions[0], bases, {}, true}, failure);
  ASSERT_FALSE(bool(made));
  EXPECT_THAT(llvm::toString(made.takeError()),
              testing::AllOf(HasSubstr("'item' op"), HasSubstr("host scalar")));
  EXPECT_EQ(failure.step, 1u);
}
