//===- AccumulateTest.cpp - Microbatches that are added up ----------------===//
//
// Gradients that a backward adds to the caller's buffers, on a hostile host device: nodes of a
// graph in any valid order, dead memory poisoned.
//
//===----------------------------------------------------------------------===//

#include "AccumulateTesting.h"

using namespace rondo;
using testing::HasSubstr;

namespace {

HostDeviceOptions hostile() {
  HostDeviceOptions options;
  options.randomOrderSeed = 5;
  options.poison = true;
  return options;
}

class AccumulateTest : public AccumulateFixture {
protected:
  AccumulateTest() { useTarget({createHostDevice(hostile()), {&host}}); }

  HostExecutor host;
};

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

class AccumulateTraceTest : public testing::TestWithParam<const char *> {};

// Four microbatches of a recorded trace in replay are four eager ones, the first of which
// overwrites.
TEST_P(AccumulateTraceTest, FourMicrobatches) {
  HostExecutor host;
  accumulateFourMicrobatches({createHostDevice(hostile()), {&host}}, GetParam());
}
INSTANTIATE_TEST_SUITE_P(, AccumulateTraceTest,
                         testing::Values("mlp", "gpt_tiny", "llama_tiny", "gpt_tiny_checkpoint",
                                         "gpt_tiny_dropout"),
                         [](const auto &info) { return std::string(info.param); });

// 11: microbatches without zeroing accumulate.
TEST_F(AccumulateTest, Case11WithoutZeroing) {
  accumulatesWithoutZeroing();
}

// 11: what is returned fresh is the caller's own.
TEST_F(AccumulateTest, Case11FreshGradients) {
  returnsFreshGradients();
}

// The flag on the device says in every call whether buffers are overwritten, be they nan.
TEST_F(AccumulateTest, FlagDecides) {
  flagDecides();
}

// Parameters are accumulated or fresh one by one.
TEST_F(AccumulateTest, SomeAccumulate) {
  someAccumulate();
}

//===----------------------------------------------------------------------===//
// Bad input
//===----------------------------------------------------------------------===//

enum Argument : unsigned { Tangent, GradW, GradB, GradW2, First };

// A wrong buffer, flag or tangent is refused before anything runs, by name, with what was given:
// every buffer keeps what it holds, and the saved state still serves the right call.
TEST_F(AccumulateTest, BadArguments) {
  Program program = compileLayer(withFlag());
  DeviceRef other = createHostDevice({.index = 1});
  Tensor wide = filled(device, 1, 64);
  auto part = [&](int64_t element, int64_t count, int64_t stride = 1) {
    return Tensor(wide.storage(), element * 4, DType::F32, {count}, {stride});
  };
  const Tensor w = part(0, 8), b = part(8, 8), w2 = part(16, 8);
  const std::vector<Value> good = {filled(device, 1, 8), w, b, w2, flag(false)};
  const std::string gradW = "argument #1 '%grad_w' (l.w) of the backward: ",
                    first = "argument #4 '%first_microbatch' of the backward: ";
  struct Case {
    Argument argument;
    Value given;
    std::vector<std::string> says;
  };
  const Case cases[] = {
      {GradW, part(0, 7), {gradW, "expected f32[8]", "got f32[7]"}},
      {GradW, tensorOf(device, std::vector<float>(8), {2, 4}), {gradW, "got f32[2, 4]"}},
      {GradW, part(0, 8, 2), {gradW, "got f32[8; 2]"}},
      {GradW, cantFail(Tensor::empty(device, DType::BF16, {8})), {gradW, "got bf16[8]"}},
      {GradW, filled(other, 0, 8), {gradW, "expected a tensor on host", "host:1"}},
      {GradW, part(1, 8), {gradW, "static", "multiple of 16"}},
      {GradW, Tensor(), {gradW, "got a null tensor"}},
      {GradW, Value(), {gradW, "expected f32[8]", "got none"}},
      {GradW, Value(0.0), {gradW, "got f64 0.0"}},
      {GradW, Value(int64_t(0)), {gradW, "got i64 0"}},
      {GradW, Value(false), {gradW, "got bool false"}},
      {GradW, b, {gradW, "shares memory with argument #2 '%grad_b' (l.b)", "which is written"}},
      {GradB, part(4, 8), {"argument #2 '%grad_b' (l.b)", "shares memory", "'%grad_w'"}},
      {GradW2, good[Tangent], {"argument #0 '%t'", "shares memory", "'%grad_w2'"}},
      {Tangent, w2, {"argument #0 '%t'", "shares memory with argument #3 '%grad_w2'"}},
      {Tangent, Value(1.0), {"argument #0 '%t' of the backward: ", "got f64 1.0"}},
      {Tangent, Value(), {"argument #0 '%t' of the backward: ", "got none"}},
      {First, Value(true), {first, "expected bool[]", "got bool true"}},
      {First, Value(int64_t(1)), {first, "got i64 1"}},
      {First, Value(), {first, "got none"}},
      {First, filled(device, 1, 1), {first, "expected bool[]", "got f32[1]"}},
  };
  double numSteps = 0;
  for (const Case &test : cases) {
    SCOPED_TRACE(test.says.front() + test.says.back());
    for (bool isEager : {false, true}) {
      program.setEager(isEager);
      SavedState saved;
      Value three = filled(device, 3, 8);
      forward(program, {three, three, three, three, three}, &saved);
      std::vector<Value> bad = good;
      bad[test.argument] = test.given;
      std::vector<double> before = numbersOn(wide);
      Results results;
      std::string error = textOf(program.backwardRetaining(*stream, saved, bad, results));
      for (const std::string &part : test.says)
        EXPECT_THAT(error, HasSubstr(part));
      EXPECT_TRUE(results.empty());
      EXPECT_EQ(numbersOn(wide), before);
      backward(program, std::move(saved), good);
      EXPECT_EQ(numberOf(w), 1 + 3 * ++numSteps);
    }
  }
  EXPECT_EQ(program.counters().failures, 0u);
}

// One buffer too few is an error; so is one buffer for two gradients, which would count both.
TEST_F(AccumulateTest, NumberOfBuffers) {
  Program program = compileLayer();
  Value one = filled(device, 1, 8);
  SavedState saved;
  forward(program, {one, one, one, one, one}, &saved);
  Tensor w = filled(device, 0, 8), b = filled(device, 0, 8);
  Results results;
  auto errorOf = [&](std::vector<Value> arguments) {
    return textOf(program.backwardRetaining(*stream, saved, arguments, results));
  };
  EXPECT_THAT(errorOf({one, w, b}), HasSubstr("the backward takes 4 arguments, got 3"));
  EXPECT_THAT(
      errorOf({one, w, b, w}),
      testing::AllOf(HasSubstr("'%grad_w2'"), HasSubstr("shares memory"), HasSubstr("'%grad_w'")));
  EXPECT_EQ(numberOf(w), 0);
  EXPECT_EQ(errorOf({one, w, b, filled(device, 0, 8)}), "");
}

// A buffer that is saved, too, or that the forward still needs, is refused.
TEST_F(AccumulateTest, BufferThatIsSaved) {
  Program program = compileLayer();
  Tensor x = filled(device, 1, 8), w = filled(device, 2, 8), b = filled(device, 0, 8);
  SavedState saved;
  forward(program, {x, w, b, w, b}, &saved);
  Results results;
  for (const Tensor &wrong : {x, w}) {
    std::string error = textOf(program.backwardRetaining(
        *stream, saved, {filled(device, 1, 8), wrong, b, filled(device, 0, 8)}, results));
    EXPECT_THAT(error, testing::AllOf(HasSubstr("argument #1 '%grad_w'"),
                                      HasSubstr("shares memory with what is saved")));
  }
  EXPECT_EQ(numberOf(x), 1);
  EXPECT_EQ(numberOf(w), 2);
}

// Host scalars go through a program as they are, and a tensor for one is refused, as is a scalar of
// another kind: neither becomes the other.
TEST_F(AccumulateTest, HostScalars) {
  Program program = compileText(R"(
trace @f(%x: f32[8], %lr: f64, %n: i64, %b: bool) {
  %y: f32[8] = mul(%x, %lr)
  return(%y, %lr, %n, %b)
})");
  const std::vector<Value> good = {filled(device, 2, 8), 0.5, int64_t(7), true};
  const std::string names[] = {"'%x'", "'%lr'", "'%n'", "'%b'"};
  const Value wrong[] = {Value(), filled(device, 1, 8), 1.5, int64_t(1), false};
  for (unsigned round = 0; round < 2; ++round) {
    Results results = forward(program, good);
    ASSERT_EQ(results.size(), 4u);
    EXPECT_EQ(numberOf(results[0]), 1);
    EXPECT_EQ(*results[1].asFloat(), 0.5);
    EXPECT_EQ(*results[2].asInt(), 7);
    EXPECT_EQ(*results[3].asBool(), true);
    for (unsigned i = 0; i < good.size(); ++i)
      for (const Value &value : wrong) {
        bool isRight = (value.asTensor() && good[i].asTensor()) ||
                       (value.asFloat() && good[i].asFloat()) ||
                       (value.asInt() && good[i].asInt()) || (value.asBool() && good[i].asBool());
        if (isRight)
          continue;
        std::vector<Value> bad = good;
        bad[i] = value;
        Results none;
        EXPECT_THAT(textOf(program.forward(*stream, bad, none)),
                    testing::AllOf(HasSubstr("argument #" + std::to_string(i) + " " + names[i]),
                                   HasSubstr("got " + value.description())));
        EXPECT_TRUE(none.empty());
      }
  }
}

} // namespace
