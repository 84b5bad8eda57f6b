//===- CheckpointTracesTesting.h - Recorded checkpoints, step after step -*- C++ -*-===//
//
// Training steps that PyTorch recorded with activation checkpointing: their backwards compute again
// what the forward did not save. Every step has other parameters, tokens, targets, gradient of the
// loss and random numbers, all of which follow from the number of the step and the name of the
// argument, so that programs of different traces can be given the same.
//
// Traces with recomputation and without have the same kernels of the same shapes, strides and
// alignments, and so the same bits, on a GPU, too: their GELU is exact, which no matrix product
// takes along, and that a forward saves the logarithms of attention's sums changes only where they
// are written.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "EveryDeviceTesting.h"

#include "support/Sanitizers.h"

#include <random>

namespace rondo {

/// A program of a recorded training step, called with other values in every step.
class FreshSteps {
public:
  using Bytes = std::vector<std::byte>;
  struct Outcome {
    std::vector<Bytes> results, gradients; ///< empty for what is missing
    std::map<std::string, Bytes> masks;    ///< bools that are saved, by name
  };
  static constexpr uint64_t seed = 99;

  FreshSteps(Program program, const RecordedValues &recorded, const DeviceRef &device)
      : program_(std::move(program)), recorded_(recorded),
        stream_(cantFail(device->createStream())) {
    cantFail(program_.generators()->set(*stream_, "default", {seed, 0}));
  }

  Program &program() { return program_; }

  Outcome step(unsigned number) {
    Outcome outcome;
    SavedState saved;
    forward(number, outcome, saved);
    backward(number, outcome, std::move(saved));
    return outcome;
  }

  void forward(unsigned number, Outcome &outcome, SavedState &saved) {
    renew(Side::Forward, number, inputs_);
    Results results;
    cantFail(program_.forward(*stream_, inputs_, results, &saved));
    outcome.results = bytesOfAll(results);
    for (const SavedValue &value : cantFail(program_.savedValues(saved)))
      if (const Tensor *tensor = value.value.asTensor(); tensor && tensor->dtype() == DType::Bool)
        outcome.masks[value.name] = bytesOf(onHost(*tensor, *stream_));
  }
  void backward(unsigned number, Outcome &outcome, SavedState saved) {
    renew(Side::Backward, number, tangents_);
    Results results;
    cantFail(program_.backward(*stream_, std::move(saved), tangents_, results));
    outcome.gradients = bytesOfAll(results);
  }
  /// Gives the states of generators among the forward's arguments what they have in step `number`.
  void setStates(unsigned number) {
    for (unsigned i = 0; i < inputs_.size(); ++i)
      if (program_.inputs()[i].type.asRNGState())
        overwrite(*inputs_[i].asTensor(), stateIn(program_.inputs()[i].name, number));
  }

private:
  std::vector<Bytes> bytesOfAll(llvm::ArrayRef<Value> values) {
    std::vector<Bytes> all;
    for (const Value &value : values)
      all.push_back(value.asTensor() ? bytesOf(onHost(*value.asTensor(), *stream_)) : Bytes());
    return all;
  }

  /// Parameters and buffers stay where they are; all else is in new memory.
  void renew(Side side, unsigned number, std::vector<Value> &inputs) {
    llvm::ArrayRef<ParameterInfo> infos = program_.inputs(side);
    inputs.resize(infos.size());
    for (unsigned i = 0; i < infos.size(); ++i) {
      const ParameterInfo &info = infos[i];
      Tensor values =
          info.type.asRNGState() ? stateIn(info.name, number) : valuesIn(side, info.name, number);
      if (any(info.tags & staticTags) && inputs[i].asTensor())
        overwrite(*inputs[i].asTensor(), values);
      else
        inputs[i] = laidOut(*stream_, tensorTypeFor(info), values);
    }
  }

  static TensorType tensorTypeFor(const ParameterInfo &info) {
    return info.type.asRNGState() ? TensorType(DType::I64, {2}) : *info.type.asTensor();
  }

  void overwrite(const Tensor &tensor, const Tensor &values) {
    cantFail(stream_->copy(tensor.data(), values.data(), values.extentBytes()));
    cantFail(stream_->synchronize());
  }

