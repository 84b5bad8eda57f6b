//===- GeneratorsTesting.h - Generators of programs -------------*- C++ -*-===//
//
// What must hold on every device. A test of a device says which: `useTarget`.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CallTesting.h"

#include "rondo/executors/Philox.h"

namespace rondo {

/// Draws by two generators in turns. A region is one without `neg`, and two where that is denied.
inline constexpr llvm::StringLiteral twoGenerators = R"(
trace @f(%x: f32[64]) {
  %s: rng = generator_read() {device = host}
  %r: rng = generator_read() {device = host, generator = "rank"}
  %a: f32[64], %k: bool[64] = dropout(%x, %s) {offset = 0, p = 0.5}
  %b: f32[64], %l: bool[64] = dropout(%a, %r) {offset = 0, p = 0.5}
  %c: f32[64] = neg(%b)
  %d: f32[64], %m: bool[64] = dropout(%c, %s) {offset = 64, p = 0.5}
  generator_advance() {count = 128, device = host}
  generator_advance() {count = 64, device = host, generator = "rank"}
  return(%k, %l, %m)
})";

class GeneratorsFixture : public CallFixture {
protected:
  using Numbers = std::vector<double>;

  /// What a dropout of 64 elements and p = 0.5 keeps that draws from `position`.
  static Numbers keptFrom(uint64_t seed, uint64_t position) {
    Numbers kept(64);
    for (unsigned i = 0; i < 64; ++i)
      kept[i] = !philox::happens(philox::word(seed, position + i), philox::threshold(0.5));
    return kept;
  }
  /// What call number `call` of `twoGenerators` must draw.
  static std::vector<Numbers> expectedOf(RNGState usual, RNGState rank, uint64_t call) {
    uint64_t base = usual.offset + 128 * call;
    return {keptFrom(usual.seed, base), keptFrom(rank.seed, rank.offset + 64 * call),
            keptFrom(usual.seed, base + 64)};
  }

  static ProgramOptions poisoned() {
    ProgramOptions options = steadyOptions();
    options.poison = true;
    return options;
  }
  std::vector<Numbers> numbersOn(llvm::ArrayRef<Value> results) {
    std::vector<Numbers> all;
    for (const Value &result : results)
      all.push_back(CallFixture::numbersOn(result));
    return all;
  }
  std::vector<Numbers> drawn(Program &program) {
    return numbersOn(forward(program, {filled(device, 1, 64)}));
  }
  Program compileSharing(std::shared_ptr<Generators> generators,
                         llvm::StringRef text = twoGenerators) {
    ProgramOptions options = steadyOptions();
    options.generators = std::move(generators);
    return compileText(text, options);
  }
  void expectState(Generators &generators, llvm::StringRef name, RNGState state) {
    RNGState found = cantFail(generators.get(*stream, name));
    EXPECT_EQ(found.seed, state.seed) << name.str();
    EXPECT_EQ(found.offset, state.offset) << name.str();
  }

  /// Two generators in one region: each draws its own numbers, in every replay further ones, and is
  /// advanced by its own total, once per call.
  void drawFromTwo() {
    Program program = compileText(twoGenerators, poisoned());
    EXPECT_EQ(program.regions().size(), 1u);
    Generators &generators = *program.generators();
    RNGState usual{11, 300}, rank{12, 7};
    cantFail(generators.set(*stream, "default", usual));
    cantFail(generators.set(*stream, "rank", rank));
    for (unsigned call = 0; call < 10; ++call)
      EXPECT_EQ(drawn(program), expectedOf(usual, rank, call)) << call;
    EXPECT_EQ(program.counters().replays, 9u);
    expectState(generators, "default", {11, 300 + 10 * 128});
    expectState(generators, "rank", {12, 7 + 10 * 64});
  }

