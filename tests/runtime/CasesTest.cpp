//===- CasesTest.cpp - What went wrong elsewhere --------------------------===//
//
// Faults that others have met in graphs of captured work, each as a program that must not have it.
// Every test says which kind it stands for; devices are hostile (random order, poison).
// Those of random numbers (8, 9, 13) are in GeneratorsTesting.h, for every device.
//
//===----------------------------------------------------------------------===//

#include "CallTesting.h"

using namespace rondo;

namespace {

class CasesTest : public CallTest {
protected:
  CasesTest() : CallTest(hostile()) {}

  static HostDeviceOptions hostile(uint16_t index = 0) {
    HostDeviceOptions options;
    options.index = index;
    options.randomOrderSeed = 3;
    options.poison = true;
    return options;
  }

  /// Compiles with ops of the names in `deny` left out of regions.
  Program compileDenying(llvm::StringRef text, std::vector<std::string> deny,
                         ProgramOptions options = {}) {
    CUDAGraphTransform transform(graphOptions(std::move(deny)));
    options.poison = options.checkGraphs = true;
    return cantFail(compile(parse(text), device, &host, pipelineWith(transform, host), options));
  }
  Tensor iota(float first, int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(first + float(i));
    return tensorOf(device, values);
  }
};

//===----------------------------------------------------------------------===//
// Inputs that move, and that do not
//===----------------------------------------------------------------------===//

constexpr llvm::StringLiteral betweenRegions = R"(
trace @f(%x: f32[8], %w: f32[8] parameter) {
  %a: f32[8] = mul(%x, %w)
  %b: f32[8] = add(%a, %w)
  %c: f32[8] = abs(%b)
  %d: f32[8] = mul(%c, %w)
  %y: f32[8] = add(%d, %x)
  return(%y, %c)
})";

struct Denied {
  std::vector<std::string> ops;
  unsigned numRegions;
};

// 7: an op between two regions makes a new value in every call, which the second region sees; the
// parameter is updated in place in between, which both see. Nothing is captured again.
TEST_F(CasesTest, Case7BetweenRegions) {
  for (const Denied &denied : {Denied{{"abs"}, 2}, Denied{{}, 1}, Denied{{"mul", "add"}, 1}}) {
    Program program = compileDenying(betweenRegions, denied.ops);
    EXPECT_EQ(program.regions().size(), denied.numRegions);
    Tensor w = filled(device, 0, 8);
    for (unsigned i = 0; i < 10; ++i) {
      overwrite(w, float(i));
      float x = -2.f * float(i);
      Results results = forward(program, {filled(device, x, 8), w});
      double c = std::abs(x * i + i);
      EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, c * i + x));
      EXPECT_EQ(numbersOf(results[1]), std::vector<double>(8, c));
    }
    EXPECT_EQ(program.counters().captures, denied.numRegions);
    EXPECT_EQ(program.counters().replays, 9 * denied.numRegions);
    EXPECT_EQ(program.counters().recaptures, 0u);
  }
}

// 7, 28: a parameter that is replaced by another tensor, by another place of the same storage, or
// by what the allocator put where it was: captured again where its address is another, never stale.
TEST_F(CasesTest, Case28ReplacedParameter) {
  Program program = compileDenying(betweenRegions, {"abs"});
  Tensor wide = iota(1, 16);
  auto part = [&](int64_t first) {
    return Tensor(wide.storage(), first * 4, DType::F32, {8}, {1});
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
    for (double value : doublesOf(w))
      expected.push_back(2 * value * value + 1);
    EXPECT_EQ(numbersOf(results[0]), expected);
    EXPECT_EQ(program.counters().patches, patches);
  }
  EXPECT_EQ(program.counters().recaptures, 0u);
  EXPECT_EQ(program.counters().entries, 2u) << "no entry is left of old addresses";
  for (unsigned i = 0; i < 10; ++i) { // freed in every round
    Tensor w = filled(device, float(i), 8);
    Results results = forward(program, {filled(device, 1, 8), w});
    EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, 2 * i * i + 1));
  }
}