  /// Each of the two blocks has three generators: one that attention would draw from, and one for
  /// each dropout. All are parts of one stream of numbers, of which a step takes four times 1,024.
  static Tensor stateIn(llvm::StringRef name, unsigned number) {
    unsigned generator = 0;
    if (!name.consume_front("fwd_rng_state_") || name.getAsInteger(10, generator))
      ADD_FAILURE() << "generator of an unknown name";
    int64_t dropout = 2 * (generator / 3) + (generator % 3 + 2) % 3;
    return hostTensor<int64_t>(DType::I64, {2}, {int64_t(seed), 1024 * (4 * number + dropout)});
  }

  /// Around what was recorded; indices of tokens are any of the 61.
  Tensor valuesIn(Side side, llvm::StringRef name, unsigned number) {
    const Tensor &recorded = *recorded_.input(side, name);
    std::vector<unsigned> words(name.begin(), name.end());
    words.push_back(number);
    std::seed_seq seeds(words.begin(), words.end());
    std::mt19937 random(seeds);
    int64_t count = recorded.numElements();
    if (recorded.dtype() == DType::I64) {
      std::vector<int64_t> tokens(count);
      for (int64_t &token : tokens)
        token = random() % 61;
      return hostTensor<int64_t>(DType::I64, recorded.shape(), tokens);
    }
    std::vector<float> values;
    for (double value : doublesOf(recorded))
      values.push_back(float(value) + 0.1f * (float(random() % 1024) / 512 - 1));
    return hostTensor<float>(DType::F32, recorded.shape(), values);
  }

  template <typename T>
  static Tensor hostTensor(DType dtype, llvm::ArrayRef<int64_t> shape,
                           const std::vector<T> &elements) {
    Tensor tensor = cantFail(Tensor::empty(createHostDevice(), dtype, shape));
    std::memcpy(tensor.data(), elements.data(), elements.size() * sizeof(T));
    return tensor;
  }

  Program program_;
  const RecordedValues &recorded_;
  std::unique_ptr<Stream> stream_;
  std::vector<Value> inputs_, tangents_;
};

class CheckpointTracesTest : public EveryDeviceTest {
protected:
  static constexpr unsigned numSteps = RONDO_IS_SANITIZED ? 8 : 50;

  Sample load(llvm::StringRef trace) {
    return cantFail(loadSample(trace, registry, placementOn(device->device())));
  }

  FreshSteps steps(const Sample &sample, const RecordedValues &recorded, bool isEager) {
    ProgramOptions options = steadyOptions();
    options.poison = options.checkGraphs = true;
    Program program = cantFail(compile(sample.pair.clone(), device, target.executors,
                                       pipelineOf(usualPipeline.str(), target.executors), options));
    program.setEager(isEager);
    return FreshSteps(std::move(program), recorded, device);
  }

  /// Bit for bit, up to the number of `expected`: masks that are given besides come last.
  static void expectSame(const FreshSteps::Outcome &got, const FreshSteps::Outcome &expected) {
    expectSame(got.results, expected.results, "result ");
    expectSame(got.gradients, expected.gradients, "gradient ");
  }

  static void expectReplayed(Program &program) {
    CacheCounters counters = program.counters();
    EXPECT_EQ(counters.replays, 2 * (numSteps - 1));
    EXPECT_EQ(counters.failures, 0u);
  }

  /// The masks that dropout draws in `trace`, by the number of the generator.
  static std::map<unsigned, ValueId> masksOf(const Trace &trace) {
    std::map<unsigned, ValueId> masks;
    for (OpId id : trace.ops()) {
      const Op &op = trace.op(id);
      unsigned generator = 0;
      if (op.name() == "dropout" &&
          !trace.name(op.operand(1)).rsplit('_').second.getAsInteger(10, generator))
        masks[generator] = op.result(1);
    }
    return masks;
  }

