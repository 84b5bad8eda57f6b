//===- LossScalingTesting.h - Steps with a scaled loss, replayed *- C++ -*-===//

#pragma once

#include "CallTesting.h"

#include "support/RandomValues.h"

namespace rondo {

/// A step of a linear layer, all in one region: gradients of the scaled loss, unscaled and clipped,
/// updates unless one is not finite, and the next scale. `foundInf` is what updates are told.
inline std::string lossScalingStep(llvm::StringRef foundInf = ", %found1") {
  return (R"(
trace @step(%x: f32[16, 8], %y: f32[16, 4], %lr: f64, %w: f32[4, 8] parameter,
            %b: f32[4] parameter, %mw: f32[4, 8] buffer, %vw: f32[4, 8] buffer,
            %mb: f32[4] buffer, %vb: f32[4] buffer, %step: i64[] buffer, %scale: f32[] buffer,
            %tracker: i32[] buffer) {
  %h: f32[16, 4] = linear(%x, %w, %b)
  %e: f32[16, 4] = sub(%h, %y)
  %squares: f32[16, 4] = mul(%e, %e)
  %loss: f32[] = mean(%squares)
  %d: f32[16, 4] = mul(%e, %scale)
  %dt: f32[4, 16; 1, 4] = permute(%d) {dims = [1, 0]}
  %gw: f32[4, 8] = matmul(%dt, %x)
  %gb: f32[4] = sum(%d) {dims = [0]}
  %found: f32[] = full() {dtype = f32, shape = [], value = 0.0}
  %inverse: f32[] = reciprocal(%scale)
  %found1: f32[], %gw1: f32[4, 8], %gb1: f32[4] = unscale_(%found, %inverse, %gw, %gb)
  %norm: f32[] = global_norm(%gw1, %gb1)
  %gw2: f32[4, 8], %gb2: f32[4] = clip_(%norm, %gw1, %gb1) {max_norm = 4.0}
  %finite: bool[] = eq(%found1) {scalar = 0.0}
  %step1: i64[] = add_(%step, %finite)
  %w1: f32[4, 8], %mw1: f32[4, 8], %vw1: f32[4, 8] = adam_(%w, %gw2, %mw, %vw, %step1, %lr)" +
          foundInf + R"()
  %b1: f32[4], %mb1: f32[4], %vb1: f32[4] = adam_(%b, %gb2, %mb, %vb, %step1, %lr)" +
          foundInf + R"()
  %scale1: f32[], %tracker1: i32[] = update_scale_(%scale, %tracker, %found1) {growth_interval = 40}
  return(%loss, %norm)
})")
      .str();
}

/// A program of lossScalingStep with all that it trains, and a stream of its own.
class ScaledTraining {
public:
  /// In the order of the arguments, after the data and the rate.
  enum StateIndex { Weight, Bias, FirstMoment, Step = 6, Scale, Tracker, NumStates };

  ScaledTraining(Program program, const DeviceRef &device)
      : program_(std::move(program)), stream_(cantFail(device->createStream())) {
    for (std::vector<int64_t> shape : {std::vector<int64_t>{4, 8}, {4}, {4, 8}, {4, 8}, {4}, {4}})
      states_.push_back(place(DType::F32, shape, std::vector<float>(countOf(shape))));
    states_.push_back(place(DType::I64, {}, std::vector<int64_t>{0}));
    states_.push_back(place(DType::F32, {}, std::vector<float>{1024}));
    states_.push_back(place(DType::I32, {}, std::vector<int32_t>{0}));
  }

  Program &program() { return program_; }

  /// Step `i`, with data and a rate of its own; the results.
  Results step(unsigned i, bool overflows) {
    std::vector<float> x = numbers(16 * 8, i), y(16 * 4);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < 4; ++column) // what the layer is to learn
        y[row * 4 + column] = x[row * 8 + column] - 2 * x[row * 8 + 7] + 0.5f;
    if (overflows)
      x[3] = INFINITY;
    std::vector<Value> inputs{place(DType::F32, {16, 8}, x), place(DType::F32, {16, 4}, y),
                              Value(0.1 / (1 + 0.01 * i))};
    inputs.insert(inputs.end(), states_.begin(), states_.end());
    Results results;
    cantFail(program_.forward(*stream_, inputs, results));
    return results;
  }

  std::vector<std::byte> state(StateIndex index) { return bytes(states_[index]); }
  std::vector<std::vector<std::byte>> states() {
    std::vector<std::vector<std::byte>> all;
    for (const Tensor &state : states_)
      all.push_back(bytes(state));
    return all;
  }
  double number(StateIndex index) { return number(states_[index]); }
  double number(const Value &value) { return doublesOf(onHost(*value.asTensor(), *stream_))[0]; }
  std::vector<std::byte> bytes(const Value &value) {
    return bytesOf(onHost(*value.asTensor(), *stream_));
  }

private:
  template <typename T>
  Tensor place(DType dtype, const std::vector<int64_t> &shape, const std::vector<T> &values) {
    Tensor tensor = cantFail(Tensor::empty(stream_->device().shared_from_this(), dtype, shape));
    cantFail(stream_->copy(tensor.data(), values.data(), values.size() * sizeof(T)));
    cantFail(stream_->synchronize());
    return tensor;
  }
  static std::vector<float> numbers(size_t n, uint64_t seed) {
    std::vector<double> values = randomValues(n, seed);
    return {values.begin(), values.end()};
  }

