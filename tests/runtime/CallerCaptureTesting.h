//===- CallerCaptureTesting.h - Programs in the caller's capture -*- C++ -*-===//
//
// Where the caller's stream is being captured, the ops of a call join that capture: the program's
// own graphs are left alone, and the caller's graph can be launched as long as it lives itself.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CallerCaptureFixture.h"

namespace rondo {

class CallerCaptureTest : public CallerCaptureFixture {};

// Ops join the caller's capture and do not run; the program's cache is as it was; the caller's
// graph gives the right values again and again, between calls of the program, which stay right.
TEST_P(CallerCaptureTest, JoinsTheCapture) {
  Program program = make();
  play(program, 1);
  play(program, 2);
  CacheCounters before = program.counters();
  capture(program);
  CacheCounters after = program.counters();
  EXPECT_EQ(after.captures, before.captures);
  EXPECT_EQ(after.entries, before.entries);
  EXPECT_EQ(after.replays, before.replays);
  EXPECT_EQ(after.eagerRuns, before.eagerRuns);
  EXPECT_GE(graph->numNodes(), 5u);

  for (unsigned i = 1; i <= 5; ++i) {
    checkLaunch(float(i));
    play(program, float(10 + i));
  }
  EXPECT_EQ(program.counters().failures, 0u);
}

// Memory that the caller's graph uses is not used for anything else, whatever the caller drops and
// the program gives back.
TEST_P(CallerCaptureTest, KeepsItsMemory) {
  Program program = make();
  play(program, 1);
  capture(program);
  checkLaunch(4);
  // A forward whose backward comes after a launch.
  SavedState saved;
  Results held = forward(program, {filled(device, 7, 32), w}, &saved);
  checkLaunch(5);
  EXPECT_EQ(numbersOn(held[0]), std::vector<double>(32, -7));
  Results heldGradients = backward(program, std::move(saved), {filled(device, 1, 32)});
  EXPECT_EQ(numbersOn(heldGradients[0]), std::vector<double>(32, -14));

  program.trim();
  checkLaunch(6);
  play(program, 3);

  // The graph goes on writing results that the caller let go of.
  results.clear();
  gradients.clear();
  held = forward(program, {filled(device, 8, 32), w}, &saved);
  heldGradients = backward(program, std::move(saved), {filled(device, 1, 32)});
  launch(9);
  EXPECT_EQ(numbersOn(held[0]), std::vector<double>(32, -8));
  EXPECT_EQ(numbersOn(heldGradients[0]), std::vector<double>(32, -16));
}

// The first call of a program may be one in a capture, if the capture allows to allocate memory;
// else it is an error that invalidates the capture, and the next call works.
TEST_P(CallerCaptureTest, FirstCall) {
  {
    Program program = make();
    capture(program, CaptureMode::Relaxed);
    EXPECT_EQ(program.counters().captures, 0u);
    checkLaunch(2);
    play(program, 3);
    EXPECT_EQ(program.counters().captures, 2u);
  }
  Program program = make();
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  llvm::Error error = program.forward(*stream, {x, w}, results);
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::NotCapturable);
  llvm::consumeError(std::move(error));
  EXPECT_TRUE(results.empty());
  error = program.forward(*stream, {x, w}, results);
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::CaptureInvalidated);
  llvm::consumeError(std::move(error));
  error = stream->endCapture().takeError();
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::CaptureInvalidated);
  llvm::consumeError(std::move(error));
  play(program, 4);
  play(program, 5);
}

// A call of a stream that waits for the capture's is part of it.
TEST_P(CallerCaptureTest, StreamThatJoined) {
  Program program = make();
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  forwardOn(*other, program, {x, w}); // makes the memory, which the capture forbids
  std::unique_ptr<Event> fork = cantFail(device->createEvent()),
                         joined = cantFail(device->createEvent());
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  cantFail(stream->record(*fork));
  cantFail(other->wait(*fork));
  EXPECT_EQ(textOf(program.forward(*other, {x, w}, results)), "");
  cantFail(other->record(*joined));
  cantFail(stream->wait(*joined));
  graph = cantFail(stream->endCapture());
  exec = cantFail(graph->instantiate());
  launch(3);
  EXPECT_EQ(numbersOn(results[0]), std::vector<double>(32, -3));
}

// An op that waits for the device cannot join a capture: the error names it.
TEST_P(CallerCaptureTest, OpThatWaits) {
  Program program = compileText(R"(
trace @f(%x: f32[]) {
  %y: f32[] = neg(%x)
  %i: f64 = item(%y)
  return(%i)
})");
  Tensor scalar = tensorOf(device, {2}, {});
  EXPECT_EQ(numbersOn(forward(program, {scalar})[0]), std::vector<double>{-2});
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  EXPECT_THAT(
      textOf(program.forward(*stream, {scalar}, results)),
      testing::AllOf(testing::HasSubstr("'item' op"), testing::HasSubstr("not capturable")));
  EXPECT_TRUE(results.empty());
  llvm::consumeError(stream->endCapture().takeError());
  EXPECT_EQ(numbersOn(forward(program, {scalar})[0]), std::vector<double>{-2});
}

} // namespace rondo