  /// Both traces return their masks, too, after all else and in the order of generators.
  static void returnMasks(TracePair &pair) {
    for (Side side : {Side::Forward, Side::Backward}) {
      Trace &trace = pair.trace(side);
      const Op &ret = *trace.terminator();
      llvm::SmallVector<ValueId, 64> values(ret.operands().begin(), ret.operands().end());
      for (const auto &[generator, mask] : masksOf(trace))
        values.push_back(mask);
      trace.setOperands(ret.id(), values);
    }
  }

private:
  static void expectSame(llvm::ArrayRef<FreshSteps::Bytes> got,
                         llvm::ArrayRef<FreshSteps::Bytes> expected, const char *what) {
    ASSERT_GE(got.size(), expected.size());
    for (unsigned i = 0; i < expected.size(); ++i)
      EXPECT_EQ(got[i], expected[i]) << what << i;
  }
};

// Steps whose backward computes activations again give, replayed, bit for bit the loss and the
// gradients of eager launches, and of the steps that save all.
TEST_P(CheckpointTracesTest, EqualsTheStepsThatSaveAll) {
  Sample checkpoint = load("gpt_tiny_checkpoint"), saving = load("gpt_tiny");
  FreshSteps eager = steps(checkpoint, saving.values, /*isEager=*/true),
             replayed = steps(checkpoint, saving.values, /*isEager=*/false),
             plain = steps(saving, saving.values, /*isEager=*/true);
  EXPECT_LT(replayed.program().memory(Side::Forward).slab,
            plain.program().memory(Side::Forward).slab);
  std::set<FreshSteps::Bytes> losses;
  for (unsigned step = 0; step < numSteps; ++step) {
    SCOPED_TRACE(step);
    FreshSteps::Outcome expected = eager.step(step);
    ASSERT_EQ(expected.results.size(), 1u);
    losses.insert(expected.results.front());
    expectSame(replayed.step(step), expected);
    expectSame(plain.step(step), expected);
  }
  EXPECT_EQ(losses.size(), numSteps) << "the inputs are fresh";
  expectReplayed(replayed.program());
}

// So it is with dropout: the backward draws the forward's masks again, in every step others, which
// are those of the steps without recomputation that draw from one generator with the same seed.
TEST_P(CheckpointTracesTest, DrawsTheForwardsMasksAgain) {
  Sample checkpoint = load("gpt_tiny_checkpoint_dropout"), saving = load("gpt_tiny_dropout");
  FreshSteps eager = steps(checkpoint, saving.values, /*isEager=*/true),
             replayed = steps(checkpoint, saving.values, /*isEager=*/false),
             plain = steps(saving, saving.values, /*isEager=*/true);
  returnMasks(checkpoint.pair);
  FreshSteps watched = steps(checkpoint, saving.values, /*isEager=*/false);
  std::vector<std::string> savedMasks;
  for (OpId id : saving.pair.forward().ops())
    if (const Op &op = saving.pair.forward().op(id); op.name() == "dropout")
      savedMasks.push_back(saving.pair.forward().name(op.result(1)).str());
  constexpr unsigned numMasks = 4, numGradients = 30;
  ASSERT_EQ(savedMasks.size(), numMasks);

  std::set<FreshSteps::Bytes> masks;
  for (unsigned step = 0; step < numSteps; ++step) {
    SCOPED_TRACE(step);
    FreshSteps::Outcome expected = plain.step(step), seen = watched.step(step);
    expectSame(eager.step(step), expected);
    expectSame(replayed.step(step), expected);
    expectSame(seen, expected);
    ASSERT_EQ(seen.results.size(), 1 + numMasks);
    ASSERT_EQ(seen.gradients.size(), numGradients + numMasks);
    for (unsigned i = 0; i < numMasks; ++i) {
      const FreshSteps::Bytes &mask = seen.results[1 + i];
      EXPECT_EQ(mask, seen.gradients[numGradients + i]) << "drawn again, mask " << i;
      EXPECT_EQ(mask, expected.masks[savedMasks[i]]) << "without recomputation, mask " << i;
      masks.insert(mask);
    }
  }
  EXPECT_EQ(masks.size(), numMasks * numSteps);
  expectReplayed(replayed.program());
}

// The masks of the backward come from the states that the forward was given, not from a copy of its
// masks: states that are overwritten in between give others.
TEST_P(CheckpointTracesTest, DrawsFromTheStatesThatAreSaved) {
  Sample checkpoint = load("gpt_tiny_checkpoint_dropout"), saving = load("gpt_tiny_dropout");
  returnMasks(checkpoint.pair);
  FreshSteps watched = steps(checkpoint, saving.values, /*isEager=*/false);
  for (unsigned step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    FreshSteps::Outcome seen;
    SavedState saved;
    watched.forward(step, seen, saved);
    watched.setStates(step + 100);
    watched.backward(step, seen, std::move(saved));
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_NE(seen.results[1 + i], seen.gradients[30 + i]) << i;
  }
}

} // namespace rondo
