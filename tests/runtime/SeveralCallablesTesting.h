//===- SeveralCallablesTesting.h - Layers through one transform -*- C++ -*-===//
//
// Bodies of tests of several pairs, such as the stages of a pipeline, that are compiled through one
// transform and called in any order, for any device.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "AccumulateTesting.h"

#include <random>

namespace rondo {

/// y = dropout(tanh(x * w + b)) for 4 rows, from `in` to `out` columns, and its gradients.
inline std::string stageText(unsigned in, unsigned out) {
  std::string text = R"(
pair @stage {
  forward @forward(%x: f32[4, IN], %w: f32[IN, OUT] parameter, %b: f32[OUT] parameter) {
    %r: rng = generator_read()
    %p: f32[4, OUT] = mm(%x, %w)
    %q: f32[4, OUT] = add(%p, %b)
    %a: f32[4, OUT] = tanh(%q)
    %y: f32[4, OUT], %m: bool[4, OUT] = dropout(%a, %r) {offset = 0, p = 0.25}
    generator_advance() {count = COUNT}
    return(%y, %x saved #0, %w saved #1, %a saved #2, %m saved #3)
  }
  backward @backward(%x: f32[4, IN] saved #0, %w: f32[IN, OUT] parameter saved #1, %a: f32[4, OUT] saved #2, %m: bool[4, OUT] saved #3, %t: f32[4, OUT]) {
    %ga: f32[4, OUT] = dropout_backward(%t, %m) {scale = 1.3333333333333333}
    %gq: f32[4, OUT] = tanh_backward(%ga, %a)
    %wt: f32[OUT, IN; 1, OUT] = permute(%w) {dims = [1, 0]}
    %gx: f32[4, IN] = mm(%gq, %wt)
    %xt: f32[IN, 4; 1, IN] = permute(%x) {dims = [1, 0]}
    %gw: f32[IN, OUT] = mm(%xt, %gq)
    %gb: f32[OUT] = sum(%gq) {dims = [0]}
    return(%gx, %gw, %gb)
  }
})";
  const std::pair<const char *, unsigned> sizes[] = {{"IN", in}, {"OUT", out}, {"COUNT", 4 * out}};
  for (auto [name, size] : sizes)
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;)
      text.replace(at, strlen(name), std::to_string(size));
  return text;
}

/// A microbatch goes forward or backward through a stage.
struct StageCall {
  Side side;
  unsigned stage, microbatch;
};
using StageOrder = std::vector<StageCall>;

/// Picks, as often as there is one, a call whose values are there: all orders that are possible
/// come from some `pick`, which gets the calls to choose from.
template <typename Pick>
StageOrder orderedBy(unsigned numStages, unsigned numMicrobatches, Pick &&pick) {
  StageOrder order;
  std::vector<unsigned> forwards(numMicrobatches), backwards(numMicrobatches); // stages passed
  while (true) {
    StageOrder ready;
    for (unsigned m = 0; m < numMicrobatches; ++m) {
      if (forwards[m] < numStages)
        ready.push_back({Side::Forward, forwards[m], m});
      else if (backwards[m] < numStages)
        ready.push_back({Side::Backward, numStages - 1 - backwards[m], m});
    }
    if (ready.empty())
      return order;
    StageCall call = ready[pick(ready)];
    ++(call.side == Side::Forward ? forwards : backwards)[call.microbatch];
    order.push_back(call);
  }
}

/// Forward through all stages, backward through all, one microbatch after the other.
inline StageOrder oneByOne(unsigned numStages, unsigned numMicrobatches) {
  return orderedBy(numStages, numMicrobatches, [](const StageOrder &) { return 0; });
}
/// All forwards before all backwards, these from the last microbatch.
inline StageOrder forwardsFirst(unsigned numStages, unsigned numMicrobatches) {
  return orderedBy(numStages, numMicrobatches, [](const StageOrder &ready) {
    for (size_t i = 0; i < ready.size(); ++i)
      if (ready[i].side == Side::Forward)
        return i;
    return ready.size() - 1;
  });
}
inline StageOrder randomOrder(unsigned numStages, unsigned numMicrobatches, unsigned seed) {
  std::mt19937 random(seed);
  return orderedBy(numStages, numMicrobatches,
                   [&](const StageOrder &ready) { return random() % ready.size(); });
}
/// One forward, one backward: every stage has at most as many microbatches in flight as there are
/// stages from it on. Rounds of what all stages do at once, from the last stage to the first.
inline StageOrder oneForwardOneBackward(unsigned numStages, unsigned numMicrobatches) {
  std::vector<StageOrder> calls(numStages); // of each stage, in its order
  for (unsigned s = 0; s < numStages; ++s) {
    unsigned warmUp = std::min(numStages - 1 - s, numMicrobatches);
    for (unsigned m = 0; m < numMicrobatches + warmUp; ++m) {
      if (m < numMicrobatches)
        calls[s].push_back({Side::Forward, s, m});
      if (m >= warmUp)
        calls[s].push_back({Side::Backward, s, m - warmUp});
    }
  }
  return orderedBy(numStages, numMicrobatches,
                   [&, next = std::vector<size_t>(numStages)](const StageOrder &ready) mutable {
                     for (unsigned s = numStages; s-- > 0;) {
                       if (next[s] == calls[s].size())
                         continue;
                       const StageCall &wanted = calls[s][next[s]];
                       for (size_t i = 0; i < ready.size(); ++i)
                         if (ready[i].side == wanted.side && ready[i].stage == s &&
                             ready[i].microbatch == wanted.microbatch) {
                           ++next[s];
                           return i;
                         }
                     }
                     ADD_FAILURE() << "the schedule contradicts itself";
                     return size_t(0);
                   });
}

