//===- MemoryReuseTest.cpp - Results that take over an operand's memory ---===//

#include "ScheduleTesting.h"

#include "MemoryPlan.h"

#include <map>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

namespace {

class MemoryReuseTest : public ScheduleFixture {
protected:
  /// Whose memory each value takes over, by names.
  std::map<std::string, std::string> takeovers(llvm::StringRef text) const {
    Schedule schedule = lowered(text);
    planMemory(schedule, 1);
    std::map<std::string, std::string> names;
    for (const PlannedStorage &storage : schedule.storages)
      if (storage.takesOver >= 0) {
        const PlannedStorage &other = schedule.storages[storage.takesOver];
        EXPECT_EQ(storage.space, other.space);
        EXPECT_EQ(storage.offset, other.offset);
        EXPECT_EQ(storage.begin, other.end);
        names[storage.name] = other.name;
      }
    return names;
  }
};

} // namespace

// A pointwise op computes in the memory of an operand that it is the last to use, as often as that
// happens, and also if the caller gets the result.
TEST_F(MemoryReuseTest, Chain) {
  llvm::StringRef text = R"(trace @t(%x: f32[8, 64], %y: f32[64]) {
  %a: f32[8, 64] = exp(%x)
  %b: f32[8, 64] = add(%y, %a)
  %c: f32[8, 64] = relu(%b)
  %d: f32[8, 64] = mul(%c, %c)
  return(%d)
})";
  EXPECT_THAT(takeovers(text), ElementsAre(Pair("%b", "%a"), Pair("%c", "%b"), Pair("%d", "%c")));
  Schedule schedule = lowered(text);
  planMemory(schedule, 1);
  EXPECT_EQ(schedule.memory.results, 2048u);
  EXPECT_EQ(schedule.memory.temporaries, 2048u);
  EXPECT_EQ(schedule.memory.lowerBound, 2048u + 256 + 2048);
}

// So do results of another dtype of the same size, and results in any layout that the operand has.
TEST_F(MemoryReuseTest, Layouts) {
  EXPECT_THAT(takeovers(R"(trace @t(%x: i32[8], %y: f32[2, 3; 1, 2]) {
  %a: i32[8] = neg(%x)
  %b: f32[8] = exp(%a)
  %c: f32[2, 3; 1, 2] = exp(%y)
  %d: f32[2, 3; 1, 2] = neg(%c)
  %s: f32[] = sum(%b)
  %t: f32[] = sum(%d)
  return(%s, %t)
})"),
              ElementsAre(Pair("%b", "%a"), Pair("%d", "%c")));
}

// No memory is taken over that is needed later, that is an argument's, that is saved, or that has
// other bytes.
TEST_F(MemoryReuseTest, NotWhatIsNeeded) {
  EXPECT_THAT(takeovers(R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x)
  %b: f32[8] = neg(%a)
  %c: f32[8] = add(%a, %b)
  return(%b, %c)
})"),
              ElementsAre(Pair("%c", "%a")))
      << "%a is needed for %c; %b is a result";
  EXPECT_THAT(takeovers(R"(pair @p {
  forward @fw(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = neg(%a)
    return(%b, %a saved #0)
  }
  backward @bw(%g: f32[8], %a: f32[8] saved #0) {
    %c: f32[8] = mul(%g, %a)
    return(%c)
  }
})"),
              IsEmpty());
  EXPECT_THAT(takeovers(R"(trace @t(%x: f32[8], %y: f32[8, 1]) {
  %a: f32[8] = exp(%x)
  %b: f32[8, 8] = add(%a, %y)
  %c: bool[8, 8] = gt(%b, %x)
  %d: f64[8, 8] = cast(%c) {dtype = f64}
  %e: f32[8, 8] = cast(%d) {dtype = f32}
  return(%e)
})"),
              IsEmpty())
      << "broadcast, or of elements of other sizes";
}