// 7, 28: where static inputs must not move, a parameter that did is an error that names it, and the
// right one works still.
TEST_F(CasesTest, Case28ReplacedParameterAsError) {
  ProgramOptions options;
  options.onStaticMove = StaticMove::Error;
  Program program = compileDenying(betweenRegions, {}, options);
  Tensor a = filled(device, 2, 8), b = filled(device, 3, 8), x = filled(device, 1, 8);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(numbersOf(forward(program, {x, a})[0]), std::vector<double>(8, 9));
    Results results;
    EXPECT_THAT(textOf(program.forward(*stream, {x, b}, results)),
                testing::AllOf(testing::HasSubstr("'%w'"), testing::HasSubstr("is static")));
    EXPECT_TRUE(results.empty());
  }
  EXPECT_EQ(program.counters().recaptures, 0u);
}

// 28, in the backward: the parameter that was saved is the one that the forward was given.
TEST_F(CasesTest, Case28ReplacedSavedParameter) {
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
      EXPECT_EQ(numbersOf(forward(program, {one, parameters[i]}, &saved[i])[0])[7], 2 + i);
    for (unsigned i : {round % 2, 1 - round % 2})
      EXPECT_EQ(numbersOf(backward(program, std::move(saved[i]), {one})[0])[7], 2 + i);
  }
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

// 17: with lengths from 1 to 10,000, each in a call of its own, memory stays bounded, one warning
// says why most run without graphs, and lengths that were captured before replay all the while.
TEST_F(CasesTest, Case17StormOfSizes) {
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
    const Tensor &y = *results[0].asTensor();
    ASSERT_EQ(y.numElements(), length);
    EXPECT_EQ(y.ref().as<float>()[0], -2.f * float(length));
    EXPECT_EQ(y.ref().as<float>()[length - 1], -2.f * float(length));
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
  int64_t mostBytes = 0;
  for (int64_t length = 1; length <= numLengths; ++length) {
    if (llvm::is_contained(old, length))
      callOld(length);
    else
      call(length);
    if (length % 100 == 0)
      callOld(old[length / 100 % 3]);
    mostBytes = std::max(mostBytes, memory.bytes());
  }
  EXPECT_EQ(program.counters().captures, 64u);
  EXPECT_EQ(program.counters().entries, 64u);
  EXPECT_EQ(program.counters().replays, 9 + numOld);
  EXPECT_EQ(program.counters().evictions, 0u);
  // An argument, a result and an arena of the greatest length, and results and arenas of what is
  // kept: less than a thousandth of what all lengths take.
  int64_t kept = 3 * 1024 * 4 + 64 * 64 * 4;
  EXPECT_LE(mostBytes, 5 * numLengths * 4 + 2 * kept);
  EXPECT_THAT(program.takeRemarks(),
              testing::ElementsAre(testing::HasSubstr("warning: a storm of sizes")));
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

// 12: state += x advances once per call, the first included.
TEST_F(CasesTest, Case12FirstCallAdvancesOnce) {
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
    EXPECT_EQ(numbersOf(Value(state)), std::vector<double>(4, i));
    EXPECT_EQ(numbersOf(results[0]), std::vector<double>(4, 10 * i));
  }
}

// 22: an input that a region writes and that moves has the new value in the caller's tensor; also
// when that starts within its storage, at any multiple of an element, and also when the region
// writes only a part. What is around it stays.
TEST_F(CasesTest, Case22MutatedInput) {
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
    Tensor wide = iota(0, 16);
    Tensor x(wide.storage(), offset * 4, DType::F32, {8}, {1});
    Results results = forward(program, {x, filled(device, 100, 4)});
    std::vector<double> expected, y;
    for (int64_t i = 0; i < 16; ++i) {
      bool isWritten = i >= offset + 2 && i < offset + 6;
      expected.push_back(double(i) + (isWritten ? 100 : 0));
      if (isWritten)
        y.push_back(-expected.back());
    }
    EXPECT_EQ(numbersOf(Value(wide)), expected);
    EXPECT_EQ(numbersOf(results[0]), y);
  }
  EXPECT_EQ(program.counters().captures, 1u);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

