//===- CasesTesting.h - What went wrong elsewhere, on every device -*- C++ -*-===//
//
// Faults that others have met in graphs of captured work, each as a program that must not have it.
// Every test says which kind it stands for. All numbers are small integers or halves, so results
// are exact on every device.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "EveryDeviceTesting.h"

namespace rondo {

class CasesTest : public EveryDeviceTest {
protected:
  /// Compiles with ops of the names in `deny` left out of regions.
  Program compileDenying(llvm::StringRef text, std::vector<std::string> deny,
                         ProgramOptions options = steadyOptions()) {
    CUDAGraphTransform transform(graphOptions(std::move(deny)));
    options.poison = options.checkGraphs = true;
    return compileWith(transform, text, options);
  }
  void seed(Program &program) {
    cantFail(program.generators()->set(*stream, "default", {11, 300}));
  }
};

//===----------------------------------------------------------------------===//
// Inputs that move, and that do not
//===----------------------------------------------------------------------===//

inline constexpr llvm::StringLiteral betweenRegions = R"(
trace @f(%x: f32[8], %w: f32[8] parameter) {
  %a: f32[8] = mul(%x, %w)
  %b: f32[8] = add(%a, %w)
  %c: f32[8] = abs(%b)
  %d: f32[8] = mul(%c, %w)
  %y: f32[8] = add(%d, %x)
  return(%y, %c)
})";

// 7: an op between two regions makes a new value in every call, which the second region sees; the
// parameter is updated in place in between, which both see. Nothing is captured again.
TEST_P(CasesTest, Case7BetweenRegions) {
  const std::pair<std::vector<std::string>, unsigned> settings[] = {
      {{"abs"}, 2}, {{}, 1}, {{"mul", "add"}, 1}};
  for (const auto &[denied, numRegions] : settings) {
    Program program = compileDenying(betweenRegions, denied);
    EXPECT_EQ(program.regions().size(), numRegions);
    Tensor w = filled(device, 0, 8);
    for (unsigned i = 0; i < 10; ++i) {
      overwrite(w, float(i));
      float x = -2.f * float(i);
      Results results = forward(program, {filled(device, x, 8), w});
      double c = std::abs(x * i + i);
      EXPECT_EQ(numbersOn(results[0]), std::vector<double>(8, c * i + x));
      EXPECT_EQ(numbersOn(results[1]), std::vector<double>(8, c));
    }
    EXPECT_EQ(program.counters().captures, numRegions);
    EXPECT_EQ(program.counters().replays, 9 * numRegions);
    EXPECT_EQ(program.counters().recaptures, 0u);
  }
}

// 7, 28: a parameter that is replaced by another tensor, by another place of the same storage, or
// by what the allocator put where it was: captured again where its address is another, never stale.
TEST_P(CasesTest, Case28ReplacedParameter) {
  Program program = compileDenying(betweenRegions, {"abs"});
  Tensor wide = iota(1, {16});
  auto part = [&](int64_t first) {
    return Tensor(wide.storage(), first * int64_t(sizeof(float)), DType::F32, {8}, {1});
  };
  Tensor a = filled(device, 2, 8), b = filled(device, 3, 8);
  std::vector<std::pair<Tensor, bool>> calls = {{a, false},      {a, false},      {b, true},
                                                {b, false},      {a, true},       {part(0), true},
                                                {part(8), true}, {part(8), false}};
  uint64_t patches = 0;
  Tensor x = filled(device, 1, 8);
  for (const auto &[w, isMoved] : calls) {
    patches += isMoved ? 2 : 0;
    Results results = forward(program, {x, w});
    std::vector<double> expected;
    for (double value : numbersOn(w))
      expected.push_back(2 * value * value + 1);
    EXPECT_EQ(numbersOn(results[0]), expected);
    EXPECT_EQ(program.counters().patches, patches);
  }
  EXPECT_EQ(program.counters().recaptures, 0u);
  EXPECT_EQ(program.counters().entries, 2u) << "no entry is left of old addresses";
  for (unsigned i = 0; i < 10; ++i) { // freed in every round
    Tensor w = filled(device, float(i), 8);
    Results results = forward(program, {filled(device, 1, 8), w});
    EXPECT_EQ(numbersOn(results[0]), std::vector<double>(8, 2 * i * i + 1));
  }
}