// An operand whose elements lie elsewhere than the result's would be overwritten before it is read.
TEST_F(MemoryReuseTest, NotInAnotherLayout) {
  EXPECT_THAT(takeovers(R"(trace @t(%x: f32[4, 4]) {
  %a: f32[4, 4] = exp(%x)
  %p: f32[4, 4; 1, 4] = permute(%a) {dims = [1, 0]}
  %b: f32[4, 4] = neg(%p)
  return(%b)
})"),
              IsEmpty());
  // Nor does it help that another name of the same bytes has the result's layout.
  EXPECT_THAT(takeovers(R"(trace @t(%x: f32[4, 4]) {
  %a: f32[4, 4] = exp(%x)
  %p: f32[4, 4; 1, 4] = permute(%a) {dims = [1, 0]}
  %b: f32[4, 4] = add(%a, %p)
  return(%b)
})"),
              IsEmpty());
  // A part of a storage is not all of it.
  EXPECT_THAT(takeovers(R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x)
  %s: f32[4] = slice(%a) {dim = 0, end = 4}
  %b: f32[4] = neg(%s)
  return(%b)
})"),
              IsEmpty());
}

// An op that looks at all of an operand for each element of its result gets memory of its own.
TEST_F(MemoryReuseTest, NotByOtherOps) {
  EXPECT_THAT(takeovers(R"(trace @t(%x: f32[4, 4]) {
  %a: f32[4, 4] = exp(%x)
  %b: f32[4, 4] = matmul(%a, %x)
  %c: f32[4, 4] = softmax(%b) {dim = 1}
  %d: f32[4, 4] = cumsum(%c) {dim = 0}
  return(%d)
})"),
              IsEmpty());
}

// An operand is taken over once, though several results could have it; in-place results have theirs
// anyway.
TEST_F(MemoryReuseTest, Once) {
  EXPECT_THAT(takeovers(R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x)
  %b: f32[8] = relu_(%a)
  %c: f32[8] = neg(%b)
  return(%c)
})"),
              ElementsAre(Pair("%c", "%a")));
}

// Memory that was taken over is dead when its last owner is, not before: with poison and in graphs
// the results are those of memory that nothing shares.
TEST_F(MemoryReuseTest, Runs) {
  llvm::StringRef text = R"(pair @p {
  forward @fw(%x: f32[3], %w: f32[3] parameter) {
    %a: f32[3] = mul(%x, %w)
    %b: f32[3] = neg(%a)
    %c: f32[3] = mul(%b, %b)
    %d: f32[3] = add(%c, %x)
    %s: f32[] = sum(%d)
    return(%s, %d saved #0)
  }
  backward @bw(%g: f32[], %d: f32[3] saved #0) {
    %e: f32[3] = mul(%d, %g)
    %f: f32[3] = neg(%e)
    %h: f32[3] = add(%f, %d)
    %i: f32[3] = neg(%h)
    return(%i)
  }
})";
  ProgramOptions options = steadyOptions();
  options.poison = true;
  std::unique_ptr<Program> program = compiled(text, options);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->memory(Side::Forward).lowerBound, 12u + 12 + 12 + 4);
  bool takesOver = false;
  for (const StorageInfo &storage : program->memoryPlan(Side::Backward).storages)
    takesOver |= storage.takesOver.has_value();
  EXPECT_TRUE(takesOver);
  for (float scale : {1.f, 2.f, 3.f}) { // the first call builds the graphs
    SavedState saved;
    llvm::SmallVector<Value> sum =
        forward(*program, {floats({scale, 1, -1}), floats({2, 3, 4})}, &saved);
    llvm::SmallVector<Value> gradient =
        backward(*program, std::move(saved), {floats({2}, std::vector<int64_t>())});
    cantFail(stream->synchronize());
    double d0 = 4 * scale * scale + scale;
    ASSERT_EQ(sum.size(), 1u);
    ASSERT_EQ(gradient.size(), 1u);
    EXPECT_THAT(valuesOf(sum[0]), ElementsAre(d0 + 10 + 15));
    EXPECT_THAT(valuesOf(gradient[0]), ElementsAre(d0, 10, 15));
  }
  EXPECT_GT(program->counters().replays, 0u);
}
