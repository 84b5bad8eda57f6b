//===- RematerialiseTesting.h - Recomputation, run --------------*- C++ -*-===//

#pragma once

#include "ReplayTesting.h"

#include "rondo/passes/Rematerialise.h"

#include <set>

namespace rondo {

struct RematerialiseCase {
  const char *trace;
  const char *recompute; ///< the pass and its options
  unsigned numMasks = 0; ///< of dropout, that the forward draws
};
inline void PrintTo(const RematerialiseCase &value, std::ostream *os) {
  *os << value.trace;
}

/// Training steps of which everything that can be is recomputed.
inline std::vector<RematerialiseCase> rematerialiseCases() {
  return {{"gpt_tiny_dropout", "rematerialise{budget=0}", 4},
          {"gpt_tiny", "rematerialise{budget=20000}"},
          {"mlp", "rematerialise{budget=0}"}};
}

class RematerialiseFixture : public testing::TestWithParam<RematerialiseCase> {
protected:
  /// Results and gradients of every step are bit for bit those of the steps without recomputation,
  /// eagerly and replayed; masks, which are looked at where they are saved, differ from step to
  /// step.
  void expectSameSteps(const RunTarget &target, unsigned numSteps) {
    Sample sample =
        cantFail(loadSample(GetParam().trace, registry, placementOn(target.device->device())));
    std::string prefix = "dce,cse,canonicalise,", suffix = "execution,cuda-graph,del";
    std::string recompute = prefix + GetParam().recompute + ",dce," + suffix;
    Player saving = player(target, sample, prefix + suffix);
    Player eager = player(target, sample, recompute), replayed = player(target, sample, recompute);
    saving.program().setEager(true);
    eager.program().setEager(true);

    size_t numSaved = 0;
    std::set<std::vector<std::byte>> masks;
    for (unsigned step = 0; step < numSteps; ++step) {
      SCOPED_TRACE(step);
      Player::Outcome expected = saving.step();
      for (auto &[name, bytes] : expected)
        if (isMask(name, sample))
          masks.insert(bytes);
      expected = withoutSaved(std::move(expected), numSaved);
      size_t numLeft = 0;
      for (Player *player : {&eager, &replayed}) {
        Player::Outcome got = withoutSaved(player->step(), numLeft);
        ASSERT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(got[i].first, expected[i].first);
          EXPECT_EQ(got[i].second, expected[i].second) << got[i].first;
        }
      }
      EXPECT_LT(numLeft, 2 * numSaved);
      numSaved = 0;
    }
    EXPECT_EQ(masks.size(), size_t(GetParam().numMasks) * numSteps);
    CacheCounters counters = replayed.program().counters();
    EXPECT_EQ(counters.replays, 2 * (numSteps - 1));
    EXPECT_EQ(counters.failures, 0u);
    EXPECT_LT(replayed.program().memory(Side::Forward).slab,
              saving.program().memory(Side::Forward).slab);
  }

  CoreRegistry registry;

private:
  Player player(const RunTarget &target, const Sample &sample, const std::string &pipeline) {
    ProgramOptions options = steadyOptions();
    options.poison = options.checkGraphs = true;
    Program program = cantFail(compile(sample.pair.clone(), target.device, target.executors,
                                       pipelineOf(pipeline, target.executors), options));
    return Player(std::move(program), sample.values, target.device, /*movesAll=*/false);
  }

  static bool isSaved(llvm::StringRef name) { return name.consume_front("saved "); }

  /// Is it a saved value that `dropout` made beside its result?
  static bool isMask(llvm::StringRef name, const Sample &sample) {
    const Trace &trace = sample.pair.forward();
    return name.consume_front("saved ") && llvm::any_of(trace.ops(), [&](OpId id) {
             const Op &op = trace.op(id);
             return op.spec().random && op.results().size() == 2 &&
                    trace.name(op.result(1)) == name &&
                    trace.tensorType(op.result(1)).dtype == DType::Bool;
           });
  }

  static Player::Outcome withoutSaved(Player::Outcome outcome, size_t &numSaved) {
    size_t before = outcome.size();
    llvm::erase_if(outcome, [](const auto &entry) { return isSaved(entry.first); });
    numSaved += before - outcome.size();
    return outcome;
  }
};

} // namespace rondo
