//===- AccumulateTesting.h - Microbatches that are added up -----*- C++ -*-===//
//
// Bodies of tests of gradients that are accumulated in the caller's buffers, for any device.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CallTesting.h"

namespace rondo {

/// The pair after `accumulate-gradients`.
inline TracePair accumulating(TracePair pair, AccumulateGradientsOptions options = {}) {
  PassManager manager;
  manager.add(createAccumulateGradientsPass(std::move(options)));
  return cantFail(manager.run(std::move(pair)));
}
inline TracePair accumulatingWithFlag(TracePair pair) {
  AccumulateGradientsOptions options;
  options.firstMicrobatch = FirstMicrobatch::Flag;
  return accumulating(std::move(pair), std::move(options));
}

/// A program of a recorded trace whose backward may have gradient buffers and a flag, which are
/// made here: the buffers of 0xFF, which is nan, at first.
class MicrobatchPlayer {
public:
  MicrobatchPlayer(TracePair pair, const RecordedValues &values, const RunTarget &where,
                   ProgramOptions options = steadyOptions())
      : program_(cantFail(compile(std::move(pair), where.device, where.executors,
                                  pipelineOf(usualPipeline.str(), where.executors),
                                  std::move(options)))),
        device_(where.device), stream_(cantFail(where.device->createStream())) {
    cantFail(program_.generators()->set(*stream_, "default", {42, 1000}));
    inputs_ = cantFail(inputsOf(program_, Side::Forward, values, *stream_));
    for (const ParameterInfo &info : program_.inputs(Side::Backward))
      arguments_.push_back(newArgument(info, values));
    cantFail(stream_->synchronize());
  }

  Program &program() { return program_; }
  size_t numBuffers() const { return buffers_.size(); }
  bool isBuffer(const Value &result) const {
    return llvm::any_of(
        buffers_, [&](const Tensor &buffer) { return buffer.data() == result.asTensor()->data(); });
  }

  /// Forward and backward with tangents of `scale`; the results of the backward.
  Results step(float scale, bool isFirst) {
    for (const Tensor &tangent : tangents_)
      write(tangent, std::vector<float>(tangent.numElements(), scale).data());
    for (const Tensor &flag : flags_)
      write(flag, &isFirst);
    Results results;
    SavedState saved;
    cantFail(program_.forward(*stream_, inputs_, results, &saved));
    cantFail(program_.backward(*stream_, std::move(saved), arguments_, results));
    cantFail(stream_->synchronize());
    return results;
  }

  std::vector<std::byte> bytesOfResult(const Value &result) {
    return bytesOf(onHost(*result.asTensor(), *stream_));
  }
  std::vector<float> floatsOfResult(const Value &result) {
    std::vector<std::byte> bytes = bytesOfResult(result);
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }

private:
  Value newArgument(const ParameterInfo &info, const RecordedValues &values) {
    const TensorType &type = *info.type.asTensor();
    Tensor tensor = cantFail(Tensor::empty(device_, type));
    cantFail(stream_->fill(tensor.data(), 0xff, tensor.extentBytes()));
    if (type.dtype == DType::Bool)
      flags_.push_back(tensor);
    else if (values.input(Side::Backward, info.name))
      tangents_.push_back(tensor);
    else
      buffers_.push_back(tensor);
    return tensor;
  }

  void write(const Tensor &tensor, const void *from) {
    transfer(device_, tensor.data(), from, tensor.extentBytes());
  }

