//===- ScheduleTest.cpp - Traces as steps, places and storages ------------===//

#include "ScheduleTesting.h"

#include "MemoryPlan.h"

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

using ScheduleTest = ScheduleFixture;

/// `r0[0, 8)` for a read of bytes of storage 0, `w` for a write.
std::vector<std::string> accessesOf(const Step &step) {
  std::vector<std::string> texts;
  for (const Access &access : step.accesses)
    texts.push_back((access.isWrite ? "w" : "r") + std::to_string(access.storage) + "[" +
                    std::to_string(access.begin) + ", " + std::to_string(access.end) + ")");
  return texts;
}

/// `%x: read`, `%x: read written` of the caller's buffers with a policy.
std::vector<std::string> buffersOf(const Schedule &schedule, const ScheduledRegion &region,
                                   BufferPolicy policy) {
  std::vector<std::string> texts;
  for (const RegionBuffer &buffer : region.buffers)
    if (buffer.policy == policy)
      texts.push_back(schedule.storages[buffer.storage].name + ":" +
                      (buffer.isRead ? " read" : "") + (buffer.isWritten ? " written" : ""));
  return texts;
}

} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

// Views make no step: they name bytes of the storage that they view, wherever they start.
TEST_F(ScheduleTest, ViewsArePlaces) {
  Schedule schedule = lowered(R"(
trace @t(%x: f32[4, 2]) {
  %s: f32[2, 2] = slice(%x) {dim = 0, end = 3, start = 1}
  %p: f32[2, 2; 1, 2] = permute(%s) {dims = [1, 0]}
  %c: f32[2; 2] = select(%p) {dim = 0, index = 1}
  %y: f32[2] = neg(%c)
  return(%y, %p)
})");
  ASSERT_THAT(schedule.steps, SizeIs(1));
  EXPECT_THAT(accessesOf(schedule.steps[0]), ElementsAre("r0[12, 24)", "w1[0, 8)"));
  EXPECT_EQ(schedule.steps[0].operands[0].byteOffset, 12);
  ASSERT_THAT(schedule.resultPlans, SizeIs(2));
  EXPECT_EQ(schedule.storages[1].space, Space::Results);
  EXPECT_EQ(schedule.resultPlans[1].place.storage, 0);
  EXPECT_EQ(schedule.resultPlans[1].place.byteOffset, 8);
  EXPECT_THAT(schedule.resultPlans[1].layout->strides, ElementsAre(1, 2));
}

// The result of an in-place op is its operand; arguments that are written are collected.
TEST_F(ScheduleTest, InPlace) {
  Schedule schedule = lowered(R"(
trace @t(%x: f32[4], %b: f32[4] buffer) {
  %t: f32[4] = neg(%x)
  %u: f32[4] = add_(%t, %b)
  %v: f32[4] = relu_(%b)
  return(%u)
})");
  ASSERT_THAT(schedule.steps, SizeIs(3));
  EXPECT_THAT(accessesOf(schedule.steps[1]), ElementsAre("r2[0, 16)", "r1[0, 16)", "w2[0, 16)"));
  EXPECT_EQ(schedule.steps[1].results[0].storage, 2);
  EXPECT_THAT(schedule.writtenInputs, ElementsAre(1));
  EXPECT_THAT(schedule.storages, SizeIs(3)) << "x, b and t";
}

// Host scalars have slots: of arguments, constants and results of ops; a region takes those that it
// neither makes nor knows.
TEST_F(ScheduleTest, Scalars) {
  Schedule schedule = lowered(R"(
trace @t(%x: f32[4], %lr: f64, %unused: i64) {
  %two: i64 = constant() {value = 2}
  %a: f32[4] = mul(%x, %lr)
  %b: f32[4] = mul(%a, %two)
  %s: f32[] = sum(%b)
  %i: f64 = item(%s)
  %c: f32[4] = mul(%b, %i)
  return(%c, %i, %lr)
})");
  EXPECT_EQ(schedule.scalarKinds.size(), 4u);
  ASSERT_THAT(schedule.constants, SizeIs(1));
  EXPECT_EQ(schedule.constants[0].second.i64, 2);
  ASSERT_THAT(schedule.regions, SizeIs(2));
  EXPECT_THAT(schedule.regions[0].scalars, ElementsAre(unsigned(schedule.inputPlaces[1].scalar)));
  EXPECT_THAT(schedule.regions[1].scalars,
              ElementsAre(unsigned(schedule.resultPlans[1].place.scalar)));
  EXPECT_EQ(schedule.resultPlans[2].place.scalar, schedule.inputPlaces[1].scalar);
  EXPECT_EQ(schedule.resultPlans[1].scalarKind, ScalarKind::F64);
}

