//===- SymbolsTest.cpp - Pairs with symbolic sizes ------------------------===//
//
// A pair with symbols is compiled at the first call for each binding of them.
//
//===----------------------------------------------------------------------===//

#include "ProgramTesting.h"

using namespace rondo;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

namespace {

constexpr llvm::StringLiteral text = R"(
pair @p {
  forward @fw(%x: f32[B, 2], %w: f32[2, 2] parameter, %bias: f32[B, 1]) {
    %h: f32[B, 2] = mm(%x, %w)
    %k: f32[B, 2] = add(%h, %bias)
    %y: f32[B, 2] = relu(%k)
    %s: f32[2] = sum(%y) {dims = [0]}
    return(%s, %y saved #0)
  }
  backward @bw(%g: f32[B, 2], %y: f32[B, 2] saved #0) {
    %d: f32[B, 2] = mul(%g, %y)
    %e: f32[B, 2] = neg(%d)
    return(%e)
  }
}
)";

class SymbolsTest : public ProgramFixture {
protected:
  SymbolsTest() : weight(floats({1, 0, 0, 2}, {{2, 2}})) {
    Pipeline usual = pipelineOf(regionPipeline.str(), host);
    llvm::Expected<Program> made =
        compile(parse(text), device, &host, [this, usual](TracePair pair, const SymbolBindings &b) {
          for (const auto &entry : b)
            specialised.push_back({entry.getKey().str(), entry.getValue()});
          return usual(std::move(pair), b);
        });
    if (made)
      program = std::make_unique<Program>(std::move(*made));
    else
      ADD_FAILURE() << llvm::toString(made.takeError());
  }

  /// x[i] = (i, 1), bias 0: y[i] = (i, 2).
  std::vector<Value> inputs(int64_t size) const {
    std::vector<float> x;
    for (int64_t i = 0; i < size; ++i)
      x.insert(x.end(), {float(i), 1});
    return {floats(x, {{size, 2}}), weight, floats(std::vector<float>(size, 0), {{size, 1}})};
  }
  void expectForward(int64_t size, SavedState *saved = nullptr) {
    llvm::SmallVector<Value> results = forward(*program, inputs(size), saved);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_THAT(valuesOf(results[0]), ElementsAre(size * (size - 1) / 2, 2 * size));
  }
  void expectBackward(int64_t size, SavedState saved) {
    llvm::SmallVector<Value> results = backward(
        *program, std::move(saved), {floats(std::vector<float>(2 * size, 1), {{size, 2}})});
    ASSERT_EQ(results.size(), 1u);
    Doubles expected;
    for (int64_t i = 0; i < size; ++i)
      expected.insert(expected.end(), {double(-i), -2});
    EXPECT_EQ(valuesOf(results[0]), expected);
  }

  Tensor weight;
  std::vector<std::pair<std::string, int64_t>> specialised;
  std::unique_ptr<Program> program;
};

} // namespace

// Nothing is compiled before the first call, then once for each binding. No element is a size, too.
TEST_F(SymbolsTest, CompilesPerBinding) {
  EXPECT_THAT(specialised, IsEmpty());
  EXPECT_THAT(program->regions(), IsEmpty());
  for (int64_t size : {4, 4, 3, 0, 4, 0, 3}) {
    SCOPED_TRACE(size);
    SavedState saved;
    expectForward(size, &saved);
    expectBackward(size, std::move(saved));
  }
  EXPECT_THAT(specialised, ElementsAre(Pair("B", 4), Pair("B", 3), Pair("B", 0)));
  EXPECT_EQ(program->regions().size(), 2u);
}

// Sizes that alternate replay from their second visit on.
TEST_F(SymbolsTest, AlternatingSizesReplay) {
  for (int64_t size : {5, 2})
    expectForward(size);
  CacheCounters first = program->counters();
  EXPECT_EQ(first.eagerRuns, 2u);
  EXPECT_EQ(first.replays, 0u);
  for (int64_t size : {5, 2, 2, 5})
    expectForward(size);
  EXPECT_EQ(program->counters().eagerRuns, 2u);
  EXPECT_EQ(program->counters().captures, 2u);
  EXPECT_EQ(program->counters().replays, 4u);
}

// A size that needs a larger arena costs what was captured in the smaller one: once.
TEST_F(SymbolsTest, GrowingSizesCaptureAgain) {
  for (int64_t size : {2, 5, 2, 5})
    expectForward(size);
  uint64_t captures = program->counters().captures;
  EXPECT_LE(captures, 3u);
  for (int64_t size : {2, 5, 2})
    expectForward(size);
  EXPECT_EQ(program->counters().captures, captures);
}

