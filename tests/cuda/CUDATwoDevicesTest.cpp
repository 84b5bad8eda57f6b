//===- CUDATwoDevicesTest.cpp - Programs where there is a second GPU ------===//

#include "CUDAProgramTesting.h"

#include <gmock/gmock.h>

using namespace rondo;
using testing::HasSubstr;

namespace {

/// Skipped where there are fewer than two GPUs. The first one is current all the time.
class CUDATwoDevicesTest : public testing::Test {
protected:
  void SetUp() override {
    DeviceRef first = cudaTestDevice();
    if (!first)
      GTEST_SKIP() << "no device";
    if (cantFail(countCUDADevices()) < 2)
      GTEST_SKIP() << "there is one GPU, two are needed";
    executors.emplace();
    devices = {first, cantFail(createCUDADevice(1))};
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  }
  void TearDown() override {
    if (devices.empty())
      return;
    int current = 0;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0) << "nobody changes which device is current";
  }

  Program compileText(llvm::StringRef text, llvm::ArrayRef<DeviceRef> where) {
    ProgramOptions options = steadyOptions();
    options.poison = options.checkGraphs = true;
    return cantFail(compile(cantFail(parsePair(text, "test", registry)), where, executors->list(),
                            pipelineOf(smallRegions.str(), executors->list()), options));
  }
  std::vector<double> numbersOf(unsigned device, const Value &value) const {
    std::unique_ptr<Stream> stream = cantFail(devices[device]->createStream());
    return doublesOf(onHost(*value.asTensor(), *stream));
  }

  CoreRegistry registry;
  std::optional<CUDATestExecutors> executors;
  std::vector<DeviceRef> devices;
};

constexpr llvm::StringLiteral onTheSecond = R"(
trace @f(%x: f32[8, 8]@cuda:1, %w: f32[8, 8]@cuda:1 parameter) {
  %a: f32[8, 8]@cuda:1 = matmul(%x, %w)
  %b: f32[8, 8]@cuda:1 = add(%a, %x)
  %y: f32[8, 8]@cuda:1 = neg(%b)
  return(%y)
})";

Tensor matrixOf(const DeviceRef &device, float value) {
  return tensorOf(device, std::vector<float>(64, value), {8, 8});
}

// A program of the second GPU is captured and replayed there while the first is current: its graph
// is not empty, and its results are right.
TEST_F(CUDATwoDevicesTest, TheOtherIsCurrent) {
  Program program = compileText(onTheSecond, devices[1]);
  std::unique_ptr<Stream> stream = cantFail(devices[1]->createStream());
  Tensor w = matrixOf(devices[1], 2);
  for (unsigned i = 0; i < 10; ++i) {
    Results results;
    cantFail(program.forward(*stream, {matrixOf(devices[1], float(i)), w}, results));
    cantFail(stream->synchronize());
    EXPECT_EQ(numbersOf(1, results[0]), std::vector<double>(64, -17.0 * i));
    EXPECT_EQ(results[0].asTensor()->device(), devices[1]->device());
  }
  EXPECT_EQ(program.counters().captures, 1u);
  EXPECT_EQ(program.counters().replays, 9u);
  program.forEachGraph([](Graph &graph, GraphExec &) { EXPECT_GE(graph.numNodes(), 3u); });
}

// Tensors and streams of the other GPU are refused before anything is launched, by an error that
// names what was given.
TEST_F(CUDATwoDevicesTest, NeverMix) {
  Program program = compileText(onTheSecond, devices[1]);
  std::unique_ptr<Stream> first = cantFail(devices[0]->createStream()),
                          second = cantFail(devices[1]->createStream());
  Tensor w = matrixOf(devices[1], 2);
  Results results;
  std::string text = textOf(program.forward(*second, {matrixOf(devices[0], 1), w}, results));
  EXPECT_THAT(text, HasSubstr("argument #0 '%x'"));
  EXPECT_THAT(text, HasSubstr("cuda:0"));
  text = textOf(program.forward(*first, {matrixOf(devices[1], 1), w}, results));
  EXPECT_THAT(text, HasSubstr("the stream is of device cuda:0"));
  EXPECT_TRUE(results.empty());
  EXPECT_EQ(program.counters().captures, 0u);
  cantFail(program.forward(*second, {matrixOf(devices[1], 1), w}, results));
  cantFail(second->synchronize());
  EXPECT_EQ(numbersOf(1, results[0]), std::vector<double>(64, -17));
}

// A stream of one GPU cannot be borrowed for the other.
TEST_F(CUDATwoDevicesTest, BorrowedStream) {
  cudaStream_t raw = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking), cudaSuccess);
  llvm::Expected<std::unique_ptr<Stream>> stream = borrowCUDAStream(devices[1], raw);
  EXPECT_FALSE(bool(stream));
  llvm::Error error = stream.takeError();
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::InvalidArgument);
  llvm::consumeError(std::move(error));
  EXPECT_EQ(cudaStreamDestroy(raw), cudaSuccess);
}

// No executor copies from one GPU to the other: that is an error when the trace is compiled, which
// names the op and says what to do.
TEST_F(CUDATwoDevicesTest, FromOneToTheOther) {
  llvm::Expected<Program> program =
      compile(cantFail(parsePair(R"(
trace @f(%x: f32[8]@cuda:0) {
  %a: f32[8]@cuda:0 = neg(%x)
  %y: f32[8]@cuda:1 = to_device(%a) {device = cuda:1}
  return(%y)
})",
                                 "test", registry)),
              devices, executors->list(), pipelineOf(smallRegions.str(), executors->list()));
  ASSERT_FALSE(bool(program));
  std::string text = llvm::toString(program.takeError());
  EXPECT_THAT(text, HasSubstr("'to_device' op"));
  EXPECT_THAT(text, HasSubstr("between two GPUs copy to the host first"));
}

// A program of each GPU in turn, with one transform's executors: neither's graphs are the other's.
TEST_F(CUDATwoDevicesTest, SideBySide) {
  std::string text = onTheSecond.str(), first = text;
  for (size_t at; (at = first.find("cuda:1")) != std::string::npos;)
    first.replace(at, 6, "cuda:0");
  Program programs[] = {compileText(first, devices[0]), compileText(text, devices[1])};
  std::unique_ptr<Stream> streams[] = {cantFail(devices[0]->createStream()),
                                       cantFail(devices[1]->createStream())};
  Tensor w[] = {matrixOf(devices[0], 3), matrixOf(devices[1], 5)};
  for (unsigned i = 0; i < 10; ++i) {
    Results results[2];
    for (unsigned k : {0, 1})
      cantFail(
          programs[k].forward(*streams[k], {matrixOf(devices[k], float(i)), w[k]}, results[k]));
    for (unsigned k : {0, 1}) {
      cantFail(streams[k]->synchronize());
      EXPECT_EQ(numbersOf(k, results[k][0]), std::vector<double>(64, k ? -41.0 * i : -25.0 * i));
    }
  }
  for (Program &program : programs) {
    EXPECT_EQ(program.counters().captures, 1u);
    EXPECT_EQ(program.counters().replays, 9u);
  }
}

} // namespace
