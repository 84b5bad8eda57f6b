//===- CuDNNExecutorTest.cpp - Attention by cuDNN -------------------------===//
//
// Which attentions are described, and that the executor is left out where there is no library: none
// of it needs a GPU or the library. At the end what cuDNN takes is compared with the host, eagerly
// and replayed.
//
//===----------------------------------------------------------------------===//

#include "AttentionSettings.h"
#include "CUDATesting.h"
#include "CUDATraceTesting.h"
#include "FusedAttention.h"
#include "ValueAlignment.h"

#include "../runtime/TraceTesting.h"

#include "support/TensorTesting.h"

#include "rondo/cuda/CUDAExecutors.h"
#include "rondo/executors/ErrorText.h"

#include "llvm/ADT/ScopeExit.h"

#include <gmock/gmock.h>

#include <chrono>

using namespace rondo;
using namespace rondo::cuda;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

class CuDNNExecutorTest : public testing::Test {
protected:
  Trace parse(std::string text, llvm::StringRef dtype = "bf16") const {
    return parseOnCUDA(std::move(text), dtype, registry);
  }
  Trace parseOp(const std::string &arguments, const std::string &op, llvm::StringRef dtype) const {
    return parseOpOnCUDA(arguments, op, dtype, registry);
  }

  llvm::Expected<FusedAttention> describe(const std::string &arguments, const std::string &op,
                                          llvm::StringRef dtype = "bf16") const {
    Trace trace = parseOp(arguments, op, dtype);
    return describeFusedAttention(trace, trace.ops().front());
  }
  /// Empty if it is a fused attention.
  std::string why(const std::string &arguments, const std::string &op,
                  llvm::StringRef dtype = "bf16") const {
    llvm::Expected<FusedAttention> attention = describe(arguments, op, dtype);
    return attention ? "" : errorText(attention.takeError());
  }

  CoreRegistry registry;
};

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

const char *const forwardInputs = "%q: T[2, 3, 5, 16]$, %k: T[2, 3, 7, 16]$, %v: T[2, 3, 7, 24]$";
const char *const forward =
    "%y: T[2, 3, 5, 24]$, %l: f32[2, 3, 5]$ = scaled_dot_product_attention(%q, %k, %v)";
const char *const backwardInputs =
    "%g: T[2, 3, 5, 24]$, %q: T[2, 3, 5, 16]$, %k: T[2, 3, 7, 16]$, %v: T[2, 3, 7, 24]$, "
    "%y: T[2, 3, 5, 24]$, %l: f32[2, 3, 5]$";
const char *const backward = "%a: T[2, 3, 5, 16]$, %b: T[2, 3, 7, 16]$, %c: T[2, 3, 7, 24]$ = "
                             "scaled_dot_product_attention_backward(%g, %q, %k, %v, %y, %l)";