// 23: results that the caller holds keep their values, and a result may be the next argument.
TEST_F(CasesTest, Case23HeldResults) {
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
    EXPECT_EQ(numbersOf(held[i][0]), std::vector<double>(8, 2 * (i + 1)));

  Value x = filled(device, 0, 8);
  for (unsigned i = 1; i <= 20; ++i) {
    x = forward(program, {x})[0];
    EXPECT_EQ(numbersOf(x), std::vector<double>(8, std::exp2(i + 1) - 2));
  }
  for (unsigned i = 0; i < 5; ++i)
    EXPECT_EQ(numbersOf(held[i][0]), std::vector<double>(8, 2 * (i + 1)));
}

//===----------------------------------------------------------------------===//
// Pairs, devices
//===----------------------------------------------------------------------===//

// 26: a trace without a backward works, and so do two pairs through one transform.
TEST_F(CasesTest, Case26OneTransform) {
  CUDAGraphTransform transform(graphOptions());
  auto make = [&](llvm::StringRef text) {
    return cantFail(compile(parse(text), device, &host, pipelineWith(transform, host)));
  };
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
    EXPECT_EQ(numbersOf(forward(inference, {x})[0])[0], 2);
    SavedState a, n;
    EXPECT_EQ(numbersOf(forward(absolute, {filled(device, -3, 8)}, &a)[0])[0], 3);
    EXPECT_EQ(numbersOf(forward(negative, {filled(device, 4, 8)}, &n)[0])[0], -4);
    EXPECT_EQ(numbersOf(backward(absolute, std::move(a), {x})[0])[0], -6);
    EXPECT_EQ(numbersOf(backward(negative, std::move(n), {x})[0])[0], 8);
  }
  EXPECT_EQ(inference.counters().entries, 5u);
}

// 27: ops on another device, between ops that are in graphs, never are: they run in every call and
// see what there is then.
TEST_F(CasesTest, Case27OtherDevice) {
  MemoryLog otherMemory;
  HostDeviceOptions options = hostile(1);
  options.memoryHook = otherMemory.hook();
  DeviceRef other = createHostDevice(options);
  CUDAGraphOptions graphs = graphOptions();
  graphs.device = Device::host();
  CUDAGraphTransform transform(graphs);
  CountingExecutor counting(host);
  ProgramOptions programOptions;
  programOptions.poison = programOptions.checkGraphs = true;
  {
    Program program = cantFail(compile(parse(R"(
trace @f(%x: f32[8], %w: f32[8] parameter) {
  %a: f32[8] = mul(%x, %w)
  %b: f32[8] = add(%a, %w)
  %c: f32[8]@host:1 = to_device(%b) {device = host:1}
  %d: f32[8]@host:1 = neg(%c)
  %e: f32[8]@host:1 = add(%d, %c) {alpha = 3}
  %f: f32[8] = to_device(%e) {device = host}
  %g: f32[8] = mul(%f, %w)
  %y: f32[8] = add(%g, %x)
  return(%y, %e)
})"),
                                       {device, other}, {&counting},
                                       pipelineWith(transform, counting), programOptions));
    EXPECT_EQ(program.regions().size(), 2u);
    Tensor w = filled(device, 2, 8);
    uint64_t before = 0;
    for (unsigned i = 0; i < 10; ++i) {
      Results results = forward(program, {filled(device, float(i), 8), w});
      EXPECT_EQ(numbersOf(results[0]), std::vector<double>(8, 2 * 2 * (2 * i + 2) + i));
      EXPECT_EQ(numbersOf(results[1]), std::vector<double>(8, 2 * (2 * i + 2)));
      EXPECT_EQ(results[1].asTensor()->device(), other->device());
      EXPECT_EQ(counting.numEnqueues() - before, i == 0 ? 20u : 4u)
          << "to_device, neg, add, to_device; at first the others run, go into graphs, and are "
             "captured twice more to find their pointers";
      before = counting.numEnqueues();
    }
    EXPECT_EQ(program.counters().captures, 2u);
    EXPECT_EQ(program.counters().replays, 2 * 9u);
    EXPECT_GT(otherMemory.bytes(), 0);
  }
  EXPECT_EQ(otherMemory.bytes(), 0);
}

} // namespace