// A step knows its op, module and source for messages, and its generators by number.
TEST_F(ScheduleTest, TextAndGenerators) {
  Schedule schedule = lowered(R"(
trace @t(%x: f32[4]) {
  %r: rng = generator_read() {generator = "b"}
  %d: f32[4], %m: bool[4] = dropout(%x, %r) {offset = 0, p = 0.5} module "block.0" loc("m.py":3:5)
  generator_advance() {count = 4, generator = "b"}
  generator_advance() {count = 4, generator = "a"}
  return(%d)
})");
  ASSERT_THAT(schedule.steps, SizeIs(4));
  EXPECT_EQ(schedule.steps[1].text, "'dropout' op of module block.0 at m.py:3:5");
  EXPECT_THAT(schedule.steps[0].text, HasSubstr("'generator_read' op at t.trace:3:"));
  EXPECT_THAT(schedule.generators, ElementsAre("b", "a"));
  EXPECT_THAT(schedule.steps[0].generators, ElementsAre(0));
  EXPECT_THAT(schedule.steps[1].generators, IsEmpty());
  EXPECT_THAT(schedule.steps[3].generators, ElementsAre(1));
  EXPECT_FALSE(schedule.steps[0].resources[0].second) << "reads";
  EXPECT_TRUE(schedule.steps[2].resources[0].second) << "writes";
  EXPECT_NE(schedule.steps[2].resources[0].first, schedule.steps[3].resources[0].first);
}

//===----------------------------------------------------------------------===//
// Lifetimes
//===----------------------------------------------------------------------===//

// A temporary lives from the step that makes it to its last use, through views; what the caller
// gets or gave lives on.
TEST_F(ScheduleTest, Lifetimes) {
  Schedule schedule = lowered(R"(
trace @t(%x: f32[4]) {
  %a: f32[4] = neg(%x)
  %v: f32[2, 2] = reshape(%a) {shape = [2, 2]}
  %b: f32[4] = exp(%x)
  %c: f32[2, 2] = relu(%v)
  %d: f32[4] = add(%b, %b)
  return(%c)
})",
                              "execution,del");
  auto lifetime = [&](llvm::StringRef name) {
    for (const PlannedStorage &storage : schedule.storages)
      if (storage.name == name)
        return std::pair<uint32_t, uint32_t>(storage.begin, storage.end);
    ADD_FAILURE() << "no storage " << name.str();
    return std::pair<uint32_t, uint32_t>();
  };
  using Lifetime = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(lifetime("%x"), Lifetime(0, ~0u));
  EXPECT_EQ(lifetime("%a"), Lifetime(0, 2));
  EXPECT_EQ(lifetime("%b"), Lifetime(1, 3));
  EXPECT_EQ(lifetime("%c"), Lifetime(2, ~0u));
  EXPECT_EQ(lifetime("%d"), Lifetime(3, 3)) << "made, and never used";

  findDeadStorages(schedule);
  ASSERT_THAT(schedule.deadAfter, SizeIs(4));
  EXPECT_THAT(schedule.deadAfter[0], IsEmpty());
  EXPECT_THAT(schedule.deadAfter[2], SizeIs(1));
  EXPECT_EQ(schedule.storages[schedule.deadAfter[2][0]].name, "%a");
  EXPECT_THAT(schedule.deadAfter[3], SizeIs(2));
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

