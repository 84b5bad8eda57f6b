//===- CUDARandomTest.cpp - Random numbers on a GPU -----------------------===//
//
// The words of the device function are those of cuRAND's device generator, and what ops make of
// them is distributed as it should be, and has the bits of the host.
//
//===----------------------------------------------------------------------===//

#include "CUDAFunctions.h"
#include "CUDATesting.h"
#include "TestKernels.h"

#include "support/DeviceTesting.h"
#include "support/OpStatistics.h"
#include "support/TensorTesting.h"

#include "rondo/cuda/CUDAExecutors.h"
#include "rondo/executors/Philox.h"

using namespace rondo;
using llvm::cantFail;

namespace {

struct Position {
  uint64_t seed, n;
  uint32_t plane;
};

/// What `symbol`, a test kernel, draws from `count` numbers on from `position`.
std::vector<uint32_t> wordsOf(const DeviceRef &device, const void *symbol, Position position,
                              uint32_t count) {
  const void *function = cantFail(cuda::loadFunction(*device, symbol));
  StorageRef memory = cantFail(Storage::allocate(device, count * sizeof(uint32_t)));
  std::unique_ptr<Stream> stream = cantFail(device->createStream());
  PackedLaunch packed(function, position.seed, position.n, position.plane, count, memory->data());
  KernelLaunch launch = packed;
  launch.grid = {(count + 255) / 256, 1, 1};
  launch.block = {256, 1, 1};
  cantFail(stream->launch(launch));
  std::vector<uint32_t> words(count);
  cantFail(stream->copy(words.data(), memory->data(), count * sizeof(uint32_t)));
  cantFail(stream->synchronize());
  return words;
}

// Number n of seed s is what cuRAND's Philox generator gives after curand_init(s, 0, n), and the
// word of plane p what it gives in subsequence p: on the device, and as the host computes it.
TEST(CUDAPhilox, WordsAreThoseOfCURAND) {
  DeviceRef device = cudaTestDevice();
  if (HasFatalFailure())
    return;
  if (!device)
    GTEST_SKIP() << "no device";
  CUDATestKernels kernels = testKernelSymbols();
  if (!kernels.curandWords)
    GTEST_SKIP() << "the toolkit has no curand_kernel.h";
  constexpr uint64_t most = ~uint64_t(0);
  constexpr uint32_t count = 4096;
  for (Position position :
       {Position{0, 0, 0}, Position{1, 1, 0}, Position{42, 3, 0}, Position{most, 4, 0},
        Position{uint64_t(1) << 32, 0, 0}, Position{0x299f31d0a4093822, 0x243f6a8885a308d3, 0},
        Position{7, (uint64_t(1) << 34) - 2048, 0}, Position{7, uint64_t(1) << 34, 0},
        Position{9, most - 2 * count, 0}, Position{3, 5, 1}, Position{3, 5, 0xffffffff},
        Position{most, (uint64_t(1) << 34) - 5, 77}}) {
    SCOPED_TRACE(testing::Message() << position.seed << ' ' << position.n << ' ' << position.plane);
    std::vector<uint32_t> theirs = wordsOf(device, kernels.curandWords, position, count);
    EXPECT_EQ(wordsOf(device, kernels.philoxWords, position, count), theirs);
    std::vector<uint32_t> ours(count);
    for (uint32_t i = 0; i < count; ++i)
      ours[i] = philox::word(position.seed, position.n + i, position.plane);
    EXPECT_EQ(ours, theirs);
  }
}

/// The executor `cuda` alone on the first GPU.
OpTarget cudaTarget() {
  OpTarget target;
  target.device = cudaTestDevice();
  if (!target.device)
    return target;
  // Kept for all tests; they go with the process.
  static auto *executors = new std::vector<std::unique_ptr<Executor>>;
  llvm::Expected<std::vector<std::unique_ptr<Executor>>> made = createCUDAExecutors();
  if (!made) {
    ADD_FAILURE() << llvm::toString(made.takeError());
    return target;
  }
  for (std::unique_ptr<Executor> &executor : *made) {
    if (executor->name() == "cuda")
      target.executors.push_back(executor.get());
    executors->push_back(std::move(executor));
  }
  return target;
}

/// The bytes of the results of `op`, drawn on `target`.
std::vector<std::vector<std::byte>> bytesOn(const OpTarget &target, llvm::StringRef op,
                                            std::vector<OperandInit> operands, RNGState state,
                                            llvm::ArrayRef<AttributeInit> attributes) {
  operands.push_back(state);
  OpResults results = cantFail(runOpOn(target, op, operands, attributes));
  std::vector<std::vector<std::byte>> all;
  for (const Value &value : results.values) {
    const Tensor &tensor = *value.asTensor();
    all.emplace_back(tensor.data(), tensor.data() + tensor.extentBytes());
  }
  return all;
}

// The host and the GPU draw the same bits from one state, wherever in the stream.
TEST(CUDARandom, BitsAreThoseOfTheHost) {
  OpTarget target = cudaTarget();
  if (HasFatalFailure())
    return;
  if (!target.device)
    GTEST_SKIP() << "no device";
  using Ints = llvm::SmallVector<int64_t, 4>;
  constexpr int64_t count = 10007;
  std::vector<double> parts(count);
  for (int64_t i = 0; i < count; ++i)
    parts[i] = double(i) / count;
  struct Draws {
    const char *op;
    std::vector<OperandInit> operands;
    std::vector<AttributeInit> attributes;
  };
  Tensor floats = tensorOf(DType::F32, {count}, parts),
         halves = tensorOf(DType::BF16, {count}, parts),
         weights = tensorOf(DType::F64, {2, 4}, {1, 2, 0, 5, 8, 1, 4, 3});
  const Draws cases[] = {
      {"uniform", {}, {{"dtype", DType::F32}, {"shape", Ints{count}}}},
      {"uniform", {}, {{"dtype", DType::F16}, {"shape", Ints{count}}}},
      {"uniform", {}, {{"dtype", DType::F64}, {"shape", Ints{count}}}},
      {"normal", {}, {{"dtype", DType::F64}, {"shape", Ints{count}}}},
      {"normal", {}, {{"dtype", DType::F32}, {"shape", Ints{count}}, {"mean", 0.3}, {"std", 1.7}}},
      {"normal", {}, {{"dtype", DType::BF16}, {"shape", Ints{count}}}},
      {"randint", {}, {{"dtype", DType::I64}, {"shape", Ints{count}}, {"high", 1000}}},
      {"randint",
       {},
       {{"dtype", DType::I64}, {"shape", Ints{count}}, {"high", (int64_t(3) << 40) + 1}}},
      {"bernoulli", {floats}, {}},
      {"dropout", {floats}, {{"p", 0.5}}},
      {"dropout", {halves}, {{"p", 0.5}}},
      {"multinomial", {weights}, {{"n", 1000}, {"replacement", true}}},
      {"multinomial", {weights}, {{"n", 3}}}};
  for (const Draws &test : cases)
    for (RNGState state : {RNGState{5, 0}, RNGState{6, 7}, RNGState{~uint64_t(0), ~uint64_t(0) - 9},
                           RNGState{8, (uint64_t(1) << 34) - 100}})
      for (int64_t offset : {0, 1, 1021}) {
        SCOPED_TRACE(testing::Message() << test.op << ' ' << state.offset << ' ' << offset);
        std::vector<AttributeInit> attributes = test.attributes;
        attributes.push_back({"offset", offset});
        EXPECT_EQ(bytesOn(target, test.op, test.operands, state, attributes),
                  bytesOn(hostOpTarget(), test.op, test.operands, state, attributes));
      }
}

} // namespace

namespace rondo {
INSTANTIATE_TEST_SUITE_P(CUDA, OpStatistics,
                         testing::ValuesIn(opStatisticsTests({[] { return cudaTarget(); }})),
                         opStatisticsName);
} // namespace rondo
