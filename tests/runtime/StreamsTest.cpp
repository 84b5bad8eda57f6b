//===- StreamsTest.cpp - Programs called on several streams ---------------===//

#include "CallTesting.h"

using namespace rondo;

namespace {

constexpr llvm::StringLiteral step = R"(
pair @step {
  forward @forward(%x: f32[32]) {
    %a: f32[32] = add(%x, %x)
    %y: f32[32] = neg(%a)
    return(%y, %y saved #0)
  }
  backward @backward(%y: f32[32] saved #0, %g: f32[32]) {
    %b: f32[32] = mul(%y, %g)
    %c: f32[32] = add(%b, %b)
    return(%c)
  }
})";

/// Two streams that run by themselves.
class StreamsTest : public CallTest {
protected:
  StreamsTest() : CallTest(asynchronous()), other(cantFail(device->createStream())) {}
  static HostDeviceOptions asynchronous() {
    HostDeviceOptions options;
    options.asynchronous = true;
    return options;
  }

  std::unique_ptr<Stream> other;
};

// A program that is called on two streams in turn captures for each of them once, and allocates
// nothing from then on.
TEST_F(StreamsTest, InTurn) {
  for (unsigned maxLanes : {1, 2}) {
    ProgramOptions options = steadyOptions();
    options.maxLanes = maxLanes;
    Program program = compileText(step, options);
    Tensor x = filled(device, 3, 32), g = filled(device, 2, 32);
    uint64_t captures = 0, allocations = 0;
    for (unsigned i = 0; i < 200; ++i) {
      for (Stream *on : {stream.get(), other.get()}) {
        SavedState saved;
        Results results, gradients;
        cantFail(program.forward(*on, {x}, results, &saved));
        cantFail(program.backward(*on, std::move(saved), {g}, gradients));
        cantFail(on->synchronize());
        EXPECT_EQ(numbersOf(results[0]), std::vector<double>(32, -6));
        EXPECT_EQ(numbersOf(gradients[0]), std::vector<double>(32, -24));
      }
      if (i == 2) {
        captures = program.counters().captures;
        allocations = memory.calls();
      }
    }
    EXPECT_EQ(program.counters().captures, captures);
    EXPECT_EQ(memory.calls(), allocations);
    EXPECT_LE(captures, 4u) << "two sides, two streams";
  }
}

// What the caller does with results on the forward's stream is done before a later call overwrites
// them, though the backward, on another stream, was their last use by the program.
TEST_F(StreamsTest, ResultsBelongToTheirStream) {
  Program program = compileText(step);
  // Freeing memory would wait for the gate.
  Tensor x = filled(device, 0, 32), hundred = filled(device, 100, 32), g = filled(device, 1, 32),
         copy = filled(device, 0, 32);
  for (unsigned i = 0; i < 4; ++i) {
    SavedState saved;
    Results results, gradients;
    overwrite(x, float(i + 1));
    cantFail(program.forward(*stream, {x}, results, &saved));
    cantFail(stream->synchronize());
    Gate gate;
    if (i > 0) // before, the program was called on one stream, all of whose work others wait for
      gate.close(*stream);
    cantFail(stream->copy(copy.data(), results[0].asTensor()->data(), copy.extentBytes()));
    results.clear();
    cantFail(program.backward(*other, std::move(saved), {g}, gradients));
    Results later = forwardOn(*other, program, {hundred});
    EXPECT_EQ(numbersOf(later[0])[0], -200);
    gate.open();
    cantFail(stream->synchronize());
    EXPECT_EQ(numbersOf(Value(copy)), std::vector<double>(32, -2.0 * (i + 1)));
  }
}

// A stream of another device is an error that says which was expected.
TEST_F(StreamsTest, OfAnotherDevice) {
  HostDeviceOptions options;
  options.index = 1;
  DeviceRef elsewhere = createHostDevice(options);
  std::unique_ptr<Stream> stranger = cantFail(elsewhere->createStream());
  Program program = compileText(step);
  Results results;
  EXPECT_THAT(textOf(program.forward(*stranger, {filled(device, 1, 32)}, results)),
              testing::HasSubstr("the stream is of device host:1, expected one of"));
  // Devices of one name are not one device.
  stranger = cantFail(createHostDevice()->createStream());
  EXPECT_NE(textOf(program.forward(*stranger, {filled(device, 1, 32)}, results)), "");
}

} // namespace
