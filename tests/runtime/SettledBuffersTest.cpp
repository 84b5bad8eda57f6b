//===- SettledBuffersTest.cpp - Copied buffers that stay ------------------===//
//
// Policy `auto` may choose to copy a buffer that could be anywhere. When it turns out to be where
// it was in nearly every call, it is patched instead, which then costs nothing.
//
//===----------------------------------------------------------------------===//

#include "CallTesting.h"

using namespace rondo;

namespace {

class SettledBuffersTest : public CallTest {
protected:
  SettledBuffersTest() : CallTest({.randomOrderSeed = 5, .poison = true}) {}

  /// y = 4 x, of which the region uses x four times.
  Program fourfold(CUDAGraphTransform &transform) {
    ProgramOptions options = steadyOptions();
    options.poison = options.checkGraphs = true;
    options.costs = BufferCosts{.patchedNode = 1, .copyNode = 1, .gatherNode = 1e-3, .byte = 0};
    return cantFail(compile(parse(R"(
trace @f(%x: f32[8]) {
  %a: f32[8] = add(%x, %x)
  %b: f32[8] = add(%a, %x)
  %y: f32[8] = add(%b, %x)
  %z: f32[8] = sub(%y, %x)
  return(%y, %z)
})"),
                            device, &host, pipelineWith(transform, host), options));
  }

  /// Calls with `x`, which holds `value`.
  void call(Program &program, const Tensor &x, float value) {
    overwrite(x, value);
    Results results = forward(program, {x});
    ASSERT_EQ(numbersOf(results[0]), std::vector<double>(8, 4 * value));
    ASSERT_EQ(numbersOf(results[1]), std::vector<double>(8, 3 * value));
  }

  static BufferInfo input(const Program &program) { return program.regions()[0].buffers[0]; }
};

// A buffer that stays is copied for a while, then captured once more and never copied again, also
// when it moves later: then it is followed.
TEST_F(SettledBuffersTest, StopsCopying) {
  CUDAGraphTransform transform(graphOptions());
  Program program = fourfold(transform);
  ASSERT_EQ(input(program).policy, BufferPolicy::Copied) << input(program).why;
  Tensor x = filled(device, 0, 8), other = filled(device, 0, 8);
  unsigned number = 0;
  while (input(program).policy == BufferPolicy::Copied && number < 200)
    call(program, x, float(++number));
  EXPECT_EQ(input(program).policy, BufferPolicy::Patched);
  EXPECT_THAT(input(program).why, testing::HasSubstr("it seldom moved"));
  EXPECT_EQ(program.counters().captures, 1u);
  uint64_t copied = program.counters().copiedBytes;
  EXPECT_EQ(copied, program.counters().replays * 32);
  for (unsigned i = 0; i < 20; ++i)
    call(program, i % 5 == 4 ? other : x, float(++number));
  CacheCounters counters = program.counters();
  EXPECT_EQ(counters.copiedBytes, copied);
  EXPECT_EQ(counters.captures, 2u);
  EXPECT_EQ(counters.recaptures, 0u);
  EXPECT_EQ(counters.entries, 1u) << "the graph that copied is gone";
  EXPECT_EQ(counters.patches, 7u) << "there and back";
}

// A buffer that moves stays copied, and so does one that the transform wants copied.
TEST_F(SettledBuffersTest, KeepsCopying) {
  Tensor tensors[] = {filled(device, 0, 8), filled(device, 0, 8)};
  CUDAGraphTransform transform(graphOptions());
  Program moving = fourfold(transform);
  for (unsigned i = 0; i < 200; ++i)
    call(moving, tensors[i % 8 == 0], float(i));
  EXPECT_EQ(input(moving).policy, BufferPolicy::Copied);
  EXPECT_EQ(moving.counters().captures, 1u);

  CUDAGraphOptions options = graphOptions();
  options.inputs = InputPolicy::Copied;
  CUDAGraphTransform copying(options);
  Program wanted = fourfold(copying);
  for (unsigned i = 0; i < 200; ++i)
    call(wanted, tensors[0], float(i));
  EXPECT_EQ(input(wanted).policy, BufferPolicy::Copied);
  EXPECT_EQ(wanted.counters().captures, 1u);
}

} // namespace
