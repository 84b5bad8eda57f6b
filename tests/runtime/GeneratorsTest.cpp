//===- GeneratorsTest.cpp - Generators on a hostile host ------------------===//

#include "GeneratorsTesting.h"

using namespace rondo;

namespace {

class GeneratorsTest : public GeneratorsFixture {
protected:
  GeneratorsTest() {
    HostDeviceOptions options;
    options.randomOrderSeed = 3;
    options.poison = true;
    options.memoryHook = memory.hook();
    useTarget({createHostDevice(std::move(options)), {&host}});
  }

  MemoryLog memory;
  HostExecutor host;
};

// Two generators in one region are apart, and each advances by its own total.
TEST_F(GeneratorsTest, TwoInOneRegion) {
  drawFromTwo();
}

// Saved states, restored, give the same numbers again.
TEST_F(GeneratorsTest, SavedAndRestored) {
  saveAndRestore();
}

// States of many generators are apart.
TEST_F(GeneratorsTest, Many) {
  saveMany();
}

// What is set counts for the calls that follow, on any stream.
TEST_F(GeneratorsTest, SetBetweenCalls) {
  setInFlight();
}

// The first use of a generator may come while its thread captures.
TEST_F(GeneratorsTest, MadeWhileCapturing) {
  makeWhileCapturing();
}

// So may the first call of a program that draws.
TEST_F(GeneratorsTest, FirstCallWhileCapturing) {
  callFirstWhileCapturing();
}

// Streams by way of which states cannot be read or set are refused.
TEST_F(GeneratorsTest, RefusedStreams) {
  HostDeviceOptions options;
  options.index = 1;
  refuseStreams(cantFail(createHostDevice(options)->createStream()).get());
}

// A capture that forbids everybody to allocate forbids the first generator; afterwards it is made.
TEST_F(GeneratorsTest, RefusedByAGlobalCapture) {
  Generators generators(device);
  cantFail(stream->beginCapture(CaptureMode::Global));
  llvm::Error error = generators.state("first").takeError();
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::NotCapturable);
  llvm::consumeError(std::move(error));
  llvm::consumeError(stream->endCapture().takeError());
  expectState(generators, "first", {0, 0});
}

// Where memory runs out nothing is restored, and the next try works.
TEST_F(GeneratorsTest, RestoreWithoutMemory) {
  HostDeviceOptions options;
  options.memoryLimit = DeviceAPI::allocationAlignment;
  useTarget({createHostDevice(options), {&host}});
  Generators generators(device);
  cantFail(generators.set(*stream, "default", {1, 2}));
  Generators::States states = {{"default", {3, 4}}};
  for (unsigned i = 0; i < 16; ++i)
    states["rank" + std::to_string(i)] = {5, 6};
  llvm::Error error = generators.restore(*stream, states);
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::OutOfMemory);
  llvm::consumeError(std::move(error));
  expectState(generators, "default", {1, 2});
  states.erase("rank9"); // the last one, for which there was no memory
  cantFail(generators.restore(*stream, states));
  expectState(generators, "default", {3, 4});
  expectState(generators, "rank8", {5, 6});
}

// A module that is made to draw from another generator draws what that one gives; what is around it
// draws what it drew before.
TEST_F(GeneratorsTest, OtherGeneratorForAModule) {
  constexpr llvm::StringLiteral text = R"(
trace @f(%x: f32[64]) {
  %s: rng = generator_read() {device = host}
  %a: f32[64], %k: bool[64] = dropout(%x, %s) {offset = 0, p = 0.5}
  %b: f32[64], %l: bool[64] = dropout(%a, %s) {offset = 64, p = 0.5} module "blocks.0"
  %c: f32[64], %m: bool[64] = dropout(%b, %s) {offset = 128, p = 0.5}
  generator_advance() {count = 192, device = host}
  return(%k, %l, %m)
})";
  Program program =
      compileText(text, {}, "use-generator{generator=rank path=blocks.0}," + smallRegions.str());
  Generators &generators = *program.generators();
  cantFail(generators.seed(*stream, "default", 3));
  cantFail(generators.seed(*stream, "rank", 4));
  for (uint64_t call = 0; call < 4; ++call)
    EXPECT_EQ(drawn(program),
              (std::vector<Numbers>{keptFrom(3, 192 * call), keptFrom(4, 192 * call + 64),
                                    keptFrom(3, 192 * call + 128)}));
  EXPECT_EQ(program.counters().replays, 3u);
}

// A generator that seeds itself in a program starts again from offset 0 with every call.
TEST_F(GeneratorsTest, SeededInAProgram) {
  Program program = compileText(R"(
trace @f(%x: f32[64], %seed: i64) {
  generator_seed(%seed) {device = host}
  %s: rng = generator_read() {device = host}
  %a: f32[64], %k: bool[64] = dropout(%x, %s) {offset = 0, p = 0.5}
  generator_advance() {count = 64, device = host}
  return(%k)
})");
  for (int64_t seed : {5, 6, 5, -1}) {
    EXPECT_EQ(numbersOn(forward(program, {filled(device, 1, 64), Value(seed)})),
              (std::vector<Numbers>{keptFrom(uint64_t(seed), 0)}));
    expectState(*program.generators(), "default", {uint64_t(seed), 64});
  }
}

// 9: the mask that a backward draws again is the forward's.
TEST_F(GeneratorsTest, Case9RecomputedDropout) {
  recomputeDropout();
}

// 13: choices are by the weights of the call.
TEST_F(GeneratorsTest, Case13Multinomial) {
  chooseByWeights();
}

} // namespace
