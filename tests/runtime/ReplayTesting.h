//===- ReplayTesting.h - Recorded traces, replayed --------------*- C++ -*-===//

#pragma once

#include "CallTesting.h"

#include "support/Sanitizers.h"

#include <deque>
#include <random>

namespace rondo {

struct ReplayCase {
  std::string trace;
  bool feedsMasks = false; ///< of dropout, as PyTorch drew them
  std::string pipeline = usualPipeline.str();
  std::string label = trace;
  /// Everything lies elsewhere in every step, also parameters, at any address that is aligned, and
  /// some results are held while later ones are made.
  bool movesAll = false;
  unsigned numReplays = RONDO_IS_SANITIZED ? 20 : 100;

  bool isPatched() const { return llvm::StringRef(pipeline).contains("inputs=patched"); }
  std::string preparation(Device device) const {
    return placementOn(device) + (feedsMasks ? ",feed-masks" : "");
  }
};
inline void PrintTo(const ReplayCase &value, std::ostream *os) {
  *os << value.label;
}

/// All recorded traces that can be run.
inline std::vector<ReplayCase> replayCases() {
  std::vector<ReplayCase> all;
  for (const char *trace : {"mlp", "branchy", "gpt_tiny", "gpt_tiny_math", "llama_tiny",
                            "gpt_tiny_checkpoint", "decode_tiny", "adam", "llama_tiny_bf16"})
    all.push_back({trace});
  all.push_back({"gpt_tiny_dropout", true});
  // Dropout draws its own numbers.
  all.push_back({"gpt_tiny_dropout", false, usualPipeline.str(), "gpt_tiny_dropout_random"});
  all.push_back({"gpt_tiny", false,
                 "dce,cse,canonicalise,execution,cuda-graph{partition=dataflow},del",
                 "gpt_tiny_dataflow"});
  for (llvm::StringRef policy : {"patched", "copied"})
    for (const char *trace : {"gpt_tiny", "llama_tiny", "adam", "decode_tiny"})
      all.push_back({trace, false,
                     ("dce,cse,canonicalise,execution,cuda-graph{inputs=" + policy + "},del").str(),
                     (trace + ("_" + policy)).str(), true});
  for (ReplayCase &item : all)
    if (item.label == "gpt_tiny_patched" || item.label == "llama_tiny_patched")
      item.numReplays = RONDO_IS_SANITIZED ? 100 : 1000;
  return all;
}

/// A program of a recorded trace with its arguments. Those whose address may move lie in new memory
/// in every step.
class Player {
public:
  using Outcome = std::vector<std::pair<std::string, std::vector<std::byte>>>;

  Player(Program program, const RecordedValues &values, DeviceRef device, bool movesAll)
      : program_(std::move(program)), values_(values), device_(std::move(device)),
        movesAll_(movesAll), stream_(cantFail(device_->createStream())) {
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
    hold(results);
    if (!program_.hasBackward())
      return outcome;
    for (const SavedValue &value : cantFail(program_.savedValues(saved)))
      add(outcome, "saved " + value.name, value.value);
    cantFail(program_.backward(*stream_, std::move(saved), tangents_, results));
    add(outcome, "gradient", results);
    hold(results);
    return outcome;
  }

private:
  std::vector<Value> newInputs(Side side, llvm::ArrayRef<Value> old) {
    if (side == Side::Backward && !program_.hasBackward())
      return {};
    std::vector<Value> inputs = cantFail(inputsOf(program_, side, values_, *stream_));
    for (unsigned i = 0; i < old.size(); ++i)
      if (isStatic(side, i))
        inputs[i] = old[i];
    for (Value &input : inputs)
      if (const Tensor *tensor = input.asTensor(); movesAll_ && tensor)
        input = moved(*tensor);
    return inputs;
  }