/// `text` with the first `from` replaced.
std::string with(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Forward and backward in both dtypes of 16 bits are described.
TEST_F(CuDNNExecutorTest, DescribesAttention) {
  for (const char *dtype : {"bf16", "f16"}) {
    SCOPED_TRACE(dtype);
    llvm::Expected<FusedAttention> attention =
        describe(forwardInputs, std::string(forward) + " {causal = true, scale = 0.5}", dtype);
    ASSERT_TRUE(bool(attention)) << llvm::toString(attention.takeError());
    EXPECT_FALSE(attention->isBackward);
    EXPECT_TRUE(attention->causal);
    EXPECT_EQ(attention->scale, 0.5f);
    EXPECT_EQ(attention->batches(), 2);
    EXPECT_EQ(attention->heads(), 3);
    EXPECT_EQ(attention->queries(), 5);
    EXPECT_EQ(attention->keys(), 7);
    EXPECT_THAT(attention->tensor(attentionOut).shape, ElementsAre(2, 3, 5, 24));
    EXPECT_TRUE(attention->tensor(attentionOut).isResult);
    EXPECT_THAT(attention->tensor(attentionSums).shape, ElementsAre(2, 3, 5, 1));
    EXPECT_THAT(attention->tensor(attentionSums).strides, ElementsAre(15, 5, 1, 1));

    attention = describe(backwardInputs, backward, dtype);
    ASSERT_TRUE(bool(attention)) << llvm::toString(attention.takeError());
    EXPECT_TRUE(attention->isBackward);
    EXPECT_FALSE(attention->causal);
    EXPECT_EQ(attention->scale, 0.25f) << "1 / sqrt(16)";
    EXPECT_EQ(attention->tensor(attentionQueries).index, 1u);
    EXPECT_EQ(attention->tensor(attentionSums).index, 5u);
    EXPECT_FALSE(attention->tensor(attentionOut).isResult);
    EXPECT_THAT(attention->tensor(attentionGradValues).shape, ElementsAre(2, 3, 7, 24));
  }
}

// Fewer dimensions get sizes of 1 in front; what a stride of such a one is does not matter.
TEST_F(CuDNNExecutorTest, FillsUpDimensions) {
  llvm::Expected<FusedAttention> attention =
      describe("%q: T[1, 5, 16; 8, 48, 1]$, %k: T[1, 7, 16]$, %v: T[1, 7, 16]$",
               "%y: T[1, 5, 16]$, %l: f32[1, 5]$ = scaled_dot_product_attention(%q, %k, %v)");
  ASSERT_TRUE(bool(attention)) << llvm::toString(attention.takeError());
  EXPECT_THAT(attention->tensor(attentionQueries).shape, ElementsAre(1, 1, 5, 16));
  EXPECT_THAT(attention->tensor(attentionQueries).strides, ElementsAre(80, 80, 48, 1));
  EXPECT_EQ(why("%q: T[5, 16]$, %k: T[7, 16]$, %v: T[7, 16]$",
                "%y: T[5, 16]$, %l: f32[5, 1]$ = scaled_dot_product_attention(%q, %k, %v) "
                "{logsumexp_shape = [5, 1]}"),
            "");
}

// Heads that lie beside each other are taken as they are.
TEST_F(CuDNNExecutorTest, TakesInterleavedHeads) {
  llvm::Expected<FusedAttention> attention = describe(
      with(forwardInputs, "%q: T[2, 3, 5, 16]", "%q: T[2, 3, 5, 16; 240, 16, 48, 1]"), forward);
  ASSERT_TRUE(bool(attention)) << llvm::toString(attention.takeError());
  EXPECT_THAT(attention->tensor(attentionQueries).strides, ElementsAre(240, 16, 48, 1));
}

// Everything else is not described, and the answer says why.
TEST_F(CuDNNExecutorTest, SaysWhyNot) {
  EXPECT_EQ(why("%a: T[3]$", "%y: T[3]$ = neg(%a)"), "it is no attention");
  EXPECT_EQ(why(forwardInputs, forward, "f32"), "it is of f32, not of f16 or bf16");
  EXPECT_THAT(why(with(forwardInputs, "%q: T[2, 3, 5, 16]$", "%q: T[2, 3, L, 16]$"),
                  with(with(forward, "5, 24", "L, 24"), "2, 3, 5]", "2, 3, L]")),
              HasSubstr("symbols"));
  std::string masked = with(forward, "%v)", "%v, %m)");
  EXPECT_EQ(why(std::string(forwardInputs) + ", %m: bool[5, 7]$", masked), "it has a mask");
  EXPECT_EQ(why(std::string(forwardInputs) + ", %m: T[5, 7]$", masked), "it has a mask");
  EXPECT_EQ(why(std::string(forwardInputs) + ", %s: rng@cuda:0",
                with(forward, "%v)", "%v, none, %s) {dropout_p = 0.5}")),
            "it has dropout");
  EXPECT_EQ(why("%q: T[1, 2, 3, 5, 16]$, %k: T[1, 2, 3, 7, 16]$, %v: T[1, 2, 3, 7, 16]$",
                "%y: T[1, 2, 3, 5, 16]$, %l: f32[1, 2, 3, 5]$ = "
                "scaled_dot_product_attention(%q, %k, %v)"),
            "it has more than four dimensions");
  EXPECT_EQ(why("%q: T[0, 16]$, %k: T[7, 16]$, %v: T[7, 16]$",
                "%y: T[0, 16]$, %l: f32[0]$ = scaled_dot_product_attention(%q, %k, %v)"),
            "operand #0 has no elements");
  EXPECT_EQ(why("%q: T[5, 12]$, %k: T[7, 12]$, %v: T[7, 16]$",
                "%y: T[5, 16]$, %l: f32[5]$ = scaled_dot_product_attention(%q, %k, %v)"),
            "operand #0 has heads of 12 elements, which is no multiple of 8");
  for (const char *strides : {"; 336, 112, 1, 7]", "; 336, 112, 17, 1]", "; 0, 112, 16, 1]"})
    EXPECT_EQ(
        why(with(forwardInputs, "%k: T[2, 3, 7, 16]", std::string("%k: T[2, 3, 7, 16") + strides),
            forward),
        "operand #1 has rows that cannot be read 16 bytes at once");
  EXPECT_EQ(why(forwardInputs,
                with(forward, "2, 3, 5]", "2, 3, 32]") + " {logsumexp_shape = [2, 3, 32]}"),
            "result #1 is a logsumexp with padding or gaps");
  EXPECT_EQ(why(with(backwardInputs, "f32[2, 3, 5]", "f32[2, 3, 5; 30, 10, 2]"), backward),
            "operand #5 is a logsumexp with padding or gaps");
  EXPECT_EQ(why(forwardInputs, std::string(forward) + " {scale = 1e60}"),
            "its scale is not finite in f32");
}

// Attentions are the same if they differ in nothing but addresses: plans are kept by that.
TEST_F(CuDNNExecutorTest, TellsAttentionsApart) {
  FusedAttention one = cantFail(describe(forwardInputs, forward));
  EXPECT_TRUE(one == cantFail(describe(forwardInputs, forward)));
  EXPECT_FALSE(one == cantFail(describe(forwardInputs, forward, "f16")));
  EXPECT_FALSE(one == cantFail(describe(forwardInputs, std::string(forward) + " {causal = true}")));
  EXPECT_FALSE(one == cantFail(describe(forwardInputs, std::string(forward) + " {scale = 0.5}")));
  EXPECT_FALSE(one == cantFail(describe(backwardInputs, backward)));
}

// A view is aligned by where it begins.
TEST_F(CuDNNExecutorTest, KnowsWhereViewsLie) {
  Trace trace = parse(R"(trace @t(%all: T[33, 12]$) {
  %x: T[32, 12]$ = slice(%all) {dim = 0, end = 33, start = 1}
  %y: T[31, 12]$ = slice(%x) {dim = 0, end = 32, start = 1}
  return(%x, %y)
})");
  EXPECT_TRUE(liesAligned(trace, trace.arguments()[0]));
  EXPECT_FALSE(liesAligned(trace, trace.op(trace.ops()[0]).result())) << "24 bytes";
  EXPECT_TRUE(liesAligned(trace, trace.op(trace.ops()[1]).result())) << "48 bytes";
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

// Where the named file is not there, the executor is left out of the list, with the reason.
TEST_F(CuDNNExecutorTest, LeftOutWithoutLibrary) {
  const char *variable = "RONDO_CUDNN_LIBRARY", *file = "/nowhere/libcudnn.so.9";
  const char *old = std::getenv(variable);
  auto restore = llvm::make_scope_exit([variable, saved = std::string(old ? old : "")] {
    saved.empty() ? unsetenv(variable) : setenv(variable, saved.c_str(), 1);
  });
  setenv(variable, file, 1);
  llvm::Expected<std::unique_ptr<Executor>> cudnn = createCuDNNExecutor();
  ASSERT_FALSE(bool(cudnn));
  auto saysWhy = AnyOf(HasSubstr(file), HasSubstr("made without"));
  EXPECT_THAT(llvm::toString(cudnn.takeError()), saysWhy);

  std::vector<std::string> remarks;
  auto executors = createCUDAExecutors(&remarks);
  ASSERT_TRUE(bool(executors)) << llvm::toString(executors.takeError());
  for (const std::unique_ptr<Executor> &executor : *executors)
    EXPECT_NE(executor->name(), "cudnn");
  ASSERT_FALSE(remarks.empty());
  EXPECT_THAT(remarks.front(), HasSubstr("executor 'cudnn' is left out: "));
  EXPECT_THAT(remarks.front(), saysWhy);
}

// Where the library is there and no GPU, everything is declined: no claim without a plan.
TEST_F(CuDNNExecutorTest, DeclinesWithoutGPU) {
  llvm::Expected<std::unique_ptr<Executor>> cudnn = createCuDNNExecutor();
  if (!cudnn)
    GTEST_SKIP() << llvm::toString(cudnn.takeError());
  if (llvm::Expected<unsigned> count = countCUDADevices())
    GTEST_SKIP() << "there is a GPU";
  else
    llvm::consumeError(count.takeError());
  EXPECT_EQ((*cudnn)->name(), "cudnn");
  Trace trace = parseOp(forwardInputs, forward, "bf16");
  OpId op = trace.ops().front();
  ClaimAnswer answer = (*cudnn)->claim(trace, op);
  EXPECT_FALSE(answer.accepted);
  EXPECT_THAT(answer.why, HasSubstr("no CUDA device"));
  auto kernel = (*cudnn)->compile(trace, op, createHostDevice());
  ASSERT_FALSE(bool(kernel));
  EXPECT_THAT(llvm::toString(kernel.takeError()), HasSubstr("cuDNN needs a CUDA device, not host"));
}

//===----------------------------------------------------------------------===//
// On a GPU
//===----------------------------------------------------------------------===//

class CuDNNAttentionTest : public CuDNNExecutorTest {
protected:
  void SetUp() override {
    device = cudaTestDevice();
    if (!device)
      GTEST_SKIP() << "no device";
    std::vector<std::string> remarks;
    owned = cantFail(createCUDAExecutors(&remarks));
    cudnn = owned.front().get();
    if (cudnn->name() != "cudnn")
      GTEST_SKIP() << remarks.front();
    for (const std::unique_ptr<Executor> &executor : owned)
      executors.push_back(executor.get());
    stream = cantFail(device->createStream());
  }

  Trace traceOn(const AttentionSetting &setting, llvm::StringRef where) const {
    return cantFail(parseTrace(setting.text(where), "t.trace", registry));
  }

  /// How many of the two ops cuDNN takes; prints what it says of each.
  unsigned countClaims(const AttentionSetting &setting) const {
    Trace trace = traceOn(setting, "@cuda:0");
    unsigned count = 0;
    for (OpId id : llvm::ArrayRef(trace.ops()).take_front(2)) {
      ClaimAnswer answer = cudnn->claim(trace, id);
      count += answer.accepted;
      std::cout << setting.name() << (id == trace.ops().front() ? ", forward: " : ", backward: ")
                << (answer.accepted ? "claimed, workspace " + std::to_string(answer.workspaceBytes)
                                    : "declined: " + answer.why)
                << std::endl;
    }
    return count;
  }

  /// Runs both ops on the host, whose attention computes in f64.
  std::vector<Tensor> onTheHost(const AttentionSetting &setting, llvm::ArrayRef<Value> arguments) {
    HostExecutor host;
    DeviceRef hostDevice = createHostDevice();
    std::unique_ptr<Stream> hostStream = cantFail(hostDevice->createStream());
    Program program = cantFail(
        compile(TracePair(traceOn(setting, "")), hostDevice, &host, pipelineOf("execution", host)));
    llvm::SmallVector<Value> results;
    cantFail(program.forward(*hostStream, arguments, results));
    cantFail(hostStream->synchronize());
    std::vector<Tensor> tensors;
    for (const Value &result : results)
      tensors.push_back(*result.asTensor());
    return tensors;
  }

  void expectSameAsHost(const AttentionSetting &setting);

  DeviceRef device;
  std::vector<std::unique_ptr<Executor>> owned;
  const Executor *cudnn = nullptr;
  std::vector<const Executor *> executors;
  std::unique_ptr<Stream> stream;
};

/// On the host, of 16 bits, with elements between -2 and 2 that have few significant ones.
Tensor smallTensor(const TensorType &type, uint64_t seed) {
  Tensor tensor = cantFail(Tensor::empty(createHostDevice(), type));
  std::vector<double> values = randomValues(tensor.numElements(), seed);
  for (double &value : values)
    value = std::round(value * 32) / 32;
  host::fromDense<double>(values, tensor.ref());
  return tensor;
}

void CuDNNAttentionTest::expectSameAsHost(const AttentionSetting &setting) {
  auto program = compile(TracePair(traceOn(setting, "@cuda:0")), device, executors,
                         pipelineOf("execution,cuda-graph{min-ops=1},del", executors));
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  std::vector<Value> hostInputs, inputs;
  for (const ParameterInfo &info : program->inputs()) {
    TensorType type = *info.type.asTensor();
    type.device = Device::host();
    hostInputs.push_back(smallTensor(type, 1 + inputs.size()));
    inputs.push_back(cantFail(copyTo(device, *hostInputs.back().asTensor(), *stream)));
  }
  std::vector<Tensor> expected = onTheHost(setting, hostInputs);
  std::vector<std::vector<std::byte>> first;
  for (unsigned call = 0; call <= 100; ++call) {
    llvm::SmallVector<Value> results;
    llvm::Error error = program->forward(*stream, inputs, results);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      Tensor result = onHost(*results[i].asTensor(), *stream);
      if (call == 0) {
        EXPECT_LE(relativeError(valuesOf(result), valuesOf(expected[i])), 1e-2) << "result " << i;
        first.push_back(bytesOf(result));
      }
      ASSERT_EQ(bytesOf(result), first[i]) << "result " << i << " of call " << call;
    }
  }
  EXPECT_EQ(program->counters().replays, 100u);
  EXPECT_EQ(program->counters().failures, 0u);
}

