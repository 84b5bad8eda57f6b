//===- ReplayTest.cpp - Replay is real ------------------------------------===//
//
// Recorded traces, replayed on a device that does all it may do: graph nodes in random order, dead
// memory filled with nan, and arguments that lie elsewhere in every call.
//
//===----------------------------------------------------------------------===//

#include "CallTesting.h"

using namespace rondo;

namespace {

struct Case {
  std::string trace, preparation = "place", pipeline = usualPipeline.str();
  std::string label = trace;
};

/// A program of a recorded trace with its arguments. Those whose address may move lie in new memory
/// in every step.
class Player {
public:
  using Outcome = std::vector<std::pair<std::string, std::vector<std::byte>>>;

  Player(Program program, const RecordedValues &values, DeviceRef device)
      : program_(std::move(program)), values_(values), device_(std::move(device)),
        stream_(cantFail(device_->createStream())) {
    cantFail(program_.generators()->set(*stream_, "default", {42, 1000}));
  }

  Program &program() { return program_; }

  /// Forward and backward: all that the caller can see of it.
  Outcome step() {
    Outcome outcome;
    std::vector<Value> old = std::exchange(inputs_, newInputs(Side::Forward, inputs_));
    std::vector<Value> oldTangents = std::exchange(tangents_, newInputs(Side::Backward, tangents_));
    destroy(Side::Forward, old);
    destroy(Side::Backward, oldTangents);

    Results results;
    SavedState saved;
    cantFail(program_.forward(*stream_, inputs_, results, &saved));
    add(outcome, "result", results);
    add(outcome, "argument", inputs_); // some are written
    if (!program_.hasBackward())
      return outcome;
    for (const SavedValue &value : cantFail(program_.savedValues(saved)))
      add(outcome, "saved " + value.name, value.value);
    cantFail(program_.backward(*stream_, std::move(saved), tangents_, results));
    add(outcome, "gradient", results);
    return outcome;
  }

private:
  std::vector<Value> newInputs(Side side, llvm::ArrayRef<Value> old) {
    if (side == Side::Backward && !program_.hasBackward())
      return {};
    std::vector<Value> inputs = cantFail(inputsOf(program_, side, values_, device_));
    for (unsigned i = 0; i < old.size(); ++i)
      if (isStatic(side, i))
        inputs[i] = old[i];
    return inputs;
  }

  /// Fills what moves with 0xFF and frees it.
  void destroy(Side side, std::vector<Value> &old) {
    for (unsigned i = 0; i < old.size(); ++i)
      if (const Tensor *tensor = old[i].asTensor(); tensor && !isStatic(side, i))
        std::memset(tensor->data(), 0xff, tensor->extentBytes());
    old.clear();
  }

  bool isStatic(Side side, unsigned i) const {
    return any(program_.inputs(side)[i].tags & staticTags);
  }

  static void add(Outcome &outcome, const std::string &name, const Value &value) {
    if (const Tensor *tensor = value.asTensor())
      outcome.emplace_back(name, bytesOf(*tensor));
    else
      outcome.emplace_back(name + " " + value.description(), std::vector<std::byte>());
  }
  static void add(Outcome &outcome, const std::string &name, llvm::ArrayRef<Value> values) {
    for (unsigned i = 0; i < values.size(); ++i)
      add(outcome, name + " " + std::to_string(i), values[i]);
  }

  Program program_;
  const RecordedValues &values_;
  DeviceRef device_;
  std::unique_ptr<Stream> stream_;
  std::vector<Value> inputs_, tangents_;
};

class ReplayTest : public testing::TestWithParam<Case> {
protected:
  Player player(const Executor &executor, HostDeviceOptions options, ProgramOptions programOptions,
                const RecordedValues &values, TracePair pair) {
    DeviceRef device = createHostDevice(std::move(options));
    Program program = cantFail(compile(std::move(pair), device, &executor,
                                       pipelineOf(GetParam().pipeline, executor), programOptions));
    return Player(std::move(program), values, device);
  }