  Program program_;
  DeviceRef device_;
  std::unique_ptr<Stream> stream_;
  std::vector<Value> inputs_, arguments_;
  std::vector<Tensor> tangents_, flags_, buffers_;
};

/// Four microbatches a step of a recorded trace in f32, accumulated by replay, are bit for bit four
/// accumulated eagerly, and the sums, in order, of the fresh gradients; the first overwrites what
/// the buffers hold. One graph a side serves all. A gradient that is not accumulated is as ever.
inline void accumulateFourMicrobatches(const RunTarget &where, llvm::StringRef trace,
                                       llvm::StringRef preparation = "") {
  constexpr unsigned steps = 5, microbatches = 4;
  CoreRegistry registry;
  Sample sample = cantFail(
      loadSample(trace, registry, placementOn(where.device->device()) + preparation.str()));
  MicrobatchPlayer fresh(sample.pair.clone(), sample.values, where);
  fresh.program().setEager(true);
  TracePair pair = accumulatingWithFlag(std::move(sample.pair));
  MicrobatchPlayer eager(pair.clone(), sample.values, where);
  eager.program().setEager(true);
  ProgramOptions options = steadyOptions();
  options.poison = options.checkGraphs = true;
  MicrobatchPlayer replayed(std::move(pair), sample.values, where, options);

  std::map<unsigned, std::vector<float>> sums; // by result
  for (unsigned call = 0; call < steps * microbatches; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    bool isFirst = call % microbatches == 0;
    float scale = 0.5f * float(call % 7 + 1);
    Results gradients = fresh.step(scale, isFirst), expected = eager.step(scale, isFirst),
            got = replayed.step(scale, isFirst);
    unsigned numBuffers = 0;
    for (unsigned i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].isNone(), gradients[i].isNone()) << "result " << i;
      if (got[i].isNone())
        continue;
      std::vector<std::byte> bytes = replayed.bytesOfResult(got[i]);
      EXPECT_EQ(bytes, eager.bytesOfResult(expected[i])) << "result " << i;
      if (!replayed.isBuffer(got[i])) {
        EXPECT_EQ(bytes, fresh.bytesOfResult(gradients[i])) << "result " << i;
        continue;
      }
      ++numBuffers;
      std::vector<float> gradient = fresh.floatsOfResult(gradients[i]), &sum = sums[i];
      if (isFirst)
        sum = gradient;
      else
        for (size_t k = 0; k < sum.size(); ++k)
          sum[k] += gradient[k];
      EXPECT_EQ(replayed.floatsOfResult(got[i]), sum) << "result " << i;
    }
    EXPECT_EQ(numBuffers, replayed.numBuffers());
    ASSERT_GT(numBuffers, 0u);
  }
  CacheCounters counters = replayed.program().counters();
  EXPECT_EQ(counters.captures, 2u) << "one per side";
  EXPECT_EQ(counters.recaptures + counters.failures, 0u);
  EXPECT_EQ(counters.replays, 2u * (steps * microbatches - 1));
}

//===----------------------------------------------------------------------===//
// A small layer
//===----------------------------------------------------------------------===//

/// y = x * w + b, element by element; w2 is w under another name, and `unused` is what it says.
inline constexpr llvm::StringLiteral accumulatedLayer = R"(
pair @layer {
  forward @forward(%x: f32[8], %w: f32[8] parameter path "l.w", %b: f32[8] parameter path "l.b", %w2: f32[8] parameter, %unused: f32[8] parameter) {
    %p: f32[8] = mul(%x, %w)
    %y: f32[8] = add(%p, %b)
    return(%y, %x saved #0, %w saved #1)
  }
  backward @backward(%x: f32[8] saved #0, %w: f32[8] parameter saved #1, %t: f32[8]) {
    %gx: f32[8] = mul(%t, %w)
    %gw: f32[8] = mul(%t, %x)
    return(%gx, %gw, %t, %gw, none)
  }
})";

class AccumulateFixture : public CallFixture {
protected:
  /// With the buffers %grad_w, %grad_b and %grad_w2, and with a flag, if there is one.
  Program compileLayer(AccumulateGradientsOptions options = {}, ProgramOptions how = {}) {
    how.checkGraphs = true;
    return cantFail(compile(accumulating(parse(accumulatedLayer), std::move(options)), device,
                            target.executors, pipelineOf(smallRegions.str(), target.executors),
                            std::move(how)));
  }
  static AccumulateGradientsOptions withFlag() {
    AccumulateGradientsOptions options;
    options.firstMicrobatch = FirstMicrobatch::Flag;
    return options;
  }

  Tensor flag(bool value) {
    Tensor tensor = cantFail(Tensor::empty(device, DType::Bool, {}));
    transfer(device, tensor.data(), &value, 1);
    return tensor;
  }

  /// A microbatch with x and t of one number each; b and w are 0 and 2.
  Results step(Program &program, float x, float t, std::vector<Value> buffers) {
    Value zero = filled(device, 0, 8), two = filled(device, 2, 8);
    SavedState saved;
    forward(program, {filled(device, x, 8), two, zero, two, zero}, &saved);
    buffers.insert(buffers.begin(), filled(device, t, 8));
    return backward(program, std::move(saved), std::move(buffers));
  }
  double numberOf(const Value &value) {
    std::vector<double> numbers = numbersOn(value);
    EXPECT_EQ(numbers, std::vector<double>(8, numbers.front()));
    return numbers.front();
  }

