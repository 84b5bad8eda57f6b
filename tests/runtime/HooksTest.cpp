//===- HooksTest.cpp - What is called around captures ---------------------===//

#include "HooksTesting.h"

using namespace rondo;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class HooksTest : public HooksFixture {
protected:
  HooksTest() { useTarget({createHostDevice({.randomOrderSeed = 3, .poison = true}), {&host}}); }
  HostExecutor host;
};

/// Two regions around an op that is denied, and a backward.
constexpr llvm::StringLiteral twoRegions = R"(
pair @p {
  forward @forward(%x: f32[8], %s: f32[8] buffer) {
    %n: f32[8] = add_(%s, %x)
    %a: f32[8] = neg(%n)
    %b: f32[8] = abs(%a)
    %c: f32[8] = neg(%b)
    %y: f32[8] = mul(%c, %x)
    return(%y, %c saved #0)
  }
  backward @backward(%c: f32[8] saved #0, %t: f32[8]) {
    %g: f32[8] = mul(%c, %t)
    return(%g)
  }
})";

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Hooks run around the capture and around the first run of each region, in the order of regions,
// and in no replay.
TEST_F(HooksTest, OrderAndCounts) {
  Program program = compileHooked(twoRegions, recording(), {"abs"});
  Tensor s = filled(device, 0, 8);
  for (unsigned call = 1; call <= 4; ++call) {
    SavedState saved;
    Results results = forward(program, {filled(device, 1, 8), s}, &saved);
    EXPECT_EQ(numbersOn(results[0]), std::vector<double>(8, -double(call)));
    if (call == 1) {
      EXPECT_THAT(takeLog(), ElementsAreArray(firstRun("forward 0") + firstRun("forward 1")));
    }
    backward(program, std::move(saved), {filled(device, 1, 8)});
    if (call == 1) {
      EXPECT_THAT(takeLog(), ElementsAreArray(firstRun("backward 0")));
    }
    EXPECT_THAT(takeLog(), IsEmpty()) << "call " << call;
  }
  EXPECT_EQ(program.counters().replays, 9u);
}

// A graph for other memory, of a second forward whose state is kept, is captured like the first.
TEST_F(HooksTest, SecondSlab) {
  Program program = compileHooked(twoRegions, recording(), {"abs"});
  Tensor s = filled(device, 0, 8), x = filled(device, 1, 8);
  SavedState first, second;
  forward(program, {x, s}, &first);
  takeLog();
  forward(program, {x, s}, &second);
  EXPECT_THAT(takeLog(), testing::IsSupersetOf(firstRun("forward 1"))) << "the region that saves";
  forward(program, {x, s}, &second);
  EXPECT_THAT(takeLog(), IsEmpty()) << "the second slab again";
  EXPECT_EQ(numbersOn(s), std::vector<double>(8, 3));
}

// Where nothing is captured no hook is called: in eager calls, and in the caller's own capture.
TEST_F(HooksTest, NotWithoutCaptures) {
  Program program = compileHooked(twoRegions, recording(), {"abs"});
  Tensor s = filled(device, 0, 8), x = filled(device, 1, 8);
  program.setEager(true);
  forward(program, {x, s});
  EXPECT_THAT(takeLog(), IsEmpty());
  cantFail(stream->beginCapture(CaptureMode::Relaxed));
  Results results;
  EXPECT_EQ(textOf(program.forward(*stream, {x, s}, results)), "");
  cantFail(stream->endCapture());
  EXPECT_THAT(takeLog(), IsEmpty());
  program.setEager(false);
  forward(program, {x, s});
  EXPECT_THAT(takeLog(), ElementsAreArray(firstRun("forward 0") + firstRun("forward 1")));
}

// They are called on the thread of the call.
TEST_F(HooksTest, Thread) {
  std::vector<std::thread::id> threads;
  RegionHooks hooks;
  hooks.beforeCapture = hooks.beforeWarmUp = [&](const HookedRegion &) {
    threads.push_back(std::this_thread::get_id());
    return llvm::Error::success();
  };
  Program program = compileHooked(twoRegions, std::move(hooks));
  std::thread caller([&] { forward(program, {filled(device, 1, 8), filled(device, 0, 8)}); });
  std::thread::id id = caller.get_id();
  caller.join();
  EXPECT_THAT(threads, ElementsAre(id, id));
}

