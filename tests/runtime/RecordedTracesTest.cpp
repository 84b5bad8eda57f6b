//===- RecordedTracesTest.cpp - PyTorch's numbers -------------------------===//
//
// Training steps, a decoding step and an optimiser step that were recorded in PyTorch, run on the
// host device, against PyTorch's own results.
//
//===----------------------------------------------------------------------===//

#include "TraceTesting.h"

using namespace rondo;

namespace {

struct Bar {
  const char *name;
  double loss, other; ///< greatest relative error
  const char *preparation = "place";
};

class RecordedTracesTest : public testing::TestWithParam<Bar> {
protected:
  void check(const Value &value, const Tensor *recorded, double bound, const std::string &what) {
    ASSERT_TRUE(recorded) << what << " was not recorded";
    ASSERT_TRUE(value.asTensor()) << what;
    EXPECT_LE(relativeError(*value.asTensor(), *recorded), bound) << what;
    ++numChecked;
  }

  CoreRegistry registry;
  HostExecutor host;
  unsigned numChecked = 0;
};

// The loss, every gradient, every saved value and every buffer that is written equal PyTorch's,
// when run eagerly and when replayed.
TEST_P(RecordedTracesTest, EqualsPyTorch) {
  const Bar &bar = GetParam();
  llvm::Expected<Sample> sample = loadSample(bar.name, registry, bar.preparation);
  ASSERT_TRUE(bool(sample)) << llvm::toString(sample.takeError());
  DeviceRef device = createHostDevice();
  ProgramOptions options;
  options.checkGraphs = true;
  llvm::Expected<Program> program = compile(std::move(sample->pair), device, &host,
                                            pipelineOf(usualPipeline.str(), host), options);
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  std::unique_ptr<Stream> stream = cantFail(device->createStream());

  for (unsigned step = 0; step < 3; ++step) {
    SCOPED_TRACE(step == 0 ? "eager" : "replayed");
    auto inputs = inputsOf(*program, Side::Forward, sample->values, device);
    ASSERT_TRUE(bool(inputs)) << llvm::toString(inputs.takeError());
    llvm::SmallVector<Value> results;
    SavedState saved;
    llvm::Error error = program->forward(*stream, *inputs, results, &saved);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    for (unsigned i = 0; i < results.size(); ++i)
      check(results[i], sample->values.result(Side::Forward, i), bar.loss,
            "result " + std::to_string(i));
    for (unsigned i = 0; i < inputs->size(); ++i) {
      std::string name = program->inputs()[i].name;
      if (const Tensor *recorded = sample->values.mutated(name))
        check((*inputs)[i], recorded, bar.other, name);
    }
    if (!program->hasBackward())
      continue;
    llvm::Expected<std::vector<SavedValue>> values = program->savedValues(saved);
    ASSERT_TRUE(bool(values)) << llvm::toString(values.takeError());
    for (const SavedValue &value : *values)
      if (value.value.asTensor())
        check(value.value, sample->values.saved(value.name), bar.other, "saved " + value.name);
    values->clear();

    auto tangents = inputsOf(*program, Side::Backward, sample->values, device);
    ASSERT_TRUE(bool(tangents)) << llvm::toString(tangents.takeError());
    error = program->backward(*stream, std::move(saved), *tangents, results);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    for (unsigned i = 0; i < results.size(); ++i)
      if (!results[i].isNone())
        check(results[i], sample->values.result(Side::Backward, i), bar.other,
              "gradient " + std::to_string(i));
  }
  EXPECT_GE(numChecked, 3u);
  CacheCounters counters = program->counters();
  EXPECT_GT(counters.replays, 0u);
  EXPECT_EQ(counters.failures, 0u);
  EXPECT_THAT(program->takeRemarks(), testing::IsEmpty());
  for (Side side : {Side::Forward, Side::Backward}) {
    if (side == Side::Backward && !program->hasBackward())
      continue;
    MemoryInfo memory = program->memory(side);
    // Arguments, outputs and the greatest sum of live temporaries; and, a little looser, the
    // greatest sum of all live bytes: an output that is not made yet is room for a temporary that
    // fits.
    uint64_t outputs = memory.slab + memory.results;
    EXPECT_LE(double(memory.peak()), 1.05 * double(memory.arguments + outputs + memory.temporaries))
        << sideName(side).str();
    EXPECT_LE(double(memory.peak()), 1.06 * double(memory.lowerBound))
        << sideName(side).str() << ": arguments " << memory.arguments << ", arena " << memory.arena
        << ", slab " << memory.slab << ", results " << memory.results;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , RecordedTracesTest,
    testing::Values(Bar{"mlp", 1e-5, 1e-4}, Bar{"branchy", 1e-5, 1e-4}, Bar{"gpt_tiny", 1e-5, 1e-4},
                    Bar{"gpt_tiny_math", 1e-5, 1e-4}, Bar{"llama_tiny", 1e-5, 1e-4},
                    Bar{"gpt_tiny_checkpoint", 1e-5, 1e-4}, Bar{"decode_tiny", 1e-5, 1e-4},
                    Bar{"adam", 1e-5, 1e-4}, Bar{"llama_tiny_bf16", 2e-2, 2e-2},
                    Bar{"gpt_tiny_dropout", 1e-5, 1e-4, "place,feed-masks"}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
