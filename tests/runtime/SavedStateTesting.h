//===- SavedStateTesting.h - What a forward saves for its backward -*- C++ -*-===//

#pragma once

#include "EveryDeviceTesting.h"

namespace rondo {

/// Saves a fresh input, a parameter, a temporary, a result, a view of the input and a host scalar.
/// All numbers that tests give are small integers, so that all results are exact.
inline constexpr llvm::StringLiteral savesEverything = R"(
pair @mixed {
  forward @forward(%x: f32[8], %w: f32[8] parameter, %s: f64) {
    %h: f32[8] = mul(%x, %w)
    %e: f32[8] = add(%h, %h)
    %y: f32[8] = mul(%e, %s)
    %v: f32[4] = slice(%x) {start = 4}
    return(%y, %x saved #0, %w saved #1, %e saved #2, %y saved #3, %v saved #4, %s saved #5)
  }
  backward @backward(%x: f32[8] saved #0, %w: f32[8] parameter saved #1, %e: f32[8] saved #2,
                     %y: f32[8] saved #3, %v: f32[4] saved #4, %s: f64 saved #5, %g: f32[8]) {
    %a: f32[8] = mul(%g, %e)
    %b: f32[8] = mul(%a, %w)
    %c: f32[8] = mul(%a, %x)
    %d: f32[8] = add(%c, %y)
    %t: f32[4] = mul(%v, %s)
    return(%b, %d, %t)
  }
})";

/// Saves a temporary only.
inline constexpr llvm::StringLiteral savesOne = R"(
pair @lean {
  forward @forward(%x: f32[64], %w: f32[64] parameter) {
    %e: f32[64] = mul(%x, %w)
    %y: f32[64] = exp(%e)
    return(%y, %e saved #0)
  }
  backward @backward(%e: f32[64] saved #0, %g: f32[64]) {
    %a: f32[64] = exp(%e)
    %b: f32[64] = mul(%a, %g)
    return(%b)
  }
})";

class SavedStateTest : public EveryDeviceTest {
protected:
  void prepare() override {
    for (unsigned i = 0; i < 8; ++i)
      weights.push_back(float(i % 3) - 1);
    w = tensorOf(device, weights);
  }

  /// One forward of `savesEverything` with numbers of its own, and what comes of it.
  struct Flow {
    float x0 = 0;
    int64_t scalar = 0;
    SavedState saved;
    Results results;
  };

  static float xAt(const Flow &flow, unsigned i) { return flow.x0 + float(i); }
  float eAt(const Flow &flow, unsigned i) const { return 2 * xAt(flow, i) * weights[i]; }

  Flow forwardOf(Program &program, unsigned number) {
    Flow flow{float(number), number % 3 + 1, {}, {}};
    std::vector<float> x;
    for (unsigned i = 0; i < 8; ++i)
      x.push_back(xAt(flow, i));
    flow.results = forward(program, {tensorOf(device, x), w, double(flow.scalar)}, &flow.saved);
    checkResult(flow);
    return flow;
  }
  void checkResult(const Flow &flow) const {
    std::vector<double> expected;
    for (unsigned i = 0; i < 8; ++i)
      expected.push_back(eAt(flow, i) * float(flow.scalar));
    ASSERT_EQ(flow.results.size(), 1u);
    EXPECT_EQ(numbersOn(flow.results[0]), expected);
  }

  void checkGradients(const Flow &flow, float tangent, const Results &gradients) const {
    std::vector<double> b, d, t;
    for (unsigned i = 0; i < 8; ++i) {
      float a = tangent * eAt(flow, i);
      b.push_back(a * weights[i]);
      d.push_back(a * xAt(flow, i) + eAt(flow, i) * float(flow.scalar));
      if (i >= 4)
        t.push_back(xAt(flow, i) * float(flow.scalar));
    }
    ASSERT_EQ(gradients.size(), 3u);
    EXPECT_EQ(numbersOn(gradients[0]), b);
    EXPECT_EQ(numbersOn(gradients[1]), d);
    EXPECT_EQ(numbersOn(gradients[2]), t);
  }
  void backwardOf(Program &program, Flow &flow) {
    float tangent = flow.x0 + 1;
    checkGradients(flow, tangent,
                   backward(program, std::move(flow.saved), {filled(device, tangent, 8)}));
    EXPECT_FALSE(flow.saved.isValid());
  }