  Program program_;
  std::unique_ptr<Stream> stream_;
  std::vector<Tensor> states_;
};

class LossScalingFixture : public CallFixture {
protected:
  static constexpr unsigned overflowStep = 50;

  ScaledTraining training(std::vector<const Executor *> executors,
                          const std::string &text = lossScalingStep()) {
    ProgramOptions options = steadyOptions();
    options.poison = options.checkGraphs = true;
    return ScaledTraining(cantFail(compile(parse(text), device, executors,
                                           pipelineOf(smallRegions.str(), executors), options)),
                          device);
  }

  /// 100 replays give bit for bit what eager steps give, in one graph, captured once, though rate
  /// and step count change all the time and one step has gradients that are not finite: it changes
  /// the scale alone.
  void replayHundredSteps() {
    std::vector<std::unique_ptr<CountingExecutor>> counting;
    std::vector<const Executor *> executors;
    for (const Executor *executor : target.executors) {
      counting.push_back(std::make_unique<CountingExecutor>(*executor));
      executors.push_back(counting.back().get());
    }
    auto numEnqueues = [&] {
      uint64_t sum = 0;
      for (const std::unique_ptr<CountingExecutor> &executor : counting)
        sum += executor->numEnqueues();
      return sum;
    };
    ScaledTraining eager = training(target.executors), replayed = training(executors);
    eager.program().setEager(true);
    ASSERT_EQ(replayed.program().regions().size(), 1u);

    uint64_t enqueues = 0;
    double scale = 1024, firstLoss = 0, lastLoss = 0;
    int numSteps = 0, successes = 0, numClipped = 0;
    for (unsigned i = 0; i <= 100; ++i) {
      bool overflows = i == overflowStep;
      std::vector<std::vector<std::byte>> before = replayed.states();
      Results expected = eager.step(i, overflows), got = replayed.step(i, overflows);
      for (unsigned k : {0, 1})
        ASSERT_EQ(replayed.bytes(got[k]), eager.bytes(expected[k])) << k << ", step " << i;
      ASSERT_EQ(replayed.states(), eager.states()) << "step " << i;
      if (i == 0)
        enqueues = numEnqueues(); // run, and put into the graph
      EXPECT_EQ(numEnqueues(), enqueues) << "step " << i;

      successes = overflows ? 0 : successes + 1;
      numSteps += !overflows;
      scale *= overflows ? 0.5 : successes == 40 ? 2 : 1;
      successes %= 40;
      for (unsigned k = 0; k < ScaledTraining::Scale; ++k)
        EXPECT_EQ(replayed.states()[k] == before[k], overflows) << "state " << k << ", step " << i;
      EXPECT_EQ(replayed.number(ScaledTraining::Step), numSteps) << "step " << i;
      EXPECT_EQ(replayed.number(ScaledTraining::Scale), scale) << "step " << i;
      EXPECT_EQ(replayed.number(ScaledTraining::Tracker), successes) << "step " << i;
      numClipped += replayed.number(got[1]) > 4;
      lastLoss = replayed.number(got[0]);
      firstLoss = i == 0 ? lastLoss : firstLoss;
    }
    EXPECT_EQ(scale, 2048) << "grown, halved and grown";
    EXPECT_GT(numClipped, 10);
    EXPECT_LT(numClipped, 100);
    EXPECT_LT(lastLoss, firstLoss / 10);

    CacheCounters counters = replayed.program().counters();
    EXPECT_EQ(counters.captures, 1u);
    EXPECT_EQ(counters.recaptures, 0u);
    EXPECT_EQ(counters.replays, 100u);
    EXPECT_EQ(counters.failures, 0u);
    unsigned numGraphs = 0;
    replayed.program().forEachGraph([&](Graph &, GraphExec &) { ++numGraphs; });
    EXPECT_EQ(numGraphs, 1u);
    EXPECT_EQ(eager.program().counters().replays, 0u);
  }

  /// Updates that are not told of such gradients make parameters that are not finite.
  void spoilWithoutFlag() {
    ScaledTraining untold = training(target.executors, lossScalingStep(""));
    untold.step(0, /*overflows=*/false);
    untold.step(1, /*overflows=*/true);
    EXPECT_TRUE(std::isnan(untold.number(ScaledTraining::Weight)));
    EXPECT_EQ(untold.number(ScaledTraining::Scale), 512);
  }
};

} // namespace rondo
