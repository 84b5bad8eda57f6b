//===- RematerialiseTest.cpp - Recomputation, run on the host -------------===//
//
// Steps whose backward computes again what the forward no longer saves, against the same steps
// without, on a device that does all it may do.
//
//===----------------------------------------------------------------------===//

#include "RematerialiseTesting.h"

#include "CallTesting.h"

using namespace rondo;

namespace {

class RematerialiseRunTest : public RematerialiseFixture {};

// Recomputation changes no bit of any step, eager or replayed, and needs less saved memory.
TEST_P(RematerialiseRunTest, ChangesNoBit) {
  HostExecutor host;
  HostDeviceOptions hostile;
  hostile.randomOrderSeed = 11;
  hostile.poison = true;
  expectSameSteps({createHostDevice(hostile), {&host}}, 50);
}

INSTANTIATE_TEST_SUITE_P(, RematerialiseRunTest, testing::ValuesIn(rematerialiseCases()),
                         [](const auto &info) { return std::string(info.param.trace); });

class RematerialiseCasesTest : public CallTest {
protected:
  RematerialiseCasesTest() : CallTest({.randomOrderSeed = 3, .poison = true}) {}

  llvm::Expected<Program> tryCompile(llvm::StringRef text, bool recomputes) {
    ProgramOptions options = steadyOptions();
    options.poison = options.checkGraphs = true;
    std::string pipeline = recomputes ? "rematerialise,dce," : "";
    return compile(parse(text), device, &host, pipelineOf(pipeline + smallRegions.str(), host),
                   options);
  }
};

// The backward is given %d, which the block drew, and returns it so that it can be looked at.
constexpr llvm::StringLiteral block = R"(
pair @p {
  forward @forward(%x: f32[64], %w: f32[64] parameter) {
    %s: rng = generator_read() {device = host}
    %y: f32[64], %h: f32[64]TAG, %m: bool[64]TAG = BLOCK(%x, %w, %s) {
    ^(%x: f32[64], %w: f32[64], %s: rng):
      %h: f32[64] = mul(%x, %w)
      %d: f32[64], %m: bool[64] = dropout(%h, %s) {offset = 0, p = 0.5}
      %y: f32[64] = mul(%d, %w)
      return(%y, %h, %m)
    }
    generator_advance() {count = 64, device = host}
    return(%y, %m, %h saved #0, %m saved #1)
  }
  backward @backward(%h: f32[64] saved #0, %m: bool[64] saved #1, %g: f32[64]) {
    %a: f32[64] = dropout_backward(%g, %m) {scale = 2.0}
    %b: f32[64] = mul(%a, %h)
    return(%b, %m)
  }
})";

static std::string blockOf(llvm::StringRef tag) {
  std::string text = block.str();
  for (size_t at; (at = text.find("TAG")) != std::string::npos;)
    text.replace(at, 3, tag.str());
  text.replace(text.find("BLOCK"), 5, "checkpoint");
  return text;
}

// 9: the mask that a checkpointed block draws again in the backward is the forward's, also when
// another forward came in between; gradients are those without a checkpoint; no two replays have
// the same mask.
TEST_F(RematerialiseCasesTest, Case9CheckpointedDropout) {
  Program program = cantFail(tryCompile(blockOf(" recompute"), /*recomputes=*/true));
  Program saving = cantFail(tryCompile(blockOf(""), /*recomputes=*/true)); // given to the caller
  saving.setEager(true);
  for (Program *of : {&program, &saving})
    cantFail(of->generators()->set(*stream, "default", {11, 300}));
  Tensor x = filled(device, 3, 64), w = filled(device, 0.5, 64), g = filled(device, 2, 64);
  std::set<std::vector<double>> masks;
  for (unsigned round = 0; round < 10; ++round) {
    auto play = [&](Program &of) {
      Results all;
      SavedState saved[2];
      for (SavedState &state : saved)
        all.append(forward(of, {x, w}, &state));
      for (unsigned i : {0, 1})
        all.append(backward(of, std::move(saved[i]), {g}));
      return all;
    };
    Results got = play(program), expected = play(saving);
    ASSERT_EQ(got.size(), 8u);
    for (unsigned i = 0; i < got.size(); ++i)
      EXPECT_EQ(numbersOf(got[i]), numbersOf(expected[i])) << i;
    for (unsigned i : {0, 1}) {
      EXPECT_EQ(numbersOf(got[2 * i + 1]), numbersOf(got[4 + 2 * i + 1])) << "drawn again";
      masks.insert(numbersOf(got[2 * i + 1]));
    }
  }
  EXPECT_EQ(masks.size(), 20u);
  EXPECT_GT(program.counters().replays, 0u);
}

// 10: a random op whose offset cannot be kept is refused when the pair is compiled, with the reason
// at its place; one that is not recomputed is not.
TEST_F(RematerialiseCasesTest, Case10OffsetThatCannotBeKept) {
  OpSpec spec;
  spec.name = "test.noise";
  spec.operands = {{"x"}, {"rng", OperandKind::RNGState}};
  spec.results = {"y"};
  spec.random = true;
  cantFail(registry.registerOp(std::move(spec)));
  auto text = [](llvm::StringRef tag) {
    return ("pair @p {\n  forward @f(%x: f32[4]) {\n    %s: rng = generator_read() {device = "
            "host}\n"
            "    %n: f32[4]" +
            tag +
            " = test.noise(%x, %s)\n    return(%x, %n saved #0)\n  }\n"
            "  backward @b(%n: f32[4] saved #0, %g: f32[4]) {\n    %r: f32[4] = mul(%g, %n)\n"
            "    return(%r)\n  }\n}\n")
        .str();
  };
  auto messageOf = [&](llvm::StringRef tag) {
    llvm::Expected<Program> program = tryCompile(text(tag), /*recomputes=*/true);
    return program ? "" : llvm::toString(program.takeError());
  };
  EXPECT_THAT(messageOf(" recompute"),
              testing::HasSubstr(":4:5: error: 'test.noise' op cannot be computed again, but %n is "
                                 "to be recomputed for the backward: its offset cannot be kept"));
  EXPECT_THAT(messageOf(""), testing::Not(testing::HasSubstr("computed again")));
}

} // namespace