  std::vector<float> weights;
  Tensor w;
};

/// Calls `visit` for every order of `count` forwards, numbered from 1 and in that order, and their
/// backwards, written as negative numbers.
inline void forEachInterleaving(int count, llvm::function_ref<void(llvm::ArrayRef<int>)> visit) {
  std::vector<int> order, outstanding;
  std::function<void(int)> extend = [&](int next) {
    if (next > count && outstanding.empty())
      return visit(order);
    if (next <= count) {
      order.push_back(next);
      outstanding.push_back(next);
      extend(next + 1);
      outstanding.pop_back();
      order.pop_back();
    }
    for (size_t i = 0; i < outstanding.size(); ++i) {
      int number = outstanding[i];
      outstanding.erase(outstanding.begin() + i);
      order.push_back(-number);
      extend(next);
      order.pop_back();
      outstanding.insert(outstanding.begin() + i, number);
    }
  };
  extend(1);
}

// Case 14: in every order of 4 forwards and their backwards, fw fw bw bw and fw fw bw(2) bw(1)
// among them, each backward sees what its own forward saved.
TEST_P(SavedStateTest, EveryInterleaving) {
  Program program = compileText(savesEverything, poisoned());
  unsigned numOrders = 0, numFlows = 0;
  forEachInterleaving(4, [&](llvm::ArrayRef<int> order) {
    SCOPED_TRACE(testing::PrintToString(order.vec()));
    std::map<int, Flow> flows;
    for (int call : order) {
      if (call > 0)
        flows[call] = forwardOf(program, numFlows++ % 64);
      else
        backwardOf(program, flows[-call]);
    }
    ++numOrders;
  });
  EXPECT_EQ(numOrders, 105u);
  EXPECT_GT(program.counters().replays, program.counters().captures);
}

// A state that is dropped, with or without a backward after it, disturbs no other.
TEST_P(SavedStateTest, Dropped) {
  Program program = compileText(savesEverything, poisoned());
  for (unsigned round = 0; round < 3; ++round) {
    Flow a = forwardOf(program, 1), b = forwardOf(program, 2);
    a.saved = SavedState();
    Flow c = forwardOf(program, 3);
    backwardOf(program, b);
    backwardOf(program, c);
  }
  // Neither does one that is not asked for.
  Flow a = forwardOf(program, 4);
  forward(program, {filled(device, 9, 8), w, 2.0});
  backwardOf(program, a);
}

// A state goes where it is moved; what was there before is dropped.
TEST_P(SavedStateTest, Moved) {
  Program program = compileText(savesEverything, poisoned());
  Flow a = forwardOf(program, 1), b = forwardOf(program, 2);
  SavedState moved = std::move(a.saved);
  EXPECT_TRUE(moved.isValid());
  EXPECT_FALSE(a.saved.isValid());
  b.saved = std::move(moved);
  EXPECT_FALSE(moved.isValid());
  b.x0 = 1; // it holds a's now
  b.scalar = a.scalar;
  b.results = a.results;
  backwardOf(program, b);
  // b's own memory went back: two forwards at a time need no more than before.
  a = Flow();
  b = Flow();
  uint64_t before = bytesInUse();
  a = forwardOf(program, 5);
  b = forwardOf(program, 6);
  backwardOf(program, a);
  backwardOf(program, b);
  a = Flow();
  b = Flow();
  EXPECT_EQ(bytesInUse(), before);
}

// A state that is retained gives the same gradients again, until it is consumed.
TEST_P(SavedStateTest, Retained) {
  Program program = compileText(savesEverything, poisoned());
  for (unsigned round = 0; round < 3; ++round) {
    Flow a = forwardOf(program, round + 1);
    for (float tangent : {2.f, 3.f}) {
      Results gradients;
      cantFail(
          program.backwardRetaining(*stream, a.saved, {filled(device, tangent, 8)}, gradients));
      checkGradients(a, tangent, gradients);
      EXPECT_TRUE(a.saved.isValid());
      Flow other = forwardOf(program, 7);
      backwardOf(program, other);
    }
    backwardOf(program, a);
  }
}

// Results that the user keeps, drops, or overwrites after the backward are his, also where they are
// saved.
TEST_P(SavedStateTest, ResultsThatAreSaved) {
  Program program = compileText(savesEverything, poisoned());
  for (unsigned round = 0; round < 4; ++round) {
    Flow kept = forwardOf(program, 1), dropped = forwardOf(program, 2);
    dropped.results.clear();
    Flow overwritten = forwardOf(program, 3);
    backwardOf(program, overwritten);
    overwrite(*overwritten.results[0].asTensor(), 100);
    backwardOf(program, dropped);
    Flow later = forwardOf(program, 4);
    backwardOf(program, later);
    EXPECT_EQ(numbersOn(overwritten.results[0]), std::vector<double>(8, 100));
    checkResult(kept);
    backwardOf(program, kept);
    Results gradients =
        backward(program, std::move(forwardOf(program, 5).saved), {filled(device, 1, 8)});
    std::vector<double> before = numbersOn(gradients[1]);
    Flow last = forwardOf(program, 6);
    backwardOf(program, last);
    checkResult(kept);
    EXPECT_EQ(numbersOn(gradients[1]), before) << "gradients are the caller's";
  }
}

// Every outstanding forward costs one slab; with its results, those; and all of it comes back, by
// `trim` or by itself after some calls.
TEST_P(SavedStateTest, MemoryOfOutstandingForwards) {
  for (bool keepsResults : {false, true}) {
    SCOPED_TRACE(keepsResults);
    Program program = compileText(savesOne, poisoned());
    uint64_t slab = program.memory(Side::Forward).slab,
             results = program.memory(Side::Forward).results;
    EXPECT_EQ(slab, 64 * 4u);
    EXPECT_EQ(results, 64 * 4u);
    Tensor x = filled(device, 0.5, 64), weight = filled(device, 2, 64), g = filled(device, 3, 64);
    uint64_t empty = bytesInUse();
    auto step = [&] {
      SavedState saved;
      forward(program, {x, weight}, &saved);
      EXPECT_NEAR(numbersOn(backward(program, std::move(saved), {g})[0])[63], 3 * std::exp(1),
                  1e-5);
    };
    step();
    uint64_t level = bytesInUse();
    EXPECT_GT(level, empty);

    for (bool trims : {true, false}) {
      std::vector<std::pair<SavedState, Results>> outstanding(100);
      for (unsigned i = 0; i < outstanding.size(); ++i) {
        auto &[saved, values] = outstanding[i];
        values = forward(program, {x, weight}, &saved);
        EXPECT_NEAR(numbersOn(values[0])[0], std::exp(1), 1e-6);
        if (!keepsResults)
          values.clear();
        EXPECT_EQ(bytesInUse(), level + i * (slab + (keepsResults ? results : 0)));
      }
      outstanding.clear();
      if (trims) {
        program.trim();
        EXPECT_EQ(bytesInUse(), empty);
        step();
      } else {
        for (unsigned i = 0; i < 200; ++i)
          step();
      }
      EXPECT_EQ(bytesInUse(), level) << trims;
    }
  }
}

// Nothing that was saved is copied: with a tangent as the only input that moves, and that is
// copied, a step copies the tangent and nothing else.
TEST_P(SavedStateTest, CopiesNothingThatIsSaved) {
  Program program = compileText(R"(
pair @tangent {
  forward @forward(%w: f32[16] parameter, %r: f32[16] buffer) {
    %e: f32[16] = mul(%w, %r)
    %y: f32[16] = add(%e, %w)
    return(%y, %w saved #0, %e saved #1, %y saved #2)
  }
  backward @backward(%w: f32[16] parameter saved #0, %e: f32[16] saved #1, %y: f32[16] saved #2,
                     %g: f32[16]) {
    %a: f32[16] = mul(%g, %e)
    %b: f32[16] = mul(%a, %y)
    %c: f32[16] = add(%b, %w)
    return(%c)
  }
})",
                                poisoned(), "execution,cuda-graph{min-ops=1 inputs=copied},del");
  std::vector<RegionInfo> regions = program.regions();
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].copiedBytes, 0u);
  EXPECT_EQ(regions[1].copiedBytes, 64u);
  Tensor weight = filled(device, 2, 16), buffer = filled(device, 3, 16);
  for (unsigned i = 0; i < 10; ++i) {
    SavedState saved;
    forward(program, {weight, buffer}, &saved);
    Results gradients = backward(program, std::move(saved), {filled(device, float(i), 16)});
    EXPECT_EQ(numbersOn(gradients[0]), std::vector<double>(16, i * 6 * 8 + 2));
    EXPECT_EQ(program.counters().replays, 2 * i);
    EXPECT_EQ(program.counters().copiedBytes, 64 * i);
  }
}