// An error of a hook is that of the call. Only after the first run has the region run; the next
// call begins as the first one, and everything is right.
TEST_F(HooksTest, Errors) {
  for (const char *where : {"before capture", "after capture", "before warm-up", "after warm-up"}) {
    SCOPED_TRACE(where);
    Program program = compileHooked(twoRegions, recording());
    Tensor s = filled(device, 0, 8), x = filled(device, 1, 8);
    failsAt = std::string("forward 0 ") + where;
    bool hasRun = failsAt == "forward 0 after warm-up";
    for (unsigned i = 0; i < 2 && !(hasRun && i == 1); ++i) {
      Results results;
      SavedState saved;
      EXPECT_EQ(textOf(program.forward(*stream, {x, s}, results, &saved)),
                "error: the hook is out of luck");
      EXPECT_TRUE(results.empty());
      EXPECT_FALSE(saved.isValid());
      EXPECT_EQ(numbersOn(s), std::vector<double>(8, hasRun ? 1 : 0));
      EXPECT_EQ(takeLog().back(), failsAt);
    }
    failsAt.clear();
    for (unsigned call = 1; call <= 3; ++call) {
      Results results = forward(program, {x, s});
      EXPECT_EQ(numbersOn(results[0]), std::vector<double>(8, -double(call) - hasRun));
    }
    // After the first run the graph is there.
    EXPECT_THAT(takeLog(),
                ElementsAreArray(hasRun ? std::vector<std::string>() : firstRun("forward 0")));
    EXPECT_THAT(program.takeRemarks(), IsEmpty()) << "nothing is wrong with the region";
  }
}

// In a later region the error leaves what ran before as it is.
TEST_F(HooksTest, ErrorInALaterRegion) {
  Program program = compileHooked(twoRegions, recording(), {"abs"});
  Tensor s = filled(device, 0, 8), x = filled(device, 1, 8);
  failsAt = "forward 1 before capture";
  Results results;
  EXPECT_THAT(textOf(program.forward(*stream, {x, s}, results)), HasSubstr("out of luck"));
  EXPECT_EQ(numbersOn(s), std::vector<double>(8, 1));
  takeLog();
  failsAt.clear();
  EXPECT_EQ(numbersOn(forward(program, {x, s})[0]), std::vector<double>(8, -2));
  EXPECT_THAT(takeLog(), ElementsAreArray(firstRun("forward 1")));
}

// A capture that fails is said to have failed; the region's parts come with the next call, with the
// region's number.
TEST_F(HooksTest, SplitRegion) {
  ProgramOptions options = steadyOptions();
  options.hooks = recording();
  Stateful made = makeStateful({"tanh"}, options);
  stepOf(made, 1);
  EXPECT_THAT(takeLog(),
              ElementsAreArray(firstRun("forward 0", false) + firstRun("backward 0", false)));
  stepOf(made, 2);
  EXPECT_THAT(takeLog(), ElementsAreArray(firstRun("forward 0") + firstRun("forward 0") +
                                          firstRun("backward 0")));
  stepOf(made, 3);
  EXPECT_THAT(takeLog(), IsEmpty());
}

// Where a failed capture fails the call, the region does not run, and no hook says that it does.
TEST_F(HooksTest, FailedCaptureAsError) {
  ProgramOptions options = steadyOptions();
  options.hooks = recording();
  options.onCaptureFailure = CaptureFailure::Error;
  Stateful made = makeStateful({"tanh"}, options);
  Results results;
  EXPECT_THAT(
      textOf(made.program.forward(*stream, {filled(device, 1, 64), made.state, made.w}, results)),
      HasSubstr("cannot be captured"));
  EXPECT_THAT(takeLog(),
              ElementsAre("forward 0 before capture", "forward 0 after capture that failed"));
  EXPECT_EQ(numbersOn(made.state), std::vector<double>(64, 0));
}

// Hooks that use the device disturb nothing.
TEST_F(HooksTest, UseTheDevice) {
  useTheDevice();
}

// 12: everything advances once per call, whatever the first calls captured.
TEST_F(HooksTest, Case12AdvanceOnce) {
  advanceOnce();
}

} // namespace