// The saved states of different bindings go to the backward of theirs, in any order.
TEST_F(SymbolsTest, SavedStatesKnowTheirBinding) {
  for (bool isReversed : {false, true, false}) {
    SavedState small, large;
    expectForward(2, &small);
    expectForward(5, &large);
    if (isReversed)
      expectBackward(5, std::move(large));
    expectBackward(2, std::move(small));
    if (!isReversed)
      expectBackward(5, std::move(large));
  }
  // Gradients of another size do not fit.
  SavedState saved;
  expectForward(2, &saved);
  llvm::SmallVector<Value> results;
  llvm::Error error = program->backward(*stream, std::move(saved),
                                        {floats(std::vector<float>(10, 1), {{5, 2}})}, results);
  EXPECT_THAT(llvm::toString(std::move(error)),
              AllOf(HasSubstr("argument #0 '%g' of the backward"), HasSubstr("expected f32[2, 2]"),
                    HasSubstr("got f32[5, 2]")));
  expectBackward(2, std::move(saved));
}

// Arguments that do not say what the symbols are are named, and nothing is compiled for them.
TEST_F(SymbolsTest, BadArguments) {
  struct Case {
    std::vector<Value> given;
    std::vector<std::string> says;
  };
  std::vector<Value> two = inputs(2), three = inputs(3);
  const Case cases[] = {
      {{two[0], two[1], three[2]},
       {"argument #2 '%bias' of the forward", "B is 3", "argument #0 '%x' of the forward", "is 2"}},
      {{two[0], two[1]}, {"takes 3 arguments, got 2"}},
      {{Value(), two[1], two[2]}, {"argument #0 '%x'", "expected f32[B, 2]", "got none"}},
      {{two[0], two[1], floats({1})}, {"argument #2 '%bias'", "expected f32[B, 1]", "got f32[1]"}},
      {{Value(Tensor()), two[1], two[2]}, {"argument #0 '%x'", "null tensor"}},
  };
  for (const Case &bad : cases) {
    SCOPED_TRACE(bad.says.front());
    std::string error = forwardError(*program, bad.given);
    for (const std::string &part : bad.says)
      EXPECT_THAT(error, HasSubstr(part));
  }
  EXPECT_THAT(specialised, IsEmpty());
  // Where the symbols are known, the rest is checked as ever.
  EXPECT_THAT(forwardError(*program, {two[0], Value(1.0), two[2]}), HasSubstr("argument #1 '%w'"));
  expectForward(2);
}

// A size that follows from others is checked against them.
TEST_F(SymbolsTest, Expressions) {
  auto doubled = compiled(R"(
trace @t(%x: f32[B], %y: f32[2*B]) {
  %a: f32[B] = neg(%x)
  %b: f32[2*B] = neg(%y)
  return(%a, %b)
})");
  ASSERT_TRUE(doubled);
  EXPECT_EQ(forward(*doubled, {floats({1}), floats({1, 2})}).size(), 2u);
  EXPECT_THAT(forwardError(*doubled, {floats({1}), floats({1, 2, 3})}),
              AllOf(HasSubstr("argument #1 '%y'"), HasSubstr("expected f32[2]")));
  auto alone = compiled(R"(
trace @t(%y: f32[2*B]) {
  %b: f32[2*B] = neg(%y)
  return(%b)
})");
  ASSERT_TRUE(alone);
  EXPECT_THAT(forwardError(*alone, {floats({1, 2})}), HasSubstr("symbol 'B'"));
}

namespace {

/// Claims ops whatever their sizes.
class CarelessExecutor : public HostExecutor {
public:
  ClaimAnswer claim(const Trace &, OpId) const override { return ClaimAnswer::accept(); }
};

} // namespace

// A pipeline that leaves symbols in the pair is an error that says so.
TEST_F(SymbolsTest, PipelineDoesNotSpecialise) {
  CarelessExecutor careless;
  for (const Executor *executor :
       {static_cast<const Executor *>(&host), static_cast<const Executor *>(&careless)}) {
    Pipeline usual = pipelineOf("execution", *executor);
    Program lazy = cantFail(
        compile(parse(text), device, executor, [&](TracePair pair, const SymbolBindings &) {
          return usual(std::move(pair), {});
        }));
    EXPECT_THAT(forwardError(lazy, inputs(2)), HasSubstr("specialise the"));
  }
}