// 7, 28: where static inputs must not move, a parameter that did is an error that names it, and the
// right one works still.
TEST_P(CasesTest, Case28ReplacedParameterAsError) {
  ProgramOptions options = steadyOptions();
  options.onStaticMove = StaticMove::Error;
  Program program = compileDenying(betweenRegions, {}, options);
  Tensor a = filled(device, 2, 8), b = filled(device, 3, 8), x = filled(device, 1, 8);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(numbersOn(forward(program, {x, a})[0]), std::vector<double>(8, 9));
    Results results;
    EXPECT_THAT(textOf(program.forward(*stream, {x, b}, results)),
                testing::AllOf(testing::HasSubstr("'%w'"), testing::HasSubstr("is static")));
    EXPECT_TRUE(results.empty());
  }
  EXPECT_EQ(program.counters().recaptures, 0u);
}

// 28, in the backward: the parameter that was saved is the one that the forward was given.
TEST_P(CasesTest, Case28ReplacedSavedParameter) {
  Program program = compileDenying(R"(
pair @p {
  forward @forward(%x: f32[8], %w: f32[8] parameter) {
    %y: f32[8] = mul(%x, %w)
    return(%y, %w saved #0)
  }
  backward @backward(%w: f32[8] parameter saved #0, %g: f32[8]) {
    %a: f32[8] = mul(%g, %w)
    return(%a)
  }
})",
                                   {});
  Tensor parameters[] = {filled(device, 2, 8), filled(device, 3, 8)}, one = filled(device, 1, 8);
  SavedState saved[2];
  for (unsigned round = 0; round < 4; ++round) {
    for (unsigned i : {0, 1})
      EXPECT_EQ(numbersOn(forward(program, {one, parameters[i]}, &saved[i])[0])[7], 2 + i);
    for (unsigned i : {round % 2, 1 - round % 2})
      EXPECT_EQ(numbersOn(backward(program, std::move(saved[i]), {one})[0])[7], 2 + i);
  }
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

// 17: with lengths from 1 to 10,000, each in a call of its own, memory stays bounded, one warning
// says why most run without graphs, and lengths that were captured before replay all the while.
TEST_P(CasesTest, Case17StormOfSizes) {
  constexpr int64_t numLengths = 10000;
  CUDAGraphTransform transform(graphOptions());
  Program program = compileWith(transform, R"(
trace @f(%x: f32[L], %w: f32[1] parameter) {
  %a: f32[L] = mul(%x, %w)
  %b: f32[L] = neg(%a)
  %y: f32[L] = add(%b, %x)
  return(%y)
})");
  Tensor w = filled(device, 3, 1);
  auto call = [&](int64_t length) {
    Results results = forward(program, {filled(device, float(length), length), w});
    ASSERT_EQ(results[0].asTensor()->numElements(), length);
    std::vector<float> y(length);
    transfer(device, y.data(), results[0].asTensor()->data(), y.size() * sizeof(float));
    EXPECT_EQ(y, std::vector<float>(length, -2.f * float(length)));
  };
  const int64_t old[] = {256, 31, 1024};
  for (unsigned i = 0; i < 4; ++i)
    for (int64_t length : old)
      call(length);
  EXPECT_EQ(program.counters().captures, 3u);
  EXPECT_EQ(program.counters().replays, 9u);

  uint64_t numOld = 0;
  auto callOld = [&](int64_t length) {
    uint64_t replays = program.counters().replays;
    call(length);
    EXPECT_EQ(program.counters().replays, replays + 1);
    ++numOld;
  };
  uint64_t mostBytes = 0;
  for (int64_t length = 1; length <= numLengths; ++length) {
    if (llvm::is_contained(old, length))
      callOld(length);
    else
      call(length);
    if (length % 100 == 0)
      callOld(old[length / 100 % 3]);
    mostBytes = std::max(mostBytes, device->memoryUse().bytes);
  }
  EXPECT_EQ(program.counters().captures, 64u);
  EXPECT_EQ(program.counters().entries, 64u);
  EXPECT_EQ(program.counters().replays, 9 + numOld);
  EXPECT_EQ(program.counters().evictions, 0u);
  // An argument, a result and an arena of the greatest length, and results and arenas of what is
  // kept: less than a thousandth of what all lengths take.
  uint64_t kept = 3 * 1024 * 4 + 64 * 64 * 4;
  EXPECT_LE(mostBytes, 5 * numLengths * 4 + 2 * kept);
  EXPECT_THAT(program.takeRemarks(),
              testing::ElementsAre(testing::HasSubstr("warning: a storm of sizes")));
}

// Two sizes in turn: each has a graph from its first call on, and replays in its second and in
// every other.
TEST_P(CasesTest, AlternatingSizes) {
  CUDAGraphTransform transform(graphOptions());
  Program program = compileWith(transform, R"(
pair @p {
  forward @forward(%x: f32[L], %w: f32[1] parameter) {
    %a: f32[L] = mul(%x, %w)
    %y: f32[L] = add(%a, %x)
    return(%y, %a saved #0)
  }
  backward @backward(%a: f32[L] saved #0, %g: f32[L]) {
    %b: f32[L] = mul(%a, %g)
    %c: f32[L] = neg(%b)
    return(%c)
  }
})",
                                poisoned());
  Tensor w = filled(device, 3, 1);
  for (unsigned i = 0; i < 20; ++i) {
    int64_t length = i % 2 ? 24 : 40;
    SavedState saved;
    Results results = forward(program, {filled(device, float(i), length), w}, &saved);
    EXPECT_EQ(numbersOn(results[0]), std::vector<double>(length, 4 * i));
    Results gradients = backward(program, std::move(saved), {filled(device, 2, length)});
    EXPECT_EQ(numbersOn(gradients[0]), std::vector<double>(length, -6.0 * i));
    EXPECT_EQ(program.counters().captures, i == 0 ? 2u : 4u);
    EXPECT_EQ(program.counters().replays, i < 2 ? 0u : 2 * (i - 1));
  }
  EXPECT_EQ(program.counters().entries, 4u);
  EXPECT_EQ(program.counters().recaptures, 0u);
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

// 12: state += x advances once per call, the first included.
TEST_P(CasesTest, Case12FirstCallAdvancesOnce) {
  Program program = compileDenying(R"(
trace @f(%state: f32[4] buffer, %x: f32[4]) {
  %n: f32[4] = add_(%state, %x)
  %y: f32[4] = mul(%n) {scalar = 10}
  return(%y)
})",
                                   {});
  Tensor state = filled(device, 0, 4);
  for (unsigned i = 1; i <= 5; ++i) {
    Results results = forward(program, {state, filled(device, 1, 4)});
    EXPECT_EQ(numbersOn(Value(state)), std::vector<double>(4, i));
    EXPECT_EQ(numbersOn(results[0]), std::vector<double>(4, 10 * i));
  }
}

// 22: an input that a region writes and that moves has the new value in the caller's tensor; also
// when that starts within its storage, at any multiple of an element, and also when the region
// writes only a part. What is around it stays.
TEST_P(CasesTest, Case22MutatedInput) {
  Program program = compileDenying(R"(
trace @f(%x: f32[8], %d: f32[4]) {
  %v: f32[4] = slice(%x) {start = 2, end = 6}
  %n: f32[4] = add_(%v, %d)
  %y: f32[4] = neg(%n)
  return(%y)
})",
                                   {});
  for (int64_t offset : {0, 4, 1, 3, 8, 0, 7}) {
    SCOPED_TRACE(offset);
    Tensor wide = iota(0, {16});
    Tensor x(wide.storage(), offset * 4, DType::F32, {8}, {1});
    Results results = forward(program, {x, filled(device, 100, 4)});
    std::vector<double> expected, y;
    for (int64_t i = 0; i < 16; ++i) {
      bool isWritten = i >= offset + 2 && i < offset + 6;
      expected.push_back(double(i) + (isWritten ? 100 : 0));
      if (isWritten)
        y.push_back(-expected.back());
    }
    EXPECT_EQ(numbersOn(Value(wide)), expected);
    EXPECT_EQ(numbersOn(results[0]), y);
  }
  EXPECT_EQ(program.counters().captures, 1u);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

// 11: two microbatches without zeroing. Gradients that are returned are the caller's own, so that
// the sum of both is right, whenever it is taken.
TEST_P(CasesTest, Case11GradientsAreTheCallers) {
  Program program = compileDenying(R"(
pair @p {
  forward @forward(%x: f32[8], %w: f32[8] parameter) {
    %y: f32[8] = mul(%x, %w)
    return(%y, %x saved #0)
  }
  backward @backward(%x: f32[8] saved #0, %g: f32[8]) {
    %a: f32[8] = mul(%g, %x)
    return(%a)
  }
})",
                                   {});
  Tensor w = filled(device, 2, 8);
  std::vector<Value> gradients;
  for (unsigned i = 0; i < 6; ++i) {
    SavedState saved;
    forward(program, {filled(device, float(i + 1), 8), w}, &saved);
    gradients.push_back(backward(program, std::move(saved), {filled(device, 3, 8)})[0]);
    for (unsigned k = 0; k <= i; ++k)
      EXPECT_EQ(numbersOn(gradients[k]), std::vector<double>(8, 3 * (k + 1)));
  }
  EXPECT_EQ(program.counters().replays, 2 * 5u);
}

// 11: a backward that adds to the caller's gradients does so once per call, from the first on, and
// starts from what the caller has set them to.
TEST_P(CasesTest, Case11AccumulatesInTheGraph) {
  Program program = compileDenying(R"(
pair @p {
  forward @forward(%x: f32[8], %w: f32[8] parameter) {
    %y: f32[8] = mul(%x, %w)
    return(%y, %x saved #0)
  }
  backward @backward(%x: f32[8] saved #0, %g: f32[8], %sum: f32[8] buffer) {
    %a: f32[8] = mul(%g, %x)
    %n: f32[8] = add_(%sum, %a)
    return(%a)
  }
})",
                                   {});
  Tensor w = filled(device, 2, 8), sum = filled(device, 0, 8);
  for (unsigned step = 0; step < 4; ++step) {
    overwrite(sum, 0);
    double expected = 0;
    for (unsigned microbatch = 0; microbatch < 2; ++microbatch) {
      float x = float(2 * step + microbatch + 1);
      SavedState saved;
      forward(program, {filled(device, x, 8), w}, &saved);
      backward(program, std::move(saved), {filled(device, 3, 8), sum});
      expected += 3 * x;
      EXPECT_EQ(numbersOn(Value(sum)), std::vector<double>(8, expected));
    }
  }
  EXPECT_EQ(program.counters().captures, 2u);
  EXPECT_EQ(program.counters().replays, 2 * 7u);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

// 23: results that the caller holds keep their values, and a result may be the next argument.
TEST_P(CasesTest, Case23HeldResults) {
  Program program = compileDenying(R"(
trace @f(%x: f32[8]) {
  %a: f32[8] = add(%x) {scalar = 1}
  %b: f32[8] = add(%a, %a)
  return(%b)
})",
                                   {});
  std::vector<Results> held;
  for (unsigned i = 0; i < 5; ++i)
    held.push_back(forward(program, {filled(device, float(i), 8)}));
  for (unsigned i = 0; i < 5; ++i)
    EXPECT_EQ(numbersOn(held[i][0]), std::vector<double>(8, 2 * (i + 1)));

  Value x = filled(device, 0, 8);
  for (unsigned i = 1; i <= 20; ++i) {
    x = forward(program, {x})[0];
    EXPECT_EQ(numbersOn(x), std::vector<double>(8, std::exp2(i + 1) - 2));
  }
  for (unsigned i = 0; i < 5; ++i)
    EXPECT_EQ(numbersOn(held[i][0]), std::vector<double>(8, 2 * (i + 1)));
}

// 18: graphs that a cache lets go of while something else is being captured: the capture is not
// broken, and what was let go of is captured again afterwards.
TEST_P(CasesTest, Case18ReleasedDuringACapture) {
  constexpr llvm::StringLiteral text = R"(
trace @f(%x: f32[4096]) {
  %a: f32[4096] = add(%x) {scalar = 1}
  %y: f32[4096] = add(%a, %a)
  return(%y)
})";
  CUDAGraphTransform transform(graphOptions());
  Program captured = compileWith(transform, text, poisoned()),
          released = compileWith(transform, text, poisoned());
  std::shared_ptr<GraphCache> cache = GraphCache::find(transform.domain(), *device);
  Tensor x = filled(device, 0, 4096);
  std::vector<double> expected(4096, 2);
  forward(captured, {x}); // what it allocates, a capture would have to allow
  for (CaptureMode mode : {CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed}) {
    overwrite(x, 0);
    for (unsigned i = 0; i < 2; ++i)
      EXPECT_EQ(numbersOn(forward(released, {x})[0]), expected);
    EXPECT_GT(cache->counters().entries, 0u);

    cantFail(stream->beginCapture(mode));
    cache->reset();
    EXPECT_EQ(cache->counters().entries, 0u);
    Results results;
    EXPECT_EQ(textOf(captured.forward(*stream, {x}, results)), "");
    llvm::Expected<std::unique_ptr<Graph>> graph = stream->endCapture();
    ASSERT_EQ(textOf(graph.takeError()), "");
    std::unique_ptr<GraphExec> exec = cantFail((*graph)->instantiate());
    for (float value : {1.f, 5.f}) {
      overwrite(x, value);
      cantFail(exec->launch(*stream));
      EXPECT_EQ(numbersOn(results[0]), std::vector<double>(4096, 2 * value + 2));
    }
    EXPECT_EQ(numbersOn(forward(released, {x})[0]), std::vector<double>(4096, 12));
    EXPECT_EQ(cache->counters().captures, 1u);
    EXPECT_EQ(numbersOn(forward(captured, {x})[0]), std::vector<double>(4096, 12));
  }
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

// 26: a trace without a backward works, and so do two pairs through one transform.
TEST_P(CasesTest, Case26OneTransform) {
  CUDAGraphTransform transform(graphOptions());
  auto make = [&](llvm::StringRef text) { return compileWith(transform, text); };
  Program inference = make("trace @f(%x: f32[8]) {\n%y: f32[8] = neg(%x)\nreturn(%y)\n}");
  auto pairOf = [](std::string op) {
    return "pair @p {\nforward @forward(%x: f32[8]) {\n%y: f32[8] = " + op +
           "(%x)\nreturn(%y, %x saved #0)\n}\nbackward @backward(%x: f32[8] saved #0, %g: f32[8]) "
           "{\n%a: f32[8] = " +
           op + "(%x)\n%b: f32[8] = mul(%a, %g)\nreturn(%b)\n}\n}";
  };
  Program absolute = make(pairOf("abs")), negative = make(pairOf("neg"));
  EXPECT_FALSE(inference.hasBackward());
  for (unsigned i = 0; i < 3; ++i) {
    Tensor x = filled(device, -2, 8);
    EXPECT_EQ(numbersOn(forward(inference, {x})[0])[0], 2);
    SavedState a, n;
    EXPECT_EQ(numbersOn(forward(absolute, {filled(device, -3, 8)}, &a)[0])[0], 3);
    EXPECT_EQ(numbersOn(forward(negative, {filled(device, 4, 8)}, &n)[0])[0], -4);
    EXPECT_EQ(numbersOn(backward(absolute, std::move(a), {x})[0])[0], -6);
    EXPECT_EQ(numbersOn(backward(negative, std::move(n), {x})[0])[0], 8);
  }
  EXPECT_EQ(inference.counters().entries, 5u);
}

} // namespace rondo
