//===- CUDACasesTest.cpp - What went wrong elsewhere, on a GPU ------------===//
//
// Faults that others have met in CUDA graphs, and input that is bad on a GPU only. Every test says
// which kind it stands for.
//
//===----------------------------------------------------------------------===//

#include "CUDAProgramTesting.h"

#include "support/DeviceTesting.h"

#include "rondo/ir/TraceBuilder.h"

#include <gmock/gmock.h>

using namespace rondo;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

class CUDACasesTest : public OnCUDA<CallFixture> {
protected:
  /// Elements that differ, between -1 and 1.
  Tensor mixed(int64_t rows, int64_t columns) {
    std::vector<float> values(rows * columns);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = float(i * 7919 % 2003) / 1001 - 1;
    return tensorOf(device, values, {rows, columns});
  }
};

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

// 15: two programs whose products need a workspace; one is destroyed, with or without the transform
// they share, and the other replays as before, whatever becomes of the memory that came back.
TEST_F(CUDACasesTest, Case15Workspaces) {
  constexpr llvm::StringLiteral text = R"(
trace @f(%x: f32[64, 4096] static, %w: f32[4096, 512] static) {
  %a: f32[64, 512] = mm(%x, %w)
  %y: f32[64, 512] = add(%a, %a)
  return(%y)
})";
  for (bool isShared : {true, false}) {
    SCOPED_TRACE(isShared);
    CUDAGraphTransform a(graphOptions()), b(graphOptions());
    Program kept = compileWith(a, text);
    std::optional<Program> gone = compileWith(isShared ? a : b, text);
    std::vector<Value> inputs = {mixed(64, 4096), mixed(4096, 512)};
    forward(kept, inputs);
    std::vector<double> expected = numbersOn(forward(kept, inputs)[0]);
    for (unsigned i = 0; i < 3; ++i)
      EXPECT_EQ(numbersOn(forward(*gone, inputs)[0]), expected);
    EXPECT_EQ(kept.regions().size(), 1u) << "the product is in it";
    EXPECT_GT(kept.memory(Side::Forward).arena, 0u) << "no workspace; %a lies where %y does";

    gone.reset();
    std::vector<Tensor> others; // where the other's memory was
    for (unsigned i = 0; i < 8; ++i) {
      others.push_back(cantFail(Tensor::empty(device, DType::F32, {4 << 20})));
      cantFail(stream->fill(others.back().data(), 0xff, others.back().extentBytes()));
    }
    uint64_t replays = kept.counters().replays;
    for (unsigned i = 0; i < 3; ++i)
      EXPECT_EQ(numbersOn(forward(kept, inputs)[0]), expected);
    EXPECT_EQ(kept.counters().replays, replays + 3);
  }
}

//===----------------------------------------------------------------------===//
// Captures that fail
//===----------------------------------------------------------------------===//

/// Runs `test.copy`, and does what cannot be captured if that is asked for.
class FailingExecutor : public Executor {
public:
  enum class Fault { None, Synchronises, Allocates, Fails };

  llvm::StringRef name() const override { return "test"; }
  ClaimAnswer claim(const Trace &trace, OpId op) const override {
    return trace.op(op).name() == "test.copy" ? ClaimAnswer::accept() : ClaimAnswer::decline("no");
  }
  llvm::Expected<KernelRef> compile(const Trace &, OpId, const DeviceRef &) const override {
    return std::make_shared<CopyKernel>(*this);
  }
  Fault fault = Fault::None;

private:
  class CopyKernel : public Kernel {
  public:
    explicit CopyKernel(const FailingExecutor &executor) : executor_(executor) {}
    llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
      return sink.call([&](Stream &stream) -> llvm::Error {
        if (llvm::Error error =
                stream.copy(args.results[0].address, args.operands[0].address, 8 * sizeof(float)))
          return error;
        return stream.captureStatus() == CaptureStatus::None ? llvm::Error::success()
                                                             : executor_.misbehave(stream);
      });
    }