  /// A job that goes on from saved states draws what the first one drew after it saved them, also
  /// by a generator that the first one had not used by then, and in another program.
  void saveAndRestore() {
    auto generators = std::make_shared<Generators>(device);
    Program program = compileSharing(generators);
    cantFail(generators->seed(*stream, "default", 3));
    cantFail(generators->set(*stream, "rank", {4, uint64_t(1) << 63}));
    for (unsigned call = 0; call < 3; ++call)
      drawn(program);
    Generators::States saved = cantFail(generators->snapshot(*stream));
    ASSERT_EQ(saved.size(), 2u);
    EXPECT_EQ(saved["default"].offset, 3 * 128u);
    EXPECT_EQ(saved["rank"].seed, 4u);
    auto goOn = [&](Program &by) {
      std::vector<std::vector<Numbers>> all;
      for (unsigned call = 0; call < 3; ++call)
        all.push_back(drawn(by));
      return all;
    };
    std::vector<std::vector<Numbers>> expected = goOn(program);
    cantFail(generators->set(*stream, "late", {5, 6}));
    EXPECT_NE(goOn(program), expected);
    cantFail(generators->restore(*stream, saved));
    expectState(*generators, "late", {0, 0});
    EXPECT_EQ(goOn(program), expected);

    auto others = std::make_shared<Generators>(device);
    Program other = compileSharing(others);
    goOn(other);
    cantFail(others->restore(*stream, saved));
    EXPECT_EQ(goOn(other), expected);
  }

  /// More generators than one allocation holds are apart from each other, also in a snapshot.
  void saveMany() {
    Generators generators(device);
    Generators::States expected;
    for (unsigned i = 0; i < 40; ++i) {
      RNGState state{i + 1, 100 * i};
      expected["rank" + std::to_string(i)] = state;
      cantFail(generators.set(*stream, "rank" + std::to_string(i), state));
    }
    auto listed = [](const Generators::States &states) {
      std::string text;
      for (const auto &[name, state] : states)
        text += name + " " + std::to_string(state.seed) + " " + std::to_string(state.offset) + "\n";
      return text;
    };
    EXPECT_EQ(listed(cantFail(generators.snapshot(*stream))), listed(expected));
    expected.erase("rank17");
    cantFail(generators.restore(*stream, expected));
    expected["rank17"] = {0, 0};
    EXPECT_EQ(listed(cantFail(generators.snapshot(*stream))), listed(expected));
  }

  /// A state that is set on one stream while replays are in flight on another one counts for the
  /// calls after it, on whatever stream, and for none before.
  void setInFlight() {
    Program program = compileText(twoGenerators);
    Generators &generators = *program.generators();
    std::unique_ptr<Stream> other = cantFail(device->createStream());
    Tensor x = filled(device, 1, 64);
    drawn(program); // from here on calls replay
    for (unsigned round = 0; round < 5; ++round) {
      RNGState usual{round + 20, 5}, rank{round + 30, 9};
      cantFail(generators.set(*other, "default", usual));
      cantFail(generators.set(*other, "rank", rank));
      std::vector<Results> results(4);
      for (Results &of : results)
        cantFail(program.forward(*stream, {x}, of));
      RNGState later{round + 40, 1};
      cantFail(generators.set(*other, "default", later));
      Results after;
      cantFail(program.forward(round % 2 ? *stream : *other, {x}, after));
      cantFail(stream->synchronize());
      cantFail(other->synchronize());
      for (unsigned call = 0; call < 4; ++call)
        EXPECT_EQ(numbersOn(results[call]), expectedOf(usual, rank, call)) << call;
      EXPECT_EQ(numbersOn(after), expectedOf(later, {rank.seed, rank.offset + 4 * 64}, 0));
    }
  }

  /// A generator may be made while its thread captures: it joins no capture, which stays valid.
  void makeWhileCapturing() {
    for (CaptureMode mode : {CaptureMode::ThreadLocal, CaptureMode::Relaxed}) {
      Generators generators(device);
      Tensor x = filled(device, 1, 64);
      cantFail(stream->beginCapture(mode));
      RNGState *made = cantFail(generators.state("first"));
      EXPECT_EQ(cantFail(generators.state("first")), made);
      cantFail(stream->fill(x.data(), 0, 4));
      std::unique_ptr<Graph> graph = cantFail(stream->endCapture());
      EXPECT_EQ(graph->numNodes(), 1u);
      expectState(generators, "first", {0, 0});
    }
    // What others captures forbid, allocation, the second name does not need.
    Generators generators(device);
    cantFail(generators.state("first"));
    cantFail(stream->beginCapture(CaptureMode::Global));
    cantFail(generators.state("second"));
    cantFail(stream->endCapture());
    expectState(generators, "second", {0, 0});
  }

