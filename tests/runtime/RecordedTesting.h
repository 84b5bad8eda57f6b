//===- RecordedTesting.h - Recorded traces against PyTorch ------*- C++ -*-===//

#pragma once

#include "TraceTesting.h"

namespace rondo {

struct RecordedBar {
  const char *name;
  double loss, other; ///< greatest relative error
  bool feedsMasks = false;
};
inline void PrintTo(const RecordedBar &bar, std::ostream *os) {
  *os << bar.name;
}

/// All recorded traces that can be run.
inline std::vector<RecordedBar> recordedBars() {
  return {{"mlp", 1e-5, 1e-4},
          {"branchy", 1e-5, 1e-4},
          {"gpt_tiny", 1e-5, 1e-4},
          {"gpt_tiny_math", 1e-5, 1e-4},
          {"llama_tiny", 1e-5, 1e-4},
          {"gpt_tiny_checkpoint", 1e-5, 1e-4},
          {"decode_tiny", 1e-5, 1e-4},
          {"adam", 1e-5, 1e-4},
          {"llama_tiny_bf16", 2e-2, 2e-2},
          {"gpt_tiny_dropout", 1e-5, 1e-4, true}};
}

class RecordedFixture : public testing::TestWithParam<RecordedBar> {
protected:
  /// The loss, every gradient, every saved value and every buffer that is written equal PyTorch's,
  /// when run eagerly and when replayed.
  void expectRecorded(const RunTarget &target) {
    const RecordedBar &bar = GetParam();
    const DeviceRef &device = target.device;
    llvm::Expected<Sample> sample = loadSample(
        bar.name, registry, placementOn(device->device()) + (bar.feedsMasks ? ",feed-masks" : ""));
    ASSERT_TRUE(bool(sample)) << llvm::toString(sample.takeError());
    ProgramOptions options = steadyOptions();
    options.checkGraphs = true;
    llvm::Expected<Program> program =
        compile(std::move(sample->pair), device, target.executors,
                pipelineOf(usualPipeline.str(), target.executors), options);
    ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
    stream_ = cantFail(device->createStream());
    for (unsigned step = 0; step < 3; ++step) {
      SCOPED_TRACE(step == 0 ? "eager" : "replayed");
      expectStep(*program, sample->values);
    }
    EXPECT_GE(numChecked_, 3u);
    CacheCounters counters = program->counters();
    EXPECT_GT(counters.replays, 0u);
    EXPECT_EQ(counters.failures, 0u);
    EXPECT_THAT(program->takeRemarks(), testing::IsEmpty());
    expectLittleMemory(*program);
  }

  CoreRegistry registry;

private:
  void check(const Value &value, const Tensor *recorded, double bound, const std::string &what) {
    ASSERT_TRUE(recorded) << what << " was not recorded";
    ASSERT_TRUE(value.asTensor()) << what;
    EXPECT_LE(relativeError(onHost(*value.asTensor(), *stream_), *recorded), bound) << what;
    ++numChecked_;
  }

  void expectStep(Program &program, const RecordedValues &recorded) {
    const RecordedBar &bar = GetParam();
    auto inputs = inputsOf(program, Side::Forward, recorded, *stream_);
    ASSERT_TRUE(bool(inputs)) << llvm::toString(inputs.takeError());
    llvm::SmallVector<Value> results;
    SavedState saved;
    llvm::Error error = program.forward(*stream_, *inputs, results, &saved);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    for (unsigned i = 0; i < results.size(); ++i)
      check(results[i], recorded.result(Side::Forward, i), bar.loss, "result " + std::to_string(i));
    for (unsigned i = 0; i < inputs->size(); ++i) {
      std::string name = program.inputs()[i].name;
      if (const Tensor *written = recorded.mutated(name))
        check((*inputs)[i], written, bar.other, name);
    }
    if (!program.hasBackward())
      return;
    llvm::Expected<std::vector<SavedValue>> values = program.savedValues(saved);
    ASSERT_TRUE(bool(values)) << llvm::toString(values.takeError());
    for (const SavedValue &value : *values)
      if (value.value.asTensor())
        check(value.value, recorded.saved(value.name), bar.other, "saved " + value.name);
    values->clear();

    auto tangents = inputsOf(program, Side::Backward, recorded, *stream_);
    ASSERT_TRUE(bool(tangents)) << llvm::toString(tangents.takeError());
    error = program.backward(*stream_, std::move(saved), *tangents, results);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    for (unsigned i = 0; i < results.size(); ++i)
      if (!results[i].isNone())
        check(results[i], recorded.result(Side::Backward, i), bar.other,
              "gradient " + std::to_string(i));
  }

  /// Arguments, outputs and the greatest sum of live temporaries; and the greatest sum of all live
  /// bytes. That is looser without the rounding, which small tensors cost.
  static void expectLittleMemory(const Program &program) {
    for (Side side : {Side::Forward, Side::Backward}) {
      if (side == Side::Backward && !program.hasBackward())
        continue;
      MemoryInfo memory = program.memory(side);
      uint64_t outputs = memory.slab + memory.results;
      EXPECT_LE(double(memory.peak()),
                1.05 * double(memory.arguments + outputs + memory.temporaries))
          << sideName(side).str();
      EXPECT_LE(double(memory.peak()), 1.05 * double(memory.roundedLowerBound))
          << sideName(side).str() << ": arguments " << memory.arguments << ", arena "
          << memory.arena << ", slab " << memory.slab << ", results " << memory.results;
      EXPECT_LE(double(memory.peak()), 1.10 * double(memory.lowerBound)) << sideName(side).str();
    }
  }

  std::unique_ptr<Stream> stream_;
  unsigned numChecked_ = 0;
};

} // namespace rondo