// Forward, forward, backward, backward: nothing is copied in any of them, and the second forward
// costs one slab, once, with a graph of each side that is its own.
TEST_P(SavedStateTest, TwoOutstanding) {
  Program program =
      compileText(savesOne, poisoned(), "execution,cuda-graph{min-ops=1 inputs=patched},del");
  Tensor x = filled(device, 0, 64), weight = filled(device, 2, 64);
  for (unsigned round = 0; round < 10; ++round) {
    std::array<SavedState, 2> saved;
    forward(program, {x, weight}, &saved[0]);
    uint64_t ofOne = bytesInUse();
    forward(program, {x, weight}, &saved[1]);
    uint64_t ofTwo = bytesInUse();
    for (unsigned i : {0, 1}) {
      Results gradients =
          backward(program, std::move(saved[i]), {filled(device, float(i + 1), 64)});
      EXPECT_EQ(numbersOn(gradients[0]), std::vector<double>(64, i + 1)) << "exp(0) is 1";
    }
    if (round == 0) { // it is allocated, and kept
      EXPECT_EQ(ofTwo, ofOne + program.memory(Side::Forward).slab);
    } else {
      EXPECT_EQ(ofTwo, ofOne);
    }
    EXPECT_EQ(program.counters().copiedBytes, 0u);
  }
  EXPECT_EQ(program.counters().captures, 2 * 2u);
  EXPECT_EQ(program.counters().replays, 2 * 2 * 9u);
  EXPECT_EQ(program.counters().recaptures, 0u);
}