  /// A program may be compiled, and so meet its generators, while its thread captures; the first
  /// call in a capture that allows to allocate draws what a call would, again in each launch.
  void callFirstWhileCapturing() {
    std::optional<Program> program;
    {
      std::unique_ptr<Stream> captured = cantFail(device->createStream());
      cantFail(captured->beginCapture(CaptureMode::ThreadLocal));
      program.emplace(compileText(twoGenerators));
      cantFail(captured->endCapture());
    }
    Tensor x = filled(device, 1, 64);
    Results results;
    cantFail(stream->beginCapture(CaptureMode::Relaxed));
    cantFail(program->forward(*stream, {x}, results));
    std::unique_ptr<Graph> graph = cantFail(stream->endCapture());
    std::unique_ptr<GraphExec> exec = cantFail(graph->instantiate());
    Generators &generators = *program->generators();
    expectState(generators, "default", {0, 0});
    for (unsigned call = 0; call < 6; ++call) {
      if (call % 2 == 0) {
        cantFail(exec->launch(*stream));
        cantFail(stream->synchronize());
        EXPECT_EQ(numbersOn(results), expectedOf({0, 0}, {0, 0}, call)) << call;
      } else {
        EXPECT_EQ(drawn(*program), expectedOf({0, 0}, {0, 0}, call)) << call;
      }
    }
    expectState(generators, "default", {0, 6 * 128});
    expectState(generators, "rank", {0, 6 * 64});
  }

  /// The host neither reads nor sets states by way of a stream in capture, or of another device
  /// `elsewhere`: the error says so, and states and capture are as before.
  void refuseStreams(Stream *elsewhere) {
    Generators generators(device);
    cantFail(generators.set(*stream, "default", {1, 2}));
    auto refusals = [&](Stream &by) {
      return std::vector<std::string>{textOf(generators.set(by, "default", {3, 4})),
                                      textOf(generators.get(by, "default").takeError()),
                                      textOf(generators.snapshot(by).takeError()),
                                      textOf(generators.restore(by, {}))};
    };
    cantFail(stream->beginCapture(CaptureMode::ThreadLocal));
    EXPECT_THAT(refusals(*stream), testing::Each(testing::HasSubstr("being captured")));
    EXPECT_EQ(stream->captureStatus(), CaptureStatus::Active);
    EXPECT_EQ(cantFail(stream->endCapture())->numNodes(), 0u);
    if (elsewhere) {
      EXPECT_THAT(refusals(*elsewhere),
                  testing::Each(testing::HasSubstr("of the generators' device")));
    }
    expectState(generators, "default", {1, 2});
  }

  /// 8: two regions with dropout, while another thread makes captures that draw from another
  /// generator of the same set. N replays draw what N eager calls draw from the same seed, and the
  /// other thread's numbers are those of its own generator.
  void replayBesideCaptures() {
    constexpr unsigned numCalls = 20, numCaptures = 10;
    constexpr llvm::StringLiteral elsewhere = R"(
trace @g(%x: f32[64]) {
  %s: rng = generator_read() {device = host, generator = "other"}
  %a: f32[64], %k: bool[64] = dropout(%x, %s) {offset = 0, p = 0.5}
  generator_advance() {count = 64, device = host, generator = "other"}
  return(%k)
})";
    auto generators = std::make_shared<Generators>(device);
    CUDAGraphTransform transform(graphOptions({"neg"}));
    ProgramOptions options = poisoned();
    options.generators = generators;
    Program program = compileWith(transform, twoGenerators, options);
    EXPECT_EQ(program.regions().size(), 2u);
    CUDAGraphTransform eagerTransform(graphOptions({"neg"}));
    Program eager = compileWith(eagerTransform, twoGenerators);
    eager.setEager(true);
    for (Generators *of : {generators.get(), eager.generators().get()}) {
      cantFail(of->seed(*stream, "default", 8));
      cantFail(of->seed(*stream, "rank", 9));
    }
    cantFail(generators->seed(*stream, "other", 10));
    std::vector<Program> others;
    for (unsigned i = 0; i < numCaptures; ++i)
      others.push_back(compileSharing(generators, elsewhere));