class SeveralCallablesFixture : public CallFixture {
protected:
  static constexpr unsigned numStages = 3;
  static constexpr unsigned widths[numStages + 1] = {8, 16, 12, 4};

  /// A stage with its parameters, and buffers for their gradients.
  struct Stage {
    Program program;
    Tensor w, b, gradW, gradB;
  };
  using Stages = std::vector<Stage>;

  Stages makeStages(CUDAGraphTransform &transform, bool isEager = false) {
    Stages stages;
    for (unsigned s = 0; s < numStages; ++s) {
      ProgramOptions options = steadyOptions();
      options.checkGraphs = options.poison = true;
      unsigned in = widths[s], out = widths[s + 1];
      Program program =
          cantFail(compile(accumulating(parse(stageText(in, out))), device, target.executors,
                           pipelineWith(transform, target.executors), options));
      program.setEager(isEager);
      cantFail(program.generators()->set(*stream, "default", {s, 0}));
      stages.push_back({std::move(program), numbers(100 + s, {in, out}), numbers(200 + s, {out}),
                        tensorOf(device, std::vector<float>(in * out), {in, out}),
                        filled(device, 0, out)});
    }
    return stages;
  }

  Tensor numbers(unsigned seed, std::vector<int64_t> shape) {
    std::mt19937 random(seed);
    std::vector<float> values(std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()));
    for (float &value : values)
      value = float(int(random() % 2001) - 1000) / 1000;
    return tensorOf(device, values, shape);
  }

  /// What every call gave, and the gradients of parameters in the end.
  using Outcome = std::vector<std::vector<double>>;

  /// Calls the stages in `order`. Nothing waits until all is submitted; what a call gave is let go
  /// of when the call that takes it has been made, unless all is kept for the outcome.
  Outcome play(Stages &stages, const StageOrder &order, unsigned seed, bool keepsResults = true) {
    unsigned numMicrobatches = order.size() / (2 * numStages);
    std::vector<Value> values, tangents; // by microbatch: what the next stage is given
    for (unsigned m = 0; m < numMicrobatches; ++m) {
      values.push_back(numbers(seed + 2 * m, {4, widths[0]}));
      tangents.push_back(numbers(seed + 2 * m + 1, {4, widths[numStages]}));
    }
    std::map<std::pair<unsigned, unsigned>, SavedState> saved;
    std::vector<Value> kept;
    for (const StageCall &call : order) {
      Stage &stage = stages[call.stage];
      SavedState &state = saved[{call.stage, call.microbatch}];
      Results results;
      if (call.side == Side::Forward)
        cantFail(stage.program.forward(*stream, {values[call.microbatch], stage.w, stage.b},
                                       results, &state));
      else
        cantFail(stage.program.backward(*stream, std::move(state),
                                        {tangents[call.microbatch], stage.gradW, stage.gradB},
                                        results));
      (call.side == Side::Forward ? values : tangents)[call.microbatch] = results[0];
      if (keepsResults)
        kept.push_back(results[0]);
    }
    Outcome outcome;
    for (const Value &value : kept)
      outcome.push_back(numbersOn(value));
    for (const Stage &stage : stages)
      for (const Tensor &gradient : {stage.gradW, stage.gradB})
        outcome.push_back(numbersOn(gradient));
    return outcome;
  }

  /// Rounds of `order`, each with other numbers, give what eager calls in that order give, bit for
  /// bit.
  void equalsEager(const StageOrder &order, unsigned rounds = 4) {
    CUDAGraphTransform transform(graphOptions()), unused(graphOptions());
    Stages eager = makeStages(unused, true), stages = makeStages(transform);
    for (unsigned round = 0; round < rounds; ++round) {
      Outcome expected = play(eager, order, 1000 * round), got = play(stages, order, 1000 * round);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], expected[i]) << "round " << round << ", value " << i;
    }
    CacheCounters counters = GraphCache::find(transform.domain(), *device)->counters();
    EXPECT_GT(counters.replays, 0u);
    EXPECT_EQ(counters.failures + counters.recaptures, 0u);
    for (Stage &stage : stages)
      EXPECT_EQ(stage.program.counters().captures, counters.captures) << "one domain for all";
  }

  /// After the first round of `order` no memory is allocated and nothing is captured: slabs serve
  /// again when their backward has consumed them, `slabs[s]` of them for stage s.
  void staysLevel(const StageOrder &order, llvm::ArrayRef<unsigned> slabs) {
    CUDAGraphTransform transform(graphOptions());
    Stages stages = makeStages(transform);
    play(stages, order, 1, false);
    std::shared_ptr<GraphCache> cache = GraphCache::find(transform.domain(), *device);
    uint64_t captures = cache->counters().captures, bytes = device->memoryUse().bytes;
    EXPECT_EQ(captures, 2 * std::accumulate(slabs.begin(), slabs.end(), 0u))
        << "a forward's and a backward's graph for each slab";
    for (unsigned round = 2; round < 12; ++round) {
      play(stages, order, round, false);
      EXPECT_EQ(device->memoryUse().bytes, bytes) << "round " << round;
      EXPECT_EQ(cache->counters().captures, captures) << "round " << round;
    }
    EXPECT_EQ(cache->counters().evictions, 0u);
  }
};

} // namespace rondo
