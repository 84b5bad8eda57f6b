//===- CasesTest.cpp - What went wrong elsewhere --------------------------===//
//
// The cases of CasesTesting.h on a hostile host, and one for which a process needs two devices.
//
//===----------------------------------------------------------------------===//

#include "CasesTesting.h"

using namespace rondo;

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, CasesTest, testing::Values(hostileHost()), suiteTargetName);
} // namespace rondo

namespace {

class OtherDeviceTest : public CallTest {
protected:
  OtherDeviceTest() : CallTest(hostile()) {}

  static HostDeviceOptions hostile(uint16_t index = 0) {
    HostDeviceOptions options;
    options.index = index;
    options.randomOrderSeed = 3;
    options.poison = true;
    return options;
  }
};

// 27: ops on another device, between ops that are in graphs, never are: they run in every call and
// see what there is then.
TEST_F(OtherDeviceTest, Case27OtherDevice) {
  MemoryLog otherMemory;
  HostDeviceOptions options = hostile(1);
  options.memoryHook = otherMemory.hook();
  DeviceRef other = createHostDevice(options);
  CUDAGraphOptions graphs = graphOptions();
  graphs.device = Device::host();
  CUDAGraphTransform transform(graphs);
  CountingExecutor counting(host);
  ProgramOptions programOptions;
  programOptions.poison = programOptions.checkGraphs = true;
  {
    Program program = cantFail(compile(parse(R"(
trace @f(%x: f32[8], %w: f32[8] parameter) {
  %a: f32[8] = mul(%x, %w)
  %b: f32[8] = add(%a, %w)
  %c: f32[8]@host:1 = to_device(%b) {device = host:1}
  %d: f32[8]@host:1 = neg(%c)
  %e: f32[8]@host:1 = add(%d, %c) {alpha = 3}
  %f: f32[8] = to_device(%e) {device = host}
  %g: f32[8] = mul(%f, %w)
  %y: f32[8] = add(%g, %x)
  return(%y, %e)
})"),
                                       {device, other}, {&counting},
                                       pipelineWith(transform, counting), programOptions));
    EXPECT_EQ(program.regions().size(), 2u);
    Tensor w = filled(device, 2, 8);
    uint64_t before = 0;
    for (unsigned i = 0; i < 10; ++i) {
      Results results = forward(program, {filled(device, float(i), 8), w});
      EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, 2 * 2 * (2 * i + 2) + i));
      EXPECT_EQ(numbersOf(results[1]), std::vector<double>(8, 2 * (2 * i + 2)));
      EXPECT_EQ(results[1].asTensor()->device(), other->device());
      EXPECT_EQ(counting.numEnqueues() - before, i == 0 ? 20u : 4u)
          << "to_device, neg, add, to_device; at first the others run, go into graphs, and are "
             "captured twice more to find their pointers";
      before = counting.numEnqueues();
    }
    EXPECT_EQ(program.counters().captures, 2u);
    EXPECT_EQ(program.counters().replays, 2 * 9u);
    EXPECT_GT(otherMemory.bytes(), 0);
  }
  EXPECT_EQ(otherMemory.bytes(), 0);
}

} // namespace