  /// A copy with the same layout somewhere else.
  Tensor moved(const Tensor &tensor) {
    size_t bytes = tensor.extentBytes(), offset = random_() % 64 * DeviceAPI::minAlignment;
    StorageRef storage = cantFail(Storage::allocate(device_, bytes + offset));
    if (bytes != 0)
      cantFail(stream_->copy(storage->data() + offset, tensor.data(), bytes));
    return Tensor(std::move(storage), int64_t(offset), tensor.layout());
  }

  /// Keeps the results of up to three calls.
  void hold(const Results &results) {
    if (movesAll_)
      held_.push_back(results);
    while (held_.size() > random_() % 4)
      held_.pop_front();
  }

  /// Fills what moves with 0xFF and frees it.
  void destroy(Side side, std::vector<Value> &old) {
    for (unsigned i = 0; i < old.size(); ++i)
      if (const Tensor *tensor = old[i].asTensor(); tensor && (movesAll_ || !isStatic(side, i)))
        cantFail(stream_->fill(tensor->data(), 0xff, tensor->extentBytes()));
    cantFail(stream_->synchronize());
    old.clear();
  }

  bool isStatic(Side side, unsigned i) const {
    return any(program_.inputs(side)[i].tags & staticTags);
  }

  void add(Outcome &outcome, const std::string &name, const Value &value) {
    if (const Tensor *tensor = value.asTensor())
      outcome.emplace_back(name, bytesOf(onHost(*tensor, *stream_)));
    else
      outcome.emplace_back(name + " " + value.description(), std::vector<std::byte>());
  }
  void add(Outcome &outcome, const std::string &name, llvm::ArrayRef<Value> values) {
    for (unsigned i = 0; i < values.size(); ++i)
      add(outcome, name + " " + std::to_string(i), values[i]);
  }

  Program program_;
  const RecordedValues &values_;
  DeviceRef device_;
  const bool movesAll_;
  std::unique_ptr<Stream> stream_;
  std::vector<Value> inputs_, tangents_;
  std::deque<Results> held_;
  std::mt19937 random_;
};

class ReplayFixture : public testing::TestWithParam<ReplayCase> {
protected:
  /// 100 replays on `where` give bit for bit what eager calls on `plain` give, and call no kernel.
  void replayHundredTimes(const RunTarget &plain, const RunTarget &where) {
    Sample sample = cantFail(
        loadSample(GetParam().trace, registry, GetParam().preparation(where.device->device())));
    Player eager = player(plain, {}, sample.values, sample.pair.clone());
    eager.program().setEager(true);

    ProgramOptions options = steadyOptions();
    options.poison = options.checkGraphs = true;
    std::vector<std::unique_ptr<CountingExecutor>> counting;
    RunTarget counted{where.device, {}};
    for (const Executor *executor : where.executors) {
      counting.push_back(std::make_unique<CountingExecutor>(*executor));
      counted.executors.push_back(counting.back().get());
    }
    auto numEnqueues = [&] {
      uint64_t sum = 0;
      for (const std::unique_ptr<CountingExecutor> &executor : counting)
        sum += executor->numEnqueues();
      return sum;
    };
    unsigned numCopyOps = countCopyOps(sample.pair);
    Player replayed = player(counted, options, sample.values, std::move(sample.pair));
    uint64_t numRegions = replayed.program().regions().size();
    ASSERT_EQ(numRegions, replayed.program().hasBackward() ? 2u : 1u) << "one per side";

    uint64_t enqueues = 0;
    unsigned numReplays = GetParam().numReplays;
    for (unsigned step = 0; step <= numReplays; ++step) {
      Player::Outcome expected = eager.step(), got = replayed.step();
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].first, expected[i].first);
        ASSERT_EQ(got[i].second, expected[i].second) << got[i].first << ", step " << step;
      }
      if (step == 0)
        enqueues = numEnqueues(); // run, and put into graphs
      EXPECT_EQ(numEnqueues(), enqueues) << "step " << step;
    }
    EXPECT_GT(enqueues, 0u);
    CacheCounters counters = replayed.program().counters();
    EXPECT_EQ(counters.captures, numRegions);
    EXPECT_EQ(counters.eagerRuns, numRegions);
    EXPECT_EQ(counters.replays, uint64_t(numReplays) * numRegions);
    EXPECT_EQ(counters.failures, 0u);
    EXPECT_EQ(counters.recaptures, 0u) << "every pointer is understood";
    if (GetParam().isPatched())
      expectNoCopies(replayed.program(), numCopyOps);
    EXPECT_EQ(eager.program().counters().replays, 0u);
  }

  /// The first time that something moves, the patched graph is proven to do what eager runs do.
  void verifyPatches(const RunTarget &where) {
    Sample sample = cantFail(
        loadSample(GetParam().trace, registry, GetParam().preparation(where.device->device())));
    ProgramOptions options = steadyOptions();
    options.verifyPatches = true;
    Player replayed = player(where, options, sample.values, std::move(sample.pair));
    for (unsigned step = 0; step < 3; ++step)
      replayed.step();
    CacheCounters counters = replayed.program().counters();
    EXPECT_GT(counters.replays, 0u);
    EXPECT_EQ(counters.recaptures, 0u);
  }

  CoreRegistry registry;