    Tensor x = filled(device, 1, 64);
    std::vector<Numbers> drawnElsewhere;
    std::thread thread([&] {
      std::unique_ptr<Stream> own = cantFail(device->createStream());
      for (Program &other : others) { // the first call of each captures
        Results results;
        cantFail(other.forward(*own, {x}, results));
        cantFail(own->synchronize());
        const Tensor &kept = *results[0].asTensor();
        drawnElsewhere.push_back(numbersOf(Value(onHost(kept, *own))));
      }
    });
    std::set<Numbers> masks;
    for (unsigned call = 0; call < numCalls; ++call) {
      std::vector<Numbers> got = drawn(program);
      EXPECT_EQ(got, drawn(eager)) << call;
      masks.insert(got.begin(), got.end());
    }
    thread.join();
    EXPECT_EQ(masks.size(), 3 * numCalls) << "no mask comes twice";
    EXPECT_EQ(program.counters().replays, 2 * (numCalls - 1));
    for (unsigned i = 0; i < numCaptures; ++i) {
      EXPECT_EQ(others[i].counters().captures, 1u);
      EXPECT_EQ(drawnElsewhere[i], keptFrom(10, 64 * i)) << i;
    }
    expectState(*generators, "default", {8, 128 * numCalls});
    expectState(*generators, "rank", {9, 64 * numCalls});
  }

  /// 9: a backward that draws the forward's dropout again from the saved state gets the same mask,
  /// also when other forwards came in between; the mask differs from call to call and equals that
  /// of eager calls.
  void recomputeDropout() {
    constexpr llvm::StringLiteral text = R"(
pair @p {
  forward @forward(%x: f32[64]) {
    %s: rng = generator_read() {device = host}
    %y: f32[64], %m: bool[64] = dropout(%x, %s) {offset = 0, p = 0.5}
    generator_advance() {count = 64, device = host}
    return(%y, %m, %x saved #0, %s saved #1)
  }
  backward @backward(%x: f32[64] saved #0, %s: rng saved #1, %g: f32[64]) {
    %y: f32[64], %m: bool[64] = dropout(%x, %s) {offset = 0, p = 0.5}
    %a: f32[64] = dropout_backward(%g, %m) {scale = 2.0}
    %b: f32[64] = add(%a, %y)
    return(%b, %m)
  }
})";
    Program program = compileText(text, poisoned()), eager = compileText(text);
    eager.setEager(true);
    for (Program *of : {&program, &eager})
      cantFail(of->generators()->set(*stream, "default", {11, 300}));
    auto play = [&](Program &of) {
      std::vector<Numbers> all;
      SavedState saved[2];
      for (unsigned i : {0, 1})
        for (Numbers &numbers :
             numbersOn(forward(of, {filled(device, float(i + 1), 64)}, &saved[i])))
          all.push_back(std::move(numbers));
      for (unsigned i : {0, 1})
        for (Numbers &numbers :
             numbersOn(backward(of, std::move(saved[i]), {filled(device, 5, 64)})))
          all.push_back(std::move(numbers));
      return all; // y and mask of each forward, gradient and mask of each backward
    };
    for (unsigned round = 0; round < 10; ++round) {
      std::vector<Numbers> got = play(program);
      EXPECT_EQ(got, play(eager));
      for (unsigned i : {0, 1}) {
        Numbers kept = keptFrom(11, 300 + 64 * (2 * round + i));
        EXPECT_EQ(got[2 * i + 1], kept);
        EXPECT_EQ(got[4 + 2 * i + 1], kept);
        for (unsigned k = 0; k < 64; ++k)
          EXPECT_EQ(got[4 + 2 * i][k], kept[k] * 2 * (5 + i + 1));
      }
    }
    EXPECT_EQ(eager.counters().replays, 0u);
    EXPECT_GT(program.counters().replays, 0u);
  }

  /// 13: multinomial in a region sees real weights in the first call and in every other.
  void chooseByWeights() {
    Program program = compileText(R"(
trace @f(%w: f32[6]) {
  %s: rng = generator_read() {device = host}
  %p: f32[6] = mul(%w) {scalar = 0.5}
  %i: i64[4] = multinomial(%p, %s) {n = 4, offset = 0, replacement = true}
  generator_advance() {count = 4, device = host}
  return(%i)
})",
                                  poisoned());
    for (unsigned call = 0; call < 10; ++call) {
      std::vector<float> weights(6, 0);
      weights[call % 6] = 1;
      weights[(call + 2) % 6] = 3;
      std::vector<Numbers> got = numbersOn(forward(program, {tensorOf(device, weights)}));
      ASSERT_EQ(got[0].size(), 4u);
      for (double index : got[0])
        EXPECT_THAT(index, testing::AnyOf(call % 6, (call + 2) % 6));
    }
    EXPECT_EQ(program.counters().replays, 9u);
    expectState(*program.generators(), "default", {0, 40});
  }
};

} // namespace rondo
