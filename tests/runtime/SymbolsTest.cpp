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
    %q: f32[B, 2] = sub(%k, %h)
    %r: f32[B, 2] = add(%k, %q)
    %y: f32[B, 2] = relu(%r)
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
  explicit SymbolsTest(HostDeviceOptions options = {})
      : ProgramFixture(std::move(options)), weight(floats({1, 0, 0, 2}, {{2, 2}})) {
    begin();
  }

  void begin(ProgramOptions options = steadyOptions()) {
    Pipeline usual = pipelineOf(regionPipeline.str(), host);
    options.checkGraphs = true;
    llvm::Expected<Program> made = compile(
        parse(text), device, &host,
        [this, usual](TracePair pair, const SymbolBindings &b) {
          for (const auto &entry : b)
            specialised.push_back({entry.getKey().str(), entry.getValue()});
          return usual(std::move(pair), b);
        },
        options);
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

// Sizes that alternate replay from their second visit on, whichever came first: a larger arena does
// not cost what was captured in the smaller one.
TEST_F(SymbolsTest, AlternatingSizesReplay) {
  for (auto [first, second] : {std::pair(5, 2), std::pair(2, 5)}) {
    SCOPED_TRACE(first);
    begin();
    for (unsigned round = 0; round < 4; ++round) {
      for (int64_t size : {first, second}) {
        SavedState saved;
        expectForward(size, &saved);
        expectBackward(size, std::move(saved));
      }
      CacheCounters counters = program->counters();
      EXPECT_EQ(counters.captures, 4u) << "a forward and a backward each";
      EXPECT_EQ(counters.eagerRuns, 4u);
      EXPECT_EQ(counters.replays, 4 * round);
    }
    EXPECT_THAT(program->takeRemarks(), IsEmpty());
  }
}

// Of sizes that keep growing, those whose arena went are captured again, once.
TEST_F(SymbolsTest, GrowingSizesCaptureAgain) {
  auto callAll = [&] {
    for (int64_t size = 1; size <= 40; ++size)
      expectForward(size);
    return program->counters().captures;
  };
  EXPECT_EQ(callAll(), 40u);
  EXPECT_GT(program->memory(Side::Forward).arena, 0u);
  uint64_t captures = callAll();
  EXPECT_GT(captures, 40u);
  EXPECT_LT(captures, 80u) << "small arenas are there";
  EXPECT_EQ(callAll(), captures);
}

// Where memory is short, a larger arena takes the place of the smaller ones.
TEST_F(SymbolsTest, GrowsIntoWhatThereIs) {
  auto bytesFor = [&](std::vector<int64_t> sizes, uint64_t limit) {
    program = nullptr;
    device = createHostDevice({.memoryLimit = limit});
    stream = cantFail(device->createStream());
    weight = floats({1, 0, 0, 2}, {{2, 2}});
    begin();
    for (int64_t size : sizes)
      expectForward(size);
    return device->memoryUse().peakBytes;
  };
  uint64_t limit = bytesFor({100}, 0);
  EXPECT_GT(bytesFor({80, 100}, 0), limit);
  EXPECT_LE(bytesFor({80, 100}, limit), limit);
  expectForward(80);
  expectForward(100);
}

//===----------------------------------------------------------------------===//
// Sizes that go
//===----------------------------------------------------------------------===//

// Beyond the bound a size goes with its graphs and its memory; when it comes again it is compiled
// and captured again. What was counted stays counted.
TEST_F(SymbolsTest, Bounded) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 2;
  begin(options);
  expectForward(9);
  expectForward(9);
  uint64_t bytes = 0;
  for (unsigned round = 0; round < 8; ++round) {
    for (int64_t size : {3, 3, 4, 4, 5, 5})
      expectForward(size);
    EXPECT_LE(program->counters().entries, 2u);
    EXPECT_EQ(program->counters().bytes, program->graphs()[0].bytes + program->graphs()[1].bytes);
    if (round > 3) {
      EXPECT_LE(device->memoryUse().bytes, bytes);
    }
    bytes = std::max(bytes, device->memoryUse().bytes);
  }
  CacheCounters counters = program->counters();
  EXPECT_EQ(counters.captures, specialised.size());
  EXPECT_EQ(counters.eagerRuns, specialised.size());
  EXPECT_EQ(counters.replays, 50 - specialised.size());
  EXPECT_GE(specialised.size(), 16u);
  EXPECT_THAT(program->takeRemarks(), IsEmpty()) << "half of the calls are not new";
}

