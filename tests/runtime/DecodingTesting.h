//===- DecodingTesting.h - Decoding with a cache -----------------*- C++ -*-===//
//
// A decoder whose caches are written in place and whose positions are on the device is captured
// once, and replays give the bits of eager calls.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "EveryDeviceTesting.h"

namespace rondo {

/// Keeps, by slot, the tokens of a sequence and how many they are; gives the sum of those so far.
/// Slot 4 is spare.
inline constexpr llvm::StringLiteral decodeStep = R"(
trace @decode(%table: f32[16, 8] parameter, %cache: f32[5, 64, 8] buffer, %lengths: i64[5] buffer,
              %tokens: i64[B], %slots: i64[B], %advance: i64[B]) {
  %x: f32[B, 8] = embedding(%table, %tokens)
  %now: i64[B] = index_select(%lengths, %slots) {dim = 0}
  %cache.1: f32[5, 64, 8] = index_put_(%cache, %x, %slots, %now)
  %lengths.1: i64[5] = index_add_(%lengths, %slots, %advance) {dim = 0}
  %rows: f32[B, 64, 8] = index_select(%cache.1, %slots) {dim = 0}
  %positions: i64[64] = arange() {dtype = i64, end = 64}
  %last: i64[B, 1] = reshape(%now) {shape = [B, 1]}
  %future: bool[B, 64] = gt(%positions, %last)
  %mask: bool[B, 64, 1] = reshape(%future) {shape = [B, 64, 1]}
  %seen: f32[B, 64, 8] = masked_fill(%rows, %mask) {scalar = 0}
  %sum: f32[B, 8] = sum(%seen) {dims = [1]}
  return(%sum)
}
)";

class DecodingTest : public EveryDeviceTest {
protected:
  /// Of bytes that are 0.
  Tensor zeros(DType dtype, llvm::ArrayRef<int64_t> shape) {
    Tensor tensor = cantFail(Tensor::empty(device, dtype, shape));
    cantFail(stream->fill(tensor.data(), 0, tensor.extentBytes()));
    cantFail(stream->synchronize());
    return tensor;
  }
  Tensor indices(llvm::ArrayRef<int64_t> values) {
    Tensor tensor = cantFail(Tensor::empty(device, DType::I64, {int64_t(values.size())}));
    transfer(device, tensor.data(), values.data(), values.size() * sizeof(int64_t));
    return tensor;
  }

  /// The values of two programs for equal arguments, bit by bit.
  void expectSame(llvm::ArrayRef<Value> values, llvm::ArrayRef<Value> expected) {
    ASSERT_EQ(values.size(), expected.size());
    for (unsigned i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i].asTensor()->shape(), expected[i].asTensor()->shape());
      EXPECT_EQ(bytesOf(onHost(*values[i].asTensor(), *stream)),
                bytesOf(onHost(*expected[i].asTensor(), *stream)));
    }
  }
};

// A hundred steps of a batch that changes equal eager steps of its size bit for bit; the cache is
// written in place and never copied, positions advance on the device, and each bucket has a graph.
TEST_P(DecodingTest, WithBuckets) {
  ProgramOptions options = poisoned();
  options.buckets["B"] = {1, 2, 4};
  options.padding["slots"] = 4;
  Program program = compileText(decodeStep, options), exact = compileText(decodeStep);
  exact.setEager(true);
  Tensor table = iota(0.25f, {16, 8});
  Tensor caches[2], lengths[2];
  for (unsigned i : {0, 1}) {
    caches[i] = zeros(DType::F32, {5, 64, 8});
    lengths[i] = zeros(DType::I64, {5});
  }
  const std::vector<int64_t> batches[] = {{0, 1, 2}, {3}, {3, 0, 2, 1}, {2, 1}};
  for (unsigned step = 0; step < 100; ++step) {
    const std::vector<int64_t> &slots = batches[step % 4];
    std::vector<int64_t> tokens, ones(slots.size(), 1);
    for (int64_t slot : slots)
      tokens.push_back((7 * step + 3 * slot) % 16);
    Results results[2];
    for (unsigned i : {0, 1})
      results[i] = forward(i == 0 ? program : exact, {table, caches[i], lengths[i], indices(tokens),
                                                      indices(slots), indices(ones)});
    expectSame(results[0], results[1]);
  }
  // Padding went to the spare slot, and nowhere else.
  EXPECT_EQ(numbersOn(lengths[0]), numbersOn(lengths[1]));
  std::vector<double> cache = numbersOn(caches[0]), expected = numbersOn(caches[1]);
  EXPECT_TRUE(std::equal(cache.begin(), cache.begin() + 4 * 64 * 8, expected.begin()));
  EXPECT_NE(cache, expected);
  CacheCounters counters = program.counters();
  EXPECT_EQ(counters.entries, 3u);
  EXPECT_EQ(counters.captures, 3u);
  EXPECT_EQ(counters.replays, 97u);
  EXPECT_EQ(counters.recaptures, 0u);
  // Three rows of three i64 and one of padding, every fourth step.
  EXPECT_EQ(program.paddedBytes(), 25 * 3 * 4 * sizeof(int64_t));
}

// A hundred steps of a recorded decoder, its caches in place and its position a tensor on the
// device, equal eager steps bit for bit: one graph, captured once.
TEST_P(DecodingTest, Recorded) {
  Sample sample = cantFail(loadSample("decode_tiny", registry, placementOn(device->device())));
  std::optional<Program> programs[2];
  std::vector<Value> inputs[2];
  for (unsigned i : {0, 1}) {
    programs[i] = cantFail(compile(sample.pair.clone(), device, target.executors,
                                   pipelineOf(usualPipeline.str(), target.executors)));
    inputs[i] = cantFail(inputsOf(*programs[i], Side::Forward, sample.values, *stream));
  }
  programs[1]->setEager(true);
  for (int64_t step = 0; step < 100; ++step) {
    Results results[2];
    for (unsigned i : {0, 1}) {
      inputs[i][1] = indices({step % 61, (5 * step + 2) % 61});
      inputs[i][3] = indices({step % 16});
      results[i] = forward(*programs[i], inputs[i]);
    }
    expectSame(results[0], results[1]);
    EXPECT_THAT(numbersOn(results[0][0]), testing::Each(testing::Not(testing::IsNan())));
  }
  for (unsigned cache : {2, 6})
    expectSame(inputs[0][cache], inputs[1][cache]);
  EXPECT_EQ(programs[0]->counters().captures, programs[0]->counters().entries);
  EXPECT_EQ(programs[0]->counters().entries, programs[0]->regions().size());
  EXPECT_EQ(programs[0]->counters().recaptures, 0u);
}

} // namespace rondo
