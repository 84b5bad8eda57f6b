//===- CaptureLifetimeTest.cpp - What goes during a capture, on the host --===//

#include "CaptureLifetimeTesting.h"

using namespace rondo;

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, CaptureLifetimeTest, testing::Values(hostileHost()), suiteTargetName);
} // namespace rondo

namespace {

/// Programs on two devices.
class CaptureOnTwoDevicesTest : public testing::Test {
protected:
  Program compileText(llvm::StringRef text) {
    return cantFail(compile(cantFail(parsePair(text, "test", registry)), devices, {&host},
                            pipelineOf(smallRegions.str(), host)));
  }
  Tensor filledOn(unsigned device, float value) { return filled(devices[device], value, 8); }

  CoreRegistry registry;
  HostExecutor host;
  MemoryLog memory[2];
  std::vector<DeviceRef> devices = {createHostDevice({.memoryHook = memory[0].hook()}),
                                    createHostDevice({.index = 1, .memoryHook = memory[1].hook()})};
};

constexpr llvm::StringLiteral onTwoDevices = R"(
trace @f(%x: f32[8]) {
  %a: f32[8] = neg(%x)
  %b: f32[8]@host:1 = to_device(%a) {device = host:1}
  %c: f32[8]@host:1 = neg(%b)
  %y: f32[8] = to_device(%c) {device = host}
  return(%y)
})";

// A program of two devices is destroyed while a stream of either is being captured.
TEST_F(CaptureOnTwoDevicesTest, ProgramThatGoes) {
  for (unsigned captured : {0, 1}) {
    SCOPED_TRACE(captured);
    int64_t before[2] = {memory[0].bytes(), memory[1].bytes()};
    std::optional<Program> program = compileText(onTwoDevices);
    std::unique_ptr<Stream> stream = cantFail(devices[0]->createStream()),
                            other = cantFail(devices[captured]->createStream());
    for (unsigned i = 0; i < 2; ++i) {
      Results results;
      cantFail(program->forward(*stream, {filledOn(0, 2)}, results));
      EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, 2));
    }
    Tensor x = filledOn(captured, 0);
    cantFail(other->beginCapture(CaptureMode::ThreadLocal));
    cantFail(other->fill(x.data(), 0x7f, 4));
    program.reset();
    std::unique_ptr<Graph> graph = cantFail(other->endCapture());
    EXPECT_EQ(graph->numNodes(), 1u);
    x = Tensor();
    EXPECT_EQ(memory[0].bytes(), before[0]);
    EXPECT_EQ(memory[1].bytes(), before[1]);
  }
}

// What crosses devices is waited for, so it cannot join a capture: an error names the op before
// anything runs or is captured, and the capture goes on.
TEST_F(CaptureOnTwoDevicesTest, OpThatCrosses) {
  Program program = compileText(onTwoDevices);
  std::unique_ptr<Stream> stream = cantFail(devices[0]->createStream());
  Tensor x = filledOn(0, 2);
  Results results;
  cantFail(program.forward(*stream, {x}, results));
  results.clear();
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  llvm::Error error = program.forward(*stream, {x}, results);
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::NotCapturable);
  EXPECT_THAT(textOf(std::move(error)), testing::HasSubstr("'to_device' op"));
  EXPECT_TRUE(results.empty());
  EXPECT_EQ(stream->captureStatus(), CaptureStatus::Active);
  std::unique_ptr<Graph> graph = cantFail(stream->endCapture());
  EXPECT_EQ(graph->numNodes(), 0u);
  cantFail(program.forward(*stream, {x}, results));
  EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, 2));
}

/// On a device whose streams run by themselves.
class CaptureInFlightTest : public CallTest {
protected:
  CaptureInFlightTest() : CallTest(asynchronous()) {}
  static HostDeviceOptions asynchronous() {
    HostDeviceOptions options;
    options.asynchronous = true;
    return options;
  }
};

// A program that is destroyed during a capture, eager or with graphs, does not wait for its calls;
// who ends the capture does, and then the memory is back.
TEST_F(CaptureInFlightTest, ProgramThatGoes) {
  for (bool isEager : {true, false}) {
    SCOPED_TRACE(isEager);
    int64_t before = memory.bytes();
    Tensor x = filled(device, 0, 8);
    Results results;
    std::unique_ptr<Stream> other = cantFail(device->createStream());
    std::optional<Program> program = compileText(R"(
trace @f(%x: f32[8] static) {
  %y: f32[8] = exp(%x)
  return(%y)
})");
    program->setEager(isEager);
    forward(*program, {x});
    Gate gate;
    gate.close(*stream);
    cantFail(program->forward(*stream, {x}, results));
    cantFail(other->beginCapture(CaptureMode::ThreadLocal));
    std::atomic<bool> isGone = false;
    bool hasWaited = false;
    std::thread opener([&] {
      for (unsigned i = 0; i < 500 && !isGone; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      hasWaited = !isGone;
      gate.open();
    });
    program.reset();
    isGone = true;
    opener.join();
    EXPECT_FALSE(hasWaited);
    cantFail(other->endCapture());
    cantFail(stream->synchronize());
    EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, 1));
    results.clear();
    x = Tensor();
    other.reset();
    EXPECT_EQ(memory.bytes(), before);
  }
}

} // namespace