  /// 11: microbatches without zeroing accumulate in the caller's buffers, which are the results;
  /// gradients that are not accumulated are the caller's own, one for each call.
  void accumulatesWithoutZeroing() {
    Program program = compileLayer();
    Tensor w = filled(device, 100, 8), b = filled(device, 200, 8), w2 = filled(device, 300, 8);
    std::vector<Value> held;
    double sumW = 0, sumB = 0;
    for (int i = 1; i <= 5; ++i) {
      Results results = step(program, float(i), float(2 * i), {w, b, w2});
      ASSERT_EQ(results.size(), 5u);
      sumW += 2 * i * i;
      sumB += 2 * i;
      EXPECT_EQ(results[1].asTensor()->data(), w.data());
      EXPECT_EQ(results[2].asTensor()->data(), b.data());
      EXPECT_EQ(results[3].asTensor()->data(), w2.data());
      EXPECT_TRUE(results[4].isNone());
      EXPECT_EQ(numberOf(w), 100 + sumW);
      EXPECT_EQ(numberOf(b), 200 + sumB);
      EXPECT_EQ(numberOf(w2), 300 + sumW) << "one value, two buffers";
      held.push_back(results[0]);
    }
    for (int i = 1; i <= 5; ++i)
      EXPECT_EQ(numberOf(held[i - 1]), 4 * i) << "no later call wrote to it";
    EXPECT_EQ(program.counters().captures, 2u);
    EXPECT_EQ(program.counters().replays, 8u);
  }

  /// Fresh gradients, of a backward that accumulates nothing, are the caller's own.
  void returnsFreshGradients() {
    Program program = compileText(accumulatedLayer);
    std::vector<Results> held;
    for (int i = 1; i <= 5; ++i)
      held.push_back(step(program, float(i), 1, {}));
    for (int i = 1; i <= 5; ++i)
      EXPECT_EQ(numberOf(held[i - 1][1]), i);
    EXPECT_EQ(program.counters().captures, 2u);
  }

  /// The flag decides in every call, whatever the buffers hold, and captures nothing anew; also
  /// when the buffers are others.
  void flagDecides() {
    Program program = compileLayer(withFlag());
    Tensor flags[] = {flag(false), flag(true)};
    for (bool isNew : {false, true}) {
      Tensor w = filled(device, NAN, 8), b = filled(device, INFINITY, 8), w2 = filled(device, 1, 8);
      double expected = 0;
      for (unsigned i = 0; i < 12; ++i) {
        bool isFirst = i % 4 == 0 || i == 6;
        Value first = isNew ? flag(isFirst) : flags[isFirst];
        step(program, float(i), 3, {w, b, w2, first});
        expected = isFirst ? 3 * i : expected + 3 * i;
        EXPECT_EQ(numberOf(w), expected);
        EXPECT_EQ(numberOf(w2), expected);
      }
      EXPECT_EQ(numberOf(b), 12);
    }
    EXPECT_EQ(program.counters().captures, 2u);
    EXPECT_EQ(program.counters().recaptures, 0u);
  }

  /// Which gradients accumulate is said by parameter.
  void someAccumulate() {
    AccumulateGradientsOptions options;
    options.isAccumulated = [](const GradientQuery &gradient) {
      return gradient.pair.forward().valuePath(gradient.argument) == "l.w";
    };
    Program program = compileLayer(std::move(options));
    ASSERT_EQ(program.inputs(Side::Backward).size(), 2u);
    EXPECT_EQ(program.inputs(Side::Backward)[1].name, "grad_w");
    EXPECT_EQ(program.inputs(Side::Backward)[1].path, "l.w");
    Tensor w = filled(device, 0, 8);
    for (int i = 1; i <= 4; ++i) {
      Results results = step(program, 1, float(i), {w});
      EXPECT_EQ(numberOf(w), i * (i + 1) / 2);
      EXPECT_EQ(numberOf(results[2]), i);
      EXPECT_EQ(numberOf(results[3]), i) << "the same value, fresh";
    }
  }
};

} // namespace rondo