// Parameters, buffers and their views are static inputs of a region. What is copied is copied in
// unless it is overwritten as a whole, and out if it is written.
TEST_F(ScheduleTest, InputsOfRegions) {
  constexpr llvm::StringLiteral text = R"(
trace @t(%x: f32[4], %w: f32[2, 2] parameter, %b: f32[4] buffer, %o: f32[4], %p: f32[4],
         %gaps: f32[2, 2; 4, 1], %m: f32[4]) {
  %v: f32[4] = reshape(%w) {shape = [4]}
  %a: f32[4] = add(%x, %v)
  %n: f32[4] = add_(%b, %a)
  %z: f32[4] = copy_(%o, %a)
  %front: f32[2] = slice(%p) {dim = 0, end = 2}
  %f: f32[2] = zero_(%front)
  %g: f32[2, 2; 4, 1] = zero_(%gaps)
  %k: f32[4] = mul_(%m, %m)
  return()
})";
  Schedule schedule = lowered(text, "execution,cuda-graph{min-ops=1 inputs=copied},del");
  ASSERT_THAT(schedule.regions, SizeIs(1));
  const ScheduledRegion &region = schedule.regions[0];
  EXPECT_EQ(region.begin, 0u);
  EXPECT_EQ(region.end, 6u);
  const char *others[] = {"%x: read", "%o: written", "%p: read written", "%gaps: read written",
                          "%m: read written"};
  EXPECT_THAT(buffersOf(schedule, region, BufferPolicy::Static),
              ElementsAre("%w: read", "%b: read written"));
  EXPECT_THAT(buffersOf(schedule, region, BufferPolicy::Copied), testing::ElementsAreArray(others));
  for (const RegionBuffer &buffer : region.buffers) {
    EXPECT_EQ(buffer.consumers, 1u);
    if (buffer.policy != BufferPolicy::Copied)
      continue;
    const PlannedStorage &staging = schedule.storages[buffer.staging];
    EXPECT_EQ(staging.bytes, schedule.storages[buffer.storage].bytes);
    EXPECT_EQ(staging.begin, region.begin);
    EXPECT_EQ(staging.end, buffer.isWritten ? region.end - 1 : 0) << staging.name;
  }

  // What is patched has no copy.
  schedule = lowered(text, "execution,cuda-graph{min-ops=1 inputs=patched},del");
  EXPECT_THAT(buffersOf(schedule, schedule.regions[0], BufferPolicy::Patched),
              testing::ElementsAreArray(others));
  for (const PlannedStorage &storage : schedule.storages)
    EXPECT_FALSE(llvm::StringRef(storage.name).startswith("copy of")) << storage.name;
}

// What the attribute `inputs` of a region says goes before the tags.
TEST_F(ScheduleTest, PolicyOfInputs) {
  constexpr llvm::StringLiteral format = R"(pair @p {
  domain #0 "d"
  forward @f(%x: f32[2], %w: f32[2] parameter) claimed regions {
    %y: f32[2] = cuda_graph(%x, %w) {inputs = [POLICIES], region = 3} domain #0 {
    ^(%a: f32[2], %b: f32[2]):
      %h: f32[2] = add(%a, %b) claim("host")
      %y: f32[2] = relu(%h) claim("host")
      return(%y)
    }
    return(%y)
  }
})";
  struct Case {
    const char *policies;
    std::vector<std::string> fixed, patched, copied;
  };
  const Case cases[] = {
      {R"("auto", "auto")", {"%w: read"}, {"%x: read"}, {}},
      {R"("static", "copied")", {"%x: read"}, {}, {"%w: read"}},
      {R"("static", "static")", {"%x: read", "%w: read"}, {}, {}},
      {R"("patched", "copied")", {}, {"%x: read"}, {"%w: read"}},
  };
  for (const Case &item : cases) {
    SCOPED_TRACE(item.policies);
    std::string text = format.str();
    text.replace(text.find("POLICIES"), 8, item.policies);
    Schedule schedule = lowered(parse(text));
    ASSERT_THAT(schedule.regions, SizeIs(1));
    EXPECT_EQ(schedule.regions[0].id, 3u);
    EXPECT_EQ(schedule.regions[0].numOps, 2u);
    EXPECT_TRUE(schedule.regions[0].domain);
    const ScheduledRegion &region = schedule.regions[0];
    EXPECT_EQ(buffersOf(schedule, region, BufferPolicy::Static), item.fixed);
    EXPECT_EQ(buffersOf(schedule, region, BufferPolicy::Patched), item.patched);
    EXPECT_EQ(buffersOf(schedule, region, BufferPolicy::Copied), item.copied);
    EXPECT_EQ(schedule.resultPlans[0].place.storage, schedule.steps[1].results[0].storage);
  }
}

