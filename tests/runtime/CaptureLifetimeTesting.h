//===- CaptureLifetimeTesting.h - What goes during a capture ----*- C++ -*-===//
//
// While the caller captures, programs may be destroyed and give back what they hold: no wait
// disturbs the capture, its graph keeps what it uses, and memory comes back.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CallerCaptureFixture.h"

namespace rondo {

class CaptureLifetimeTest : public CallerCaptureFixture {
protected:
  static constexpr CaptureMode modes[] = {CaptureMode::Global, CaptureMode::ThreadLocal,
                                          CaptureMode::Relaxed};

  /// A step in the capture that was begun.
  void captureStep(Program &program) {
    SavedState saved;
    EXPECT_EQ(textOf(program.forward(*stream, {x, w}, results, &saved)), "");
    EXPECT_EQ(textOf(program.backward(*stream, std::move(saved), {g}, gradients)), "");
  }
  /// Ends the capture, which must be as it was.
  void endCapture() {
    EXPECT_EQ(stream->captureStatus(), CaptureStatus::Active);
    llvm::Expected<std::unique_ptr<Graph>> ended = stream->endCapture();
    ASSERT_TRUE(bool(ended)) << llvm::toString(ended.takeError());
    graph = std::move(*ended);
    exec = cantFail(graph->instantiate());
  }
  void dropGraph() {
    exec.reset();
    graph.reset();
    results.clear();
    gradients.clear();
  }
};

// A program is destroyed during the capture that its calls joined: the capture ends well, its graph
// goes on giving what it has to, and when the graph is gone, so is all memory.
TEST_P(CaptureLifetimeTest, ProgramThatIsPartOfIt) {
  for (CaptureMode mode : modes) {
    SCOPED_TRACE(int(mode));
    uint64_t before = bytesInUse();
    std::optional<Program> program = make();
    play(*program, 1);
    play(*program, 2);
    cantFail(stream->beginCapture(mode));
    captureStep(*program);
    program.reset();
    ASSERT_NO_FATAL_FAILURE(endCapture());
    EXPECT_GT(bytesInUse(), before) << "the graph's";
    for (unsigned i = 1; i <= 3; ++i) {
      checkLaunch(float(i));
      // Others are not given its memory.
      Program other = make();
      play(other, 5);
      play(other, 6);
    }
    dropGraph();
    EXPECT_EQ(bytesInUse(), before);
  }
}

// So it is if the program is destroyed after the capture, before or after the graph was launched,
// and if only the exec is left.
TEST_P(CaptureLifetimeTest, ProgramThatGoesBeforeTheGraph) {
  uint64_t before = bytesInUse();
  std::optional<Program> program = make();
  play(*program, 1);
  capture(*program);
  program.reset();
  checkLaunch(2);
  graph.reset();
  checkLaunch(3);
  dropGraph();
  EXPECT_EQ(bytesInUse(), before);
}

// A program whose calls are on the stream that is being captured, and one whose calls are on
// another, with which it is not shared, are destroyed during a capture that has nothing to do with
// them; so is one that several streams used. Their memory comes back when the capture has ended.
TEST_P(CaptureLifetimeTest, ProgramsThatAreNoPartOfIt) {
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  for (CaptureMode mode : modes) {
    SCOPED_TRACE(int(mode));
    uint64_t before = bytesInUse();
    Program kept = make();
    play(kept, 1);
    uint64_t ofOne = bytesInUse();
    std::optional<Program> here = make(), there = make(), both = make();
    play(*here, 1);
    play(*here, 2);
    forwardOn(*other, *there, {x, w});
    forwardOn(*other, *both, {x, w});
    play(*both, 1);
    forwardOn(*other, *both, {x, w});
    EXPECT_GT(bytesInUse(), ofOne);

    cantFail(stream->beginCapture(mode));
    captureStep(kept);
    for (std::optional<Program> *program : {&here, &there, &both}) {
      program->reset();
      EXPECT_EQ(stream->captureStatus(), CaptureStatus::Active);
    }
    ASSERT_NO_FATAL_FAILURE(endCapture());
    EXPECT_EQ(bytesInUse(), ofOne);
    checkLaunch(4);
    play(kept, 5);
    dropGraph();
    { Program gone = std::move(kept); }
    EXPECT_EQ(bytesInUse(), before);
  }
}

// `trim` during a capture gives back what is idle, which does not count what the capture uses, and
// the program goes on as before.
TEST_P(CaptureLifetimeTest, Trim) {
  Program program = make();
  play(program, 1);
  {
    SavedState saved[3];
    Results held;
    for (SavedState &state : saved)
      held.append(forward(program, {x, w}, &state));
  }
  uint64_t before = bytesInUse(); // with three sets, all idle
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  captureStep(program);
  program.trim();
  device->trim();
  ASSERT_NO_FATAL_FAILURE(endCapture());
  EXPECT_LT(bytesInUse(), before);
  checkLaunch(2);
  play(program, 3);
  play(program, 4);
  checkLaunch(5);
}

// Entries that are evicted, and dropped by `reset`, during a capture do not disturb it.
TEST_P(CaptureLifetimeTest, Entries) {
  CUDAGraphTransform transform(graphOptions());
  Program program = compileWith(transform, capturedStep, poisoned());
  std::shared_ptr<GraphCache> cache = GraphCache::find(transform.domain(), *device);
  ASSERT_TRUE(cache);
  for (bool resets : {false, true}) {
    play(program, 1);
    play(program, 2);
    EXPECT_GE(cache->counters().entries, 2u);
    cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
    captureStep(program);
    if (resets)
      cache->reset();
    else
      cache->setMaxEntries(1);
    EXPECT_EQ(cache->counters().entries, resets ? 0u : 1u);
    ASSERT_NO_FATAL_FAILURE(endCapture());
    checkLaunch(3);
    dropGraph();
    cache->setMaxEntries(8);
  }
  play(program, 4);
  play(program, 5);
}

// A size that is not kept goes during a capture, for a call on another stream that needs no memory.
TEST_P(CaptureLifetimeTest, VariantThatGoes) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 1;
  Program program = compileText(R"(
trace @f(%x: f32[B]) {
  %y: f32[B] = neg(%x)
  return(%y)
})",
                                options);
  program.setEager(true);
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  Tensor shorter = filled(device, 3, 7), out = filled(device, 0, 7);
  forwardOn(*other, program, {x}); // has memory of its own, idle from here on
  forwardOn(*stream, program, {x});
  Program step = make();
  play(step, 1);
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  captureStep(step);
  Results given;
  EXPECT_EQ(textOf(program.forwardInto(*other, {shorter}, {out}, given)), "");
  ASSERT_NO_FATAL_FAILURE(endCapture());
  EXPECT_EQ(numbersOn(out), std::vector<double>(7, -3));
  checkLaunch(2);
}