private:
  /// Ops that copy: a device may do so without a kernel.
  static unsigned countCopyOps(const TracePair &pair) {
    unsigned count = 0;
    auto visit = [&](const Op &op) { count += op.name() == "copy_"; };
    forEachOp(pair.forward(), visit);
    if (pair.hasBackward())
      forEachOp(pair.backward(), visit);
    return count;
  }

  /// Nothing is copied but by ops of the trace.
  static void expectNoCopies(const Program &program, unsigned numCopyOps) {
    EXPECT_EQ(program.counters().copiedBytes, 0u);
    EXPECT_GT(program.counters().patches, 0u);
    unsigned numCopies = 0;
    program.forEachGraph([&](Graph &graph, GraphExec &) {
      for (uint32_t i = 0; i < graph.numNodes(); ++i)
        numCopies += graph.kind(GraphNodeId(i)) == GraphNodeKind::Copy;
    });
    EXPECT_LE(numCopies, numCopyOps);
  }

  Player player(const RunTarget &target, ProgramOptions options, const RecordedValues &values,
                TracePair pair) {
    Program program = cantFail(compile(std::move(pair), target.device, target.executors,
                                       pipelineOf(GetParam().pipeline, target.executors), options));
    return Player(std::move(program), values, target.device, GetParam().movesAll);
  }
};

/// A step allocates no memory of the device once all graphs and buffers are there; who keeps
/// results makes it allocate others.
inline void expectNoAllocations(const RunTarget &target) {
  CoreRegistry registry;
  Sample sample = cantFail(loadSample("gpt_tiny", registry, placementOn(target.device->device())));
  Program program = cantFail(compile(std::move(sample.pair), target.device, target.executors,
                                     pipelineOf(usualPipeline.str(), target.executors)));
  std::unique_ptr<Stream> stream = cantFail(target.device->createStream());
  std::vector<Value> inputs = cantFail(inputsOf(program, Side::Forward, sample.values, *stream)),
                     tangents = cantFail(inputsOf(program, Side::Backward, sample.values, *stream));
  auto step = [&] {
    Results results;
    SavedState saved;
    cantFail(program.forward(*stream, inputs, results, &saved));
    cantFail(program.backward(*stream, std::move(saved), tangents, results));
  };
  auto allocations = [&] { return target.device->memoryUse().allocations; };
  step();
  EXPECT_GT(allocations(), 0u);
  step();
  uint64_t before = allocations();
  for (unsigned i = 0; i < 20; ++i)
    step();
  EXPECT_EQ(allocations(), before);
  EXPECT_EQ(program.counters().replays, 2 * 21u);

  std::vector<Results> kept(3);
  for (Results &results : kept)
    cantFail(program.forward(*stream, inputs, results));
  EXPECT_GT(allocations(), before);
}

} // namespace rondo