// What a caller holds of a size that went stays: results keep their values, and a size whose
// SavedState is held does not go before its backward.
TEST_F(SymbolsTest, HeldBeyondTheBound) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 1;
  begin(options);
  for (unsigned round = 0; round < 3; ++round) {
    auto held = forward(*program, inputs(7));
    SavedState saved[3];
    for (int64_t size : {0, 1, 2})
      expectForward(20 + size, &saved[size]);
    for (int64_t size = 30; size < 40; ++size)
      expectForward(size);
    size_t numCompiled = specialised.size();
    for (int64_t size : {2, 0, 1}) {
      EXPECT_EQ(llvm::cantFail(program->savedValues(saved[size])).size(), 1u);
      expectBackward(20 + size, std::move(saved[size]));
    }
    EXPECT_EQ(specialised.size(), numCompiled);
    EXPECT_THAT(valuesOf(held[0]), ElementsAre(21, 14));
    expectForward(8);
    EXPECT_LE(program->counters().entries, 2u) << "one size's";
  }
  // A state that outlives its program is of no other.
  SavedState saved;
  expectForward(3, &saved);
  begin(options);
  llvm::SmallVector<Value> results;
  EXPECT_THAT(llvm::toString(program->backward(*stream, std::move(saved), {floats({1})}, results)),
              HasSubstr("of another program"));
}

// A graph of the caller keeps the size that it captured.
TEST_F(SymbolsTest, CapturedByTheCaller) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 1;
  begin(options);
  expectForward(4); // what it allocates, a capture would have to allow
  std::vector<Value> arguments = inputs(4);
  llvm::SmallVector<Value> results;
  cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
  EXPECT_EQ(llvm::toString(program->forward(*stream, arguments, results)), "");
  std::unique_ptr<Graph> graph = cantFail(stream->endCapture());
  std::unique_ptr<GraphExec> exec = cantFail(graph->instantiate());
  for (int64_t size : {5, 6, 5, 7})
    expectForward(size);
  cantFail(exec->launch(*stream));
  EXPECT_THAT(valuesOf(results[0]), ElementsAre(6, 8));
  size_t numCompiled = specialised.size();
  expectForward(4);
  EXPECT_EQ(specialised.size(), numCompiled);
}

//===----------------------------------------------------------------------===//
// Storms of sizes
//===----------------------------------------------------------------------===//

// In a storm new sizes run without graphs, forward and backward, and one warning says so; sizes
// that were captured before replay throughout; when it is over, new sizes are captured again.
TEST_F(SymbolsTest, Storm) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 4;
  begin(options);
  auto step = [&](int64_t size) {
    SavedState saved;
    expectForward(size, &saved);
    expectBackward(size, std::move(saved));
  };
  for (unsigned i = 0; i < 200; ++i) // so that no size is worth more
    for (int64_t size : {2, 90})
      step(size);
  EXPECT_EQ(program->counters().captures, 4u);
  int64_t size = 100;
  while (program->takeRemarks().empty() && size < 200)
    step(size++);
  EXPECT_EQ(size, 100 + 33) << "more than half of 64";

  CacheCounters before = program->counters();
  uint64_t bytes = 0;
  for (; size < 400; size += 2) {
    step(size);
    step(size + 1);
    step(size % 4 ? 2 : 90);
    bytes = std::max(bytes, device->memoryUse().bytes);
  }
  CacheCounters after = program->counters();
  EXPECT_EQ(after.captures, before.captures);
  EXPECT_EQ(after.eagerRuns - before.eagerRuns, 4 * 134u);
  EXPECT_EQ(after.replays - before.replays, 2 * 134u);
  EXPECT_LE(bytes, 16 * 400 * 8u);
  EXPECT_THAT(program->takeRemarks(), IsEmpty());

  // One that comes again at once is captured.
  step(size);
  step(size);
  step(size);
  EXPECT_EQ(program->counters().captures, before.captures + 2);
  EXPECT_EQ(program->counters().replays, after.replays + 2);

  for (unsigned i = 0; i < 64; ++i)
    step(2);
  EXPECT_EQ(program->counters().captures, before.captures + 2);
  step(500);
  step(500);
  EXPECT_EQ(program->counters().captures, before.captures + 4);
  EXPECT_THAT(program->takeRemarks(), IsEmpty());
}

// The warning says how many sizes there were, and what to do.
TEST_F(SymbolsTest, StormWarning) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 50;
  begin(options);
  for (int64_t size = 1; size <= 50; ++size)
    expectForward(size);
  EXPECT_THAT(program->takeRemarks(), IsEmpty());
  for (int64_t size = 51; size <= 120; ++size)
    expectForward(size);
  EXPECT_EQ(program->counters().captures, 50u);
  EXPECT_THAT(program->takeRemarks(),
              ElementsAre(AllOf(HasSubstr("warning: a storm of sizes"),
                                HasSubstr("51 of the last 64 calls"), HasSubstr("keeps 50"),
                                HasSubstr("maxVariants"))));
}

// With one size and nothing else there is never a storm.
TEST_F(SymbolsTest, NoStorm) {
  ProgramOptions options = steadyOptions();
  options.maxVariants = 1;
  begin(options);
  for (unsigned i = 0; i < 200; ++i)
    expectForward(3);
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_THAT(program->takeRemarks(), IsEmpty());
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

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
