//===- GeneratorsThreadsTest.cpp - Generators and what is in flight -------===//

#include "GeneratorsTesting.h"

using namespace rondo;

namespace {

class HostGeneratorsFixture : public GeneratorsFixture {
protected:
  explicit HostGeneratorsFixture(bool isAsynchronous) {
    HostDeviceOptions options;
    options.asynchronous = isAsynchronous;
    options.randomOrderSeed = 3;
    options.poison = true;
    useTarget({createHostDevice(std::move(options)), {&host}});
  }

  HostExecutor host;
};

/// Streams that run on threads of their own, or in the call.
class GeneratorsThreadsTest : public HostGeneratorsFixture,
                              public testing::WithParamInterface<bool> {
protected:
  GeneratorsThreadsTest() : HostGeneratorsFixture(GetParam()) {}
};

// 8: captures on another thread change nothing of what replays draw, nor replays what they draw.
TEST_P(GeneratorsThreadsTest, Case8CapturesOnAnotherThread) {
  replayBesideCaptures();
}

// What is set while replays are in flight counts for the calls that follow.
TEST_P(GeneratorsThreadsTest, SetInFlight) {
  setInFlight();
}

// States that are saved and restored while nothing waits for the calls before.
TEST_P(GeneratorsThreadsTest, SavedAndRestored) {
  saveAndRestore();
}

INSTANTIATE_TEST_SUITE_P(, GeneratorsThreadsTest, testing::Bool(),
                         [](const auto &info) { return info.param ? "asynchronous" : "inline"; });

class GeneratorsInFlightThreadsTest : public HostGeneratorsFixture {
protected:
  GeneratorsInFlightThreadsTest() : HostGeneratorsFixture(/*isAsynchronous=*/true) {}
};

// Setting and reading a state wait for a replay that is held up: it draws from the old one, and
// what is read is the state after it.
TEST_F(GeneratorsInFlightThreadsTest, WaitForReplays) {
  Program program = compileText(twoGenerators);
  Generators &generators = *program.generators();
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  Tensor x = filled(device, 1, 64);
  drawn(program);
  RNGState usual{20, 5}, rank{30, 9}, later{40, 1};
  cantFail(generators.restore(*other, {{"default", usual}, {"rank", rank}}));
  Results before, after;
  {
    Gate gate;
    gate.close(*stream);
    cantFail(program.forward(*stream, {x}, before));
    EXPECT_FALSE(gate.isPassedBy([&] { cantFail(generators.set(*other, "default", later)); }));
  }
  {
    Gate gate;
    gate.close(*stream);
    cantFail(program.forward(*stream, {x}, after));
    Generators::States states;
    EXPECT_FALSE(gate.isPassedBy([&] { states = cantFail(generators.snapshot(*other)); }));
    EXPECT_EQ(states["default"].offset, later.offset + 128);
    EXPECT_EQ(states["rank"].offset, rank.offset + 2 * 64);
  }
  EXPECT_EQ(numbersOn(before), expectedOf(usual, rank, 0));
  EXPECT_EQ(numbersOn(after), expectedOf(later, {rank.seed, rank.offset + 64}, 0));
}

} // namespace