// Memory of graphs that are gone is used again: captures do not add up.
TEST_P(CaptureLifetimeTest, MemoryOfGraphsComesBack) {
  Program program = make();
  play(program, 1);
  capture(program);
  checkLaunch(2);
  dropGraph();
  program.trim();
  play(program, 3);
  uint64_t before = bytesInUse();
  for (unsigned i = 0; i < 5; ++i) {
    capture(program);
    launch(float(i)); // is in flight no more when the graph goes
    dropGraph();
    play(program, float(i));
  }
  program.trim();
  play(program, 3);
  EXPECT_EQ(bytesInUse(), before);
}

// An exec that is launched in another capture hands on what it keeps.
TEST_P(CaptureLifetimeTest, ExecInAnotherCapture) {
  std::optional<Program> program = make();
  play(*program, 1);
  capture(*program);
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  cantFail(exec->launch(*stream));
  std::unique_ptr<Graph> outer = cantFail(stream->endCapture());
  program.reset();
  exec = cantFail(outer->instantiate());
  graph.reset();
  outer.reset();
  Program other = make();
  play(other, 5);
  checkLaunch(2);
}

// States of generators are neither read nor set, by way of whatever stream, while a capture forbids
// to wait: that is an error which leaves it as it was.
TEST_P(CaptureLifetimeTest, Generators) {
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  Program program = make();
  play(program, 1);
  rondo::Generators &generators = *program.generators();
  cantFail(generators.seed(*other, "default", 7));
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  captureStep(program);
  llvm::Error error = generators.seed(*other, "default", 8);
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::NotCapturable);
  llvm::consumeError(std::move(error));
  error = generators.get(*other, "default").takeError();
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::NotCapturable);
  llvm::consumeError(std::move(error));
  ASSERT_NO_FATAL_FAILURE(endCapture());
  checkLaunch(2);
  EXPECT_EQ(cantFail(generators.get(*other, "default")).seed, 7u);
}

} // namespace rondo