// What cuDNN takes gives what the host gives; a hundred replays give the bits of the eager call.
// It takes something.
TEST_F(CuDNNAttentionTest, EqualsTheHost) {
  unsigned numClaims = 0;
  for (const AttentionSetting &setting : attentionSettings()) {
    SCOPED_TRACE(setting.name());
    unsigned claims = countClaims(setting);
    numClaims += claims;
    if (claims > 0)
      expectSameAsHost(setting);
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(numClaims, 0u) << "cuDNN is there and takes nothing";
}

// Layers that are alike share a plan: the second claim costs next to nothing and says the same.
TEST_F(CuDNNAttentionTest, PlansAreKept) {
  AttentionSetting setting{"bf16", true, 64, 128};
  Trace trace = traceOn(setting, "@cuda:0");
  ClaimAnswer first = cudnn->claim(trace, trace.ops().front());
  auto begin = std::chrono::steady_clock::now();
  ClaimAnswer again = cudnn->claim(trace, trace.ops().front());
  std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(passed.count(), 0.1);
  EXPECT_EQ(again.accepted, first.accepted);
  EXPECT_EQ(again.why, first.why);
  EXPECT_EQ(again.workspaceBytes, first.workspaceBytes);
}

// A claim whose workspace is too small for the plan is an error that says so.
TEST_F(CuDNNAttentionTest, ChecksTheWorkspaceOfItsClaim) {
  AttentionSetting setting{"bf16", false, 64, 128};
  Trace trace = traceOn(setting, "@cuda:0");
  OpId op = trace.ops()[1];
  ClaimAnswer answer = cudnn->claim(trace, op);
  if (!answer.accepted)
    GTEST_SKIP() << answer.why;
  trace.setClaim(op, Claim{"cudnn", true, "", answer.workspaceBytes - 1});
  auto kernel = cudnn->compile(trace, op, device);
  ASSERT_FALSE(bool(kernel));
  EXPECT_THAT(llvm::toString(kernel.takeError()), HasSubstr("claim it again"));
  trace.setClaim(op, Claim{"cudnn", true, "", answer.workspaceBytes});
  kernel = cudnn->compile(trace, op, device);
  EXPECT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
}

} // namespace