  private:
    const FailingExecutor &executor_;
  };

  llvm::Error misbehave(Stream &stream) const {
    switch (fault) {
    case Fault::None:
      return llvm::Error::success();
    case Fault::Synchronises:
      return stream.synchronize();
    case Fault::Allocates: {
      llvm::Expected<void *> memory = stream.device().allocate(64);
      if (!memory)
        return memory.takeError();
      stream.device().deallocate(*memory, 64);
      return llvm::Error::success();
    }
    case Fault::Fails:
      break;
    }
    llvm::consumeError(stream.synchronize()); // a second error, which is not the one to report
    return makeError("the first thing that went wrong");
  }
};

class CUDACaptureTest : public CUDACasesTest {
protected:
  void SetUp() override {
    CUDACasesTest::SetUp();
    if (!device)
      return;
    OpSpec spec;
    spec.name = "test.copy";
    spec.operands = {{"x"}};
    spec.results = {"out"};
    spec.infer = [](const OpContext &op, llvm::SmallVectorImpl<Type> &results) {
      results.push_back(*op.operand(0));
      return llvm::Error::success();
    };
    cantFail(registry.registerOp(spec));
    target.executors.insert(target.executors.begin(), &failing);
  }

  FailingExecutor failing;
};

// 16: an error in the middle of a capture. The first one is reported, with the op; nothing of
// CUDA's is left behind, memory is at the level before, and the next capture works.
TEST_F(CUDACaptureTest, Case16ErrorInCapture) {
  using Fault = FailingExecutor::Fault;
  for (auto [fault, says] : {std::pair(Fault::Synchronises, "not capturable"),
                             std::pair(Fault::Allocates, "not capturable"),
                             std::pair(Fault::Fails, "the first thing that went wrong")}) {
    SCOPED_TRACE(says);
    ProgramOptions options = steadyOptions();
    options.onCaptureFailure = CaptureFailure::Error;
    Program program = compileText(R"(
trace @f(%x: f32[8]) {
  %a: f32[8] = neg(%x)
  %b: f32[8] = test.copy(%a) module "block.7"
  %y: f32[8] = add(%b, %x) {alpha = 3}
  return(%y)
})",
                                  options);
    std::vector<Value> x = {filled(device, 2, 8)};
    program.setEager(true);
    EXPECT_EQ(numbersOn(forward(program, x)[0]), std::vector<double>(8, 4));
    program.setEager(false);

    failing.fault = fault;
    uint64_t bytes = device->memoryUse().bytes;
    size_t free = 0;
    for (unsigned call = 0; call < 20; ++call) {
      Results results;
      EXPECT_THAT(textOf(program.forward(*stream, x, results)),
                  AllOf(HasSubstr("'test.copy' op of module block.7"),
                        HasSubstr("cannot be captured"), HasSubstr(says)));
      EXPECT_TRUE(results.empty());
      EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
      EXPECT_EQ(device->memoryUse().bytes, bytes);
      cantFail(stream->synchronize());
      if (call == 0)
        free = freeCUDABytes();
    }
    EXPECT_GE(freeCUDABytes(), free);
    EXPECT_EQ(program.counters().entries, 0u);

    failing.fault = Fault::None;
    for (unsigned call = 0; call < 3; ++call)
      EXPECT_EQ(numbersOn(forward(program, x)[0]), std::vector<double>(8, 4));
    EXPECT_EQ(program.counters().captures, 1u);
    EXPECT_EQ(program.counters().replays, 2u);
  }
}

//===----------------------------------------------------------------------===//
// Bad input
//===----------------------------------------------------------------------===//