// A state may outlive its program, and what it holds goes with it.
TEST_P(SavedStateTest, OutlivesTheProgram) {
  w = Tensor();
  uint64_t before = bytesInUse();
  {
    SavedState saved;
    {
      Program program = compileText(savesOne);
      for (unsigned i = 0; i < 2; ++i)
        forward(program, {filled(device, 1, 64), filled(device, 1, 64)}, &saved);
    }
    EXPECT_TRUE(saved.isValid());
    EXPECT_GT(bytesInUse(), before);
  }
  EXPECT_EQ(bytesInUse(), before);
}

// A backward needs a state of its own program that was not consumed; else it says what is wrong,
// and the state stays as it is.
TEST_P(SavedStateTest, Errors) {
  Program program = compileText(savesEverything), other = compileText(savesEverything),
          inference = compileText("trace @f(%x: f32[8]) {\n%y: f32[8] = exp(%x)\nreturn(%y)\n}");
  Tensor g = filled(device, 1, 8);
  Results results;
  auto call = [&](Program &of, SavedState &saved) {
    results.assign(1, Value(1.0));
    std::string text = textOf(of.backwardRetaining(*stream, saved, {g}, results));
    EXPECT_TRUE(results.empty());
    return text;
  };
  SavedState empty;
  EXPECT_THAT(call(program, empty), testing::HasSubstr("the SavedState is empty"));

  Flow a = forwardOf(program, 1);
  EXPECT_THAT(call(other, a.saved), testing::HasSubstr("of another program"));
  EXPECT_THAT(textOf(other.savedValues(a.saved).takeError()),
              testing::HasSubstr("of another program"));
  EXPECT_THAT(call(inference, a.saved), testing::HasSubstr("has no backward"));
  EXPECT_TRUE(a.saved.isValid());
  backwardOf(program, a);
  EXPECT_THAT(call(program, a.saved), testing::HasSubstr("it was consumed"));

  // A forward without a backward fills none.
  SavedState none;
  forward(inference, {g}, &none);
  EXPECT_FALSE(none.isValid());

  // A backward that fails before it runs does not consume.
  Flow b = forwardOf(program, 2);
  EXPECT_THAT(textOf(program.backward(*stream, std::move(b.saved), {}, results)),
              testing::HasSubstr("takes 1 arguments, got 0"));
  EXPECT_TRUE(b.saved.isValid());
  backwardOf(program, b);
}

// What a state holds can be looked at, and is not reused while someone does.
TEST_P(SavedStateTest, SavedValues) {
  Program program = compileText(savesEverything, poisoned());
  Flow a = forwardOf(program, 3);
  std::vector<SavedValue> values = cantFail(program.savedValues(a.saved));
  std::vector<std::string> names;
  for (const SavedValue &value : values)
    names.push_back(value.name);
  EXPECT_THAT(names, testing::ElementsAre("x", "w", "e", "y", "v", "s"));
  backwardOf(program, a);
  for (unsigned i = 0; i < 3; ++i) {
    Flow other = forwardOf(program, 10 + i);
    backwardOf(program, other);
  }
  std::vector<double> e, v;
  for (unsigned i = 0; i < 8; ++i)
    e.push_back(eAt(a, i));
  for (unsigned i = 4; i < 8; ++i)
    v.push_back(xAt(a, i));
  EXPECT_EQ(numbersOn(values[1].value), numbersOn(Value(w)));
  EXPECT_EQ(numbersOn(values[2].value), e);
  EXPECT_EQ(numbersOn(values[3].value), numbersOn(a.results[0]));
  EXPECT_EQ(numbersOn(values[4].value), v);
  EXPECT_EQ(numbersOn(values[5].value), std::vector<double>{double(a.scalar)});
}

} // namespace rondo