  CoreRegistry registry;
  HostExecutor host;
};

// 100 replays give bit for bit what eager calls on a plain device give, and call no kernel.
TEST_P(ReplayTest, HundredTimes) {
  Sample sample = cantFail(loadSample(GetParam().trace, registry, GetParam().preparation));
  Player eager = player(host, {}, {}, sample.values, sample.pair.clone());
  eager.program().setEager(true);

  HostDeviceOptions hostile;
  hostile.randomOrderSeed = 7;
  hostile.poison = true;
  ProgramOptions options;
  options.poison = options.checkGraphs = true;
  CountingExecutor counting(host);
  Player replayed = player(counting, hostile, options, sample.values, std::move(sample.pair));
  uint64_t numRegions = replayed.program().regions().size();
  ASSERT_EQ(numRegions, replayed.program().hasBackward() ? 2u : 1u) << "one per side";

  uint64_t enqueues = 0;
  for (unsigned step = 0; step <= 100; ++step) {
    Player::Outcome expected = eager.step(), got = replayed.step();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].first, expected[i].first);
      ASSERT_EQ(got[i].second, expected[i].second) << got[i].first << ", step " << step;
    }
    if (step == 0)
      enqueues = counting.numEnqueues(); // run, and put into graphs
    EXPECT_EQ(counting.numEnqueues(), enqueues) << "step " << step;
  }
  EXPECT_GT(enqueues, 0u);
  CacheCounters counters = replayed.program().counters();
  EXPECT_EQ(counters.captures, numRegions);
  EXPECT_EQ(counters.eagerRuns, numRegions);
  EXPECT_EQ(counters.replays, 100 * numRegions);
  EXPECT_EQ(counters.failures, 0u);
  EXPECT_EQ(eager.program().counters().replays, 0u);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char *trace : {"mlp", "branchy", "gpt_tiny", "gpt_tiny_math", "llama_tiny",
                            "gpt_tiny_checkpoint", "decode_tiny", "adam", "llama_tiny_bf16"})
    all.push_back({trace});
  all.push_back({"gpt_tiny_dropout", "place,feed-masks"});
  // Dropout draws its own numbers.
  all.push_back({"gpt_tiny_dropout", "place", usualPipeline.str(), "gpt_tiny_dropout_random"});
  all.push_back({"gpt_tiny", "place",
                 "dce,cse,canonicalise,execution,cuda-graph{partition=dataflow},del",
                 "gpt_tiny_dataflow"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(, ReplayTest, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.label; });

// Once all graphs and buffers are there, a step allocates no memory of the device.
TEST(ReplayMemoryTest, AllocatesNothing) {
  CoreRegistry registry;
  HostExecutor host;
  Sample sample = cantFail(loadSample("gpt_tiny", registry));
  MemoryLog memory;
  HostDeviceOptions deviceOptions;
  deviceOptions.memoryHook = memory.hook();
  DeviceRef device = createHostDevice(deviceOptions);
  Program program = cantFail(
      compile(std::move(sample.pair), device, &host, pipelineOf(usualPipeline.str(), host)));
  std::unique_ptr<Stream> stream = cantFail(device->createStream());
  std::vector<Value> inputs = cantFail(inputsOf(program, Side::Forward, sample.values, device)),
                     tangents = cantFail(inputsOf(program, Side::Backward, sample.values, device));
  auto step = [&] {
    Results results;
    SavedState saved;
    cantFail(program.forward(*stream, inputs, results, &saved));
    cantFail(program.backward(*stream, std::move(saved), tangents, results));
  };
  step();
  EXPECT_GT(memory.calls(), 0u);
  step();
  uint64_t calls = memory.calls(), allocations = device->memoryUse().allocations;
  for (unsigned i = 0; i < 20; ++i)
    step();
  EXPECT_EQ(memory.calls(), calls);
  EXPECT_EQ(device->memoryUse().allocations, allocations);
  EXPECT_EQ(program.counters().replays, 2 * 21u);

  // Who keeps results makes it allocate others.
  std::vector<Results> kept(3);
  for (Results &results : kept)
    cantFail(program.forward(*stream, inputs, results));
  EXPECT_GT(memory.calls(), calls);
}

} // namespace