// Tensors of the host given to a program of the GPU: an error that names the argument, both devices
// and the way out; the right ones work afterwards.
TEST_F(CUDACasesTest, HostTensors) {
  Program program = compileText("trace @f(%x: f32[8]) {\n%y: f32[8] = neg(%x)\nreturn(%y)\n}");
  DeviceRef hostDevice = createHostDevice();
  for (unsigned call = 0; call < 3; ++call) {
    Results results;
    EXPECT_THAT(textOf(program.forward(*stream, {filled(hostDevice, 1, 8)}, results)),
                AllOf(HasSubstr("argument #0 '%x'"), HasSubstr("expected a tensor on cuda:0"),
                      HasSubstr("got one on host"), HasSubstr("copyTo")));
    EXPECT_EQ(numbersOn(forward(program, {filled(device, 1, 8)})[0]), std::vector<double>(8, -1));
  }
  std::unique_ptr<Stream> ofHost = cantFail(hostDevice->createStream());
  Results results;
  EXPECT_THAT(textOf(program.forward(*ofHost, {filled(device, 1, 8)}, results)),
              AllOf(HasSubstr("the stream is of device host"), HasSubstr("cuda:0")));
}

// An op that no executor has a kernel for: an error that says where it is and what each answered.
TEST_F(CUDACasesTest, NoKernel) {
  Sample sample = cantFail(loadSample("convnet", registry, placementOn(device->device())));
  llvm::Expected<Program> program = compile(std::move(sample.pair), device, target.executors,
                                            pipelineOf(usualPipeline.str(), target.executors));
  ASSERT_FALSE(bool(program));
  EXPECT_THAT(llvm::toString(program.takeError()),
              AllOf(HasSubstr("no claim source accepts 'convolution' op"),
                    HasSubstr("'cuda' answers"), HasSubstr("'host' answers")));
}

// A dtype that no kernel computes with: the error names it and says what to do.
TEST_F(CUDACasesTest, NoKernelForDType) {
  TraceBuilder builder(registry);
  TensorType type(DType::F8E4M3, {8}, device->device());
  ValueId x = builder.argument("x", type);
  builder.returnValues({builder.op("mul", {x, x})});
  llvm::Expected<Program> program =
      compile(TracePair(cantFail(std::move(builder).finish())), device, target.executors,
              pipelineOf(usualPipeline.str(), target.executors));
  ASSERT_FALSE(bool(program));
  EXPECT_THAT(llvm::toString(program.takeError()),
              AllOf(HasSubstr("'mul' op"), HasSubstr("has no CUDA kernel for dtype f8e4m3: cast to "
                                                     "f16 or bf16 before")));
}

// Without memory for its arena a call fails with the kind of error that says so; when there is some
// again, the next one works.
TEST_F(CUDACasesTest, OutOfMemory) {
  Program program = compileText(R"(
trace @f(%x: f32[8]) {
  %a: f32[536870912] = full() {device = host, dtype = f32, shape = [536870912], value = 0}
  %b: f32[] = sum(%a)
  %y: f32[8] = add(%x, %b)
  return(%y)
})");
  std::vector<Value> x = {filled(device, 1, 8)};
  std::vector<std::pair<void *, size_t>> ballast;
  for (size_t bytes = size_t(1) << 37; bytes >= size_t(1) << 28; bytes /= 2) {
    for (llvm::Expected<void *> data = device->allocate(bytes);; data = device->allocate(bytes)) {
      if (!data) {
        EXPECT_EQ(outcome(data.takeError()), "out of memory");
        break;
      }
      ballast.emplace_back(*data, bytes);
    }
  }
  EXPECT_FALSE(ballast.empty());
  for (unsigned call = 0; call < 2; ++call) {
    Results results;
    EXPECT_EQ(outcome(program.forward(*stream, x, results)), "out of memory");
    EXPECT_TRUE(results.empty());
  }
  for (auto [data, bytes] : ballast)
    device->deallocate(data, bytes);
  for (unsigned call = 0; call < 3; ++call)
    EXPECT_EQ(numbersOn(forward(program, x)[0]), std::vector<double>(8, 1));
}

} // namespace