// Traces and regions of nothing, of views alone, and results that are missing or arguments.
TEST_F(ScheduleTest, Degenerate) {
  Schedule nothing = lowered("trace @t() {\n  return()\n}");
  EXPECT_THAT(nothing.steps, IsEmpty());
  EXPECT_THAT(nothing.regions, IsEmpty());

  Schedule views = lowered(parse(R"(pair @p {
  domain #0 "d"
  forward @f(%x: f32[4]) claimed regions {
    %y: f32[2, 2] = cuda_graph(%x) {region = 0} domain #0 {
    ^(%a: f32[4]):
      %y: f32[2, 2] = reshape(%a) {shape = [2, 2]} claim("host")
      return(%y)
    }
    return(%y, none, %x)
  }
})"));
  EXPECT_THAT(views.steps, IsEmpty());
  EXPECT_THAT(views.regions, IsEmpty());
  ASSERT_THAT(views.resultPlans, SizeIs(3));
  EXPECT_EQ(views.resultPlans[0].place.storage, 0);
  EXPECT_FALSE(views.resultPlans[1].place.isTensor());
  EXPECT_TRUE(views.results[1].isMissing);
  EXPECT_EQ(views.storages[0].space, Space::Argument);

  Schedule empty = lowered(R"(trace @t(%x: f32[0, 4]) {
  %y: f32[0, 4] = neg(%x)
  %z: f32[3] = empty() {dtype = f32, shape = [3]}
  return(%y, %z)
})");
  ASSERT_THAT(empty.steps, SizeIs(1));
  EXPECT_THAT(empty.steps[0].accesses, IsEmpty());
  EXPECT_EQ(empty.storages[2].space, Space::Results);
  EXPECT_EQ(empty.storages[2].begin, 0u) << "never written, there throughout";
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

// What the forward saves is, in the backward, the same bytes: of an argument, the slab or a result;
// views share them, scalars go by value.
TEST_F(ScheduleTest, Saved) {
  TracePair pair = piped(R"(
pair @p {
  forward @fw(%x: f32[4], %w: f32[2, 2] parameter, %s: f64) {
    %v: f32[2] = select(%w) {dim = 0, index = 1}
    %h: f32[4] = exp(%x)
    %y: f32[4] = mul(%h, %s)
    return(%y, %h saved #0, %v saved #1, %s saved #2, %y saved #3, %w saved #4)
  }
  backward @bw(%g: f32[4], %h: f32[4] saved #0, %v: f32[2] saved #1, %s: f64 saved #2,
               %y: f32[4] saved #3, %w: f32[2, 2] saved #4) {
    %a: f32[4] = mul(%g, %h)
    %b: f32[4] = mul(%a, %y)
    %c: f32[4] = mul(%b, %s)
    %k: f32[2] = neg(%v)
    %u: f32[2, 2] = neg(%w)
    return(%c, %k, %u)
  }
})");
  Schedule forward = lowered(pair);
  planMemory(forward, 1);
  EXPECT_THAT(forward.results, SizeIs(1));
  ASSERT_THAT(forward.saved, SizeIs(5));
  EXPECT_EQ(forward.saved[1].name, "v");
  EXPECT_EQ(forward.saved[1].value.place.byteOffset, 8);
  EXPECT_EQ(forward.storages[forward.saved[0].value.place.storage].space, Space::Slab);
  EXPECT_EQ(forward.storages[forward.saved[3].value.place.storage].space, Space::Results);
  EXPECT_THAT(forward.savedArguments, SizeIs(1)) << "w once";
  EXPECT_THAT(forward.savedScalars, SizeIs(1));

  Schedule backward = lowered(pair, Side::Backward, &forward);
  EXPECT_THAT(backward.inputs, SizeIs(1));
  EXPECT_THAT(backward.scalarsFromSaved, SizeIs(1));
  auto operand = [&](unsigned step, unsigned i) -> const PlannedStorage & {
    return backward.storages[backward.steps[step].operands[i].storage];
  };
  EXPECT_EQ(operand(0, 1).space, Space::Slab);
  EXPECT_EQ(operand(0, 1).offset, forward.storages[forward.saved[0].value.place.storage].offset);
  EXPECT_EQ(operand(1, 1).space, Space::ForwardResults);
  EXPECT_EQ(operand(3, 0).space, Space::Saved);
  EXPECT_EQ(backward.steps[3].operands[0].byteOffset, 8);
  EXPECT_EQ(backward.steps[3].operands[0].storage, backward.steps[4].operands[0].storage);
  ASSERT_THAT(backward.regions, SizeIs(1));
  EXPECT_THAT(buffersOf(backward, backward.regions[0], BufferPolicy::Static),
              ElementsAre("%w: read"));
  EXPECT_THAT(buffersOf(backward, backward.regions[0], BufferPolicy::Patched),
              ElementsAre("%g: read"));
}
