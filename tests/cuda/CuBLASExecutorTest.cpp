//===- CuBLASExecutorTest.cpp - What cuBLASLt is asked for ----------------===//
//
// What is claimed, as which product, and in which groups: none of it needs a GPU or the library.
// The results of groups, which no other test sees, are compared at the end.
//
//===----------------------------------------------------------------------===//

#include "CuBLASExecutor.h"
#include "CUDATesting.h"
#include "CUDATraceTesting.h"
#include "CuBLASGroupTexts.h"
#include "CuBLASPlan.h"

#include "../runtime/TraceTesting.h"

#include "rondo/cuda/CUDAExecutors.h"
#include "rondo/passes/TableClaimSource.h"

#include <gmock/gmock.h>

using namespace rondo;
using namespace rondo::cuda;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

class CuBLASExecutorTest : public testing::Test {
protected:
  Trace parse(std::string text, llvm::StringRef dtype = "f32") const {
    return parseOnCUDA(std::move(text), dtype, registry);
  }
  Trace parseOp(const std::string &arguments, const std::string &op,
                llvm::StringRef dtype = "f32") const {
    return parseOpOnCUDA(arguments, op, dtype, registry);
  }

  /// Why the op is declined; empty if it is not.
  std::string whyDeclined(const std::string &arguments, const std::string &op,
                          llvm::StringRef dtype = "f32") const {
    Trace trace = parseOp(arguments, op, dtype);
    ClaimAnswer answer = cublas.claim(trace, trace.ops().front());
    EXPECT_TRUE(!answer.accepted || answer.capturable);
    return answer.accepted ? "" : answer.why;
  }
  /// What is asked for; empty after an error, which is one of the test.
  CuBLASProduct productOf(const std::string &arguments, const std::string &op,
                          llvm::StringRef dtype = "f32") const {
    Trace trace = parseOp(arguments, op, dtype);
    llvm::Expected<CuBLASPlan> plan = planOp(trace, trace.ops().front());
    if (plan)
      return plan->product;
    ADD_FAILURE() << llvm::toString(plan.takeError());
    return {};
  }

  /// The groups of a trace: `addmm gelu: 164` for ops and epilogue.
  std::vector<std::string> groupsOf(const std::string &text, llvm::StringRef dtype = "bf16") const {
    Trace trace = parse(text, dtype);
    std::vector<std::string> texts;
    for (const CuBLASGroup &group : findGroups(trace, Trace::topBody())) {
      std::string names;
      for (OpId op : group.ops)
        names += (names.empty() ? "" : " ") + trace.op(op).name().str();
      texts.push_back(names + ": " + std::to_string(group.plan.epilogue));
    }
    return texts;
  }
  static std::string text(const char *ops, cublasLtEpilogue_t epilogue) {
    return std::string(ops) + ": " + std::to_string(epilogue);
  }

  CoreRegistry registry;
  CuBLASExecutor cublas{nullptr};
};

//===----------------------------------------------------------------------===//
// Single ops
//===----------------------------------------------------------------------===//

// Products of floats are claimed whatever their form.
TEST_F(CuBLASExecutorTest, ClaimsProducts) {
  for (const char *dtype : {"f16", "bf16", "f32", "f64"}) {
    SCOPED_TRACE(dtype);
    auto why = [&](const char *arguments, const char *op) {
      return whyDeclined(arguments, op, dtype);
    };
    EXPECT_EQ(why("%a: T[3, 4]$, %b: T[4, 5]$", "%y: T[3, 5]$ = mm(%a, %b)"), "");
    EXPECT_EQ(why("%a: T[2, 3, 4]$, %b: T[2, 4, 5]$", "%y: T[2, 3, 5]$ = bmm(%a, %b)"), "");
    EXPECT_EQ(why("%a: T[4]$, %b: T[4]$", "%y: T[]$ = matmul(%a, %b)"), "");
    EXPECT_EQ(why("%a: T[2, 1, 3, 4]$, %b: T[5, 4, 2]$", "%y: T[2, 5, 3, 2]$ = matmul(%a, %b)"),
              "");
    EXPECT_EQ(why("%x: T[2, 3, 4]$, %w: T[5, 4]$", "%y: T[2, 3, 5]$ = linear(%x, %w)"), "");
    EXPECT_EQ(why("%c: T[3, 5]$, %a: T[3, 4]$, %b: T[4, 5]$",
                  "%y: T[3, 5]$ = addmm(%c, %a, %b) {alpha = 2, beta = 0.5}"),
              "");
    EXPECT_EQ(why("%c: T[2, 3, 5]$, %a: T[2, 3, 4]$, %b: T[2, 4, 5]$",
                  "%y: T[2, 3, 5]$ = baddbmm(%c, %a, %b)"),
              "");
  }
}

// What cuBLASLt cannot compute is declined, and the answer says why.
TEST_F(CuBLASExecutorTest, DeclinesWithAReason) {
  EXPECT_EQ(whyDeclined("%a: T[3]$", "%y: T[3]$ = neg(%a)"), "it is no product of matrices");
  EXPECT_EQ(whyDeclined("%a: T[3, 4]$, %b: T[4, 5]$", "%y: T[3, 5]$ = mm(%a, %b)", "i64"),
            "cuBLASLt does not multiply i64");
  EXPECT_EQ(whyDeclined("%a: T[3, 4]$, %b: T[4, 5]$", "%y: T[3, 5]$ = mm(%a, %b)", "f8e4m3"),
            "cuBLASLt does not multiply f8e4m3");
  EXPECT_THAT(whyDeclined("%a: T[3, 4], %b: T[4, 5]", "%y: T[3, 5] = mm(%a, %b)"),
              HasSubstr("a CUDA device"));
  EXPECT_THAT(whyDeclined("%a: T[B, 4]$, %b: T[4, 5]$", "%y: T[B, 5]$ = mm(%a, %b)"),
              HasSubstr("symbols"));
  EXPECT_EQ(whyDeclined("%a: T[3, 4; 16, 2]$, %b: T[4, 5]$", "%y: T[3, 5]$ = mm(%a, %b)"),
            "operand #0 has strides that cuBLASLt cannot express");
  EXPECT_EQ(whyDeclined("%a: T[3, 4]$, %b: T[4, 5; 0, 1]$", "%y: T[3, 5]$ = mm(%a, %b)"),
            "operand #1 has strides that cuBLASLt cannot express");
  EXPECT_EQ(
      whyDeclined("%c: T[3, 1]$, %a: T[3, 4]$, %b: T[4, 5]$", "%y: T[3, 5]$ = addmm(%c, %a, %b)"),
      "operand #0 is a bias that cuBLASLt cannot add");
  EXPECT_EQ(whyDeclined("%c: T[5]$, %a: T[3, 4]$, %b: T[4, 5]$",
                        "%y: T[3, 5]$ = addmm(%c, %a, %b) {beta = 2}"),
            "operand #0 is a bias that cuBLASLt cannot add");
  EXPECT_EQ(whyDeclined("%x: T[3, 4]$, %w: T[5, 4]$, %c: T[5]$",
                        "%y: T[3, 5]$ = linear(%x, %w, %c)", "f64"),
            "operand #2 is a bias that cuBLASLt cannot add");
  EXPECT_EQ(
      whyDeclined("%c: T[5]$, %a: T[3, 0]$, %b: T[0, 5]$", "%y: T[3, 5]$ = addmm(%c, %a, %b)"),
      "it has nothing to multiply, only a bias");
  EXPECT_EQ(whyDeclined("%a: T[99, 3, 7, 4; 84, 4, 12, 1]$, %b: T[99, 1, 4, 5; 5, 1, 495, 1]$",
                        "%y: T[99, 3, 7, 5; 105, 5, 15, 1]$ = matmul(%a, %b)"),
            "");
  EXPECT_EQ(whyDeclined("%a: T[99, 98, 7, 4; 28, 5544, 4, 1]$, %b: T[99, 98, 4, 5]$",
                        "%y: T[99, 98, 7, 5]$ = matmul(%a, %b)"),
            "its batches have several strides, which needs 98 calls of cuBLASLt");
}

// A row-major result is computed as its transpose; transposed operands cost nothing.
TEST_F(CuBLASExecutorTest, RowMajorMatricesAreTransposes) {
  CuBLASProduct plain = productOf("%a: T[3, 4]$, %b: T[4, 5]$", "%y: T[3, 5]$ = mm(%a, %b)");
  EXPECT_TRUE(plain.isSwapped);
  EXPECT_EQ(plain.m, 5);
  EXPECT_EQ(plain.n, 3);
  EXPECT_EQ(plain.k, 4);
  EXPECT_FALSE(plain.left.isTransposed);
  EXPECT_EQ(plain.left.leadingDimension, 5);
  EXPECT_FALSE(plain.right.isTransposed);
  EXPECT_EQ(plain.right.leadingDimension, 4);
  EXPECT_EQ(plain.out.leadingDimension, 5);
  EXPECT_TRUE(plain.isSingle());

  CuBLASProduct linear =
      productOf("%x: T[3, 4; 8, 1]$, %w: T[5, 4]$", "%y: T[3, 5]$ = linear(%x, %w)");
  EXPECT_TRUE(linear.left.isTransposed);
  EXPECT_EQ(linear.left.rows, 4);
  EXPECT_EQ(linear.left.columns, 5);
  EXPECT_EQ(linear.right.leadingDimension, 8);

  CuBLASProduct columns =
      productOf("%a: T[3, 4]$, %b: T[4, 5]$", "%y: T[3, 5; 1, 3]$ = mm(%a, %b)");
  EXPECT_FALSE(columns.isSwapped);
  EXPECT_EQ(columns.m, 3);
  EXPECT_TRUE(columns.left.isTransposed);
}

// A bias along the rows is the library's vector, any other is added as a matrix, one whose factor
// is 0 not at all.
TEST_F(CuBLASExecutorTest, Biases) {
  const char *arguments = "%c: T[5]$, %a: T[3, 4]$, %b: T[4, 5]$";
  CuBLASProduct vector = productOf(arguments, "%y: T[3, 5]$ = addmm(%c, %a, %b)");
  EXPECT_TRUE(vector.hasVector);
  EXPECT_FALSE(vector.addend);
  EXPECT_EQ(vector.beta, 0);

  CuBLASProduct ignored = productOf(arguments, "%y: T[3, 5]$ = addmm(%c, %a, %b) {beta = 0}");
  EXPECT_FALSE(ignored.hasVector);
  EXPECT_FALSE(ignored.addend);

  CuBLASProduct matrix = productOf("%c: T[3, 5; 7, 1]$, %a: T[3, 4]$, %b: T[4, 5]$",
                                   "%y: T[3, 5]$ = addmm(%c, %a, %b) {alpha = 3, beta = 2}");
  EXPECT_FALSE(matrix.hasVector);
  ASSERT_TRUE(matrix.addend);
  EXPECT_EQ(matrix.addend->leadingDimension, 7);
  EXPECT_EQ(matrix.alpha, 3);
  EXPECT_EQ(matrix.beta, 2);
}

// Batches become rows, one strided batch, or calls.
TEST_F(CuBLASExecutorTest, Batches) {
  CuBLASProduct rows = productOf("%x: T[2, 6, 3, 4]$, %w: T[5, 4]$, %c: T[5]$",
                                 "%y: T[2, 6, 3, 5]$ = linear(%x, %w, %c)");
  EXPECT_EQ(rows.n, 36);
  EXPECT_EQ(rows.batches, 1);
  EXPECT_TRUE(rows.isSingle());

  CuBLASProduct batch =
      productOf("%a: T[2, 6, 3, 4]$, %b: T[2, 6, 4, 5]$", "%y: T[2, 6, 3, 5]$ = matmul(%a, %b)");
  EXPECT_EQ(batch.batches, 12);
  EXPECT_EQ(batch.left.batchStride, 20);
  EXPECT_EQ(batch.right.batchStride, 12);
  EXPECT_EQ(batch.out.batchStride, 15);
  EXPECT_THAT(batch.calls, SizeIs(1));

  // Heads that lie beside each other: [2, 3, 6 * 4] seen as [2, 6, 3, 4].
  CuBLASProduct heads = productOf("%a: T[2, 6, 3, 4; 72, 4, 24, 1]$, %b: T[2, 6, 4, 5]$",
                                  "%y: T[2, 6, 3, 5]$ = matmul(%a, %b)");
  EXPECT_EQ(heads.batches, 6);
  EXPECT_EQ(heads.right.batchStride, 4);
  EXPECT_EQ(heads.right.leadingDimension, 24);
  ASSERT_THAT(heads.calls, SizeIs(2));
  EXPECT_EQ(heads.calls[1].right, 72);
  EXPECT_EQ(heads.calls[1].left, 120);
  EXPECT_EQ(heads.calls[1].out, 90);

  CuBLASProduct broadcast =
      productOf("%a: T[3, 4]$, %b: T[7, 4, 5]$", "%y: T[7, 3, 5]$ = matmul(%a, %b)");
  EXPECT_EQ(broadcast.batches, 7);
  EXPECT_EQ(broadcast.right.batchStride, 0);
}

// Nothing is computed of no elements, and zeros need no library.
TEST_F(CuBLASExecutorTest, Degenerate) {
  EXPECT_TRUE(productOf("%a: T[0, 4]$, %b: T[4, 5]$", "%y: T[0, 5]$ = mm(%a, %b)").isEmpty());
  EXPECT_TRUE(
      productOf("%a: T[0, 3, 4]$, %b: T[0, 4, 5]$", "%y: T[0, 3, 5]$ = bmm(%a, %b)").isEmpty());
  CuBLASProduct zero =
      productOf("%a: T[2, 3, 0]$, %b: T[2, 0, 5]$", "%y: T[2, 3, 5]$ = bmm(%a, %b)");
  EXPECT_EQ(zero.k, 0);
  EXPECT_EQ(zero.m * zero.n * zero.batches, 30);
  CuBLASProduct one = productOf("%a: T[1]$, %b: T[1]$", "%y: T[]$ = matmul(%a, %b)");
  EXPECT_EQ(one.left.leadingDimension, 1);
  EXPECT_TRUE(one.isSingle());
}

// A small product needs no workspace; larger ones ask for more up to a bound.
TEST_F(CuBLASExecutorTest, Workspace) {
  auto bytes = [&](int64_t size) {
    std::string n = std::to_string(size), type = "T[" + n + ", " + n + "]$";
    Trace trace = parseOp("%a: " + type + ", %b: " + type, "%y: " + type + " = mm(%a, %b)", "bf16");
    return cublas.claim(trace, trace.ops().front()).workspaceBytes;
  };
  EXPECT_EQ(bytes(0), 0u);
  EXPECT_EQ(bytes(255), 0u);
  EXPECT_EQ(bytes(256), 4u << 20);
  EXPECT_EQ(bytes(400), 16u * 400 * 400 * 4);
  EXPECT_EQ(bytes(4096), 32u << 20);
}

// Without the library, or on another device, there is no kernel, and the error says so.
TEST_F(CuBLASExecutorTest, NoKernelWithoutLibraryOrDevice) {
  Trace trace = parseOp("%a: T[3, 4]$, %b: T[4, 5]$", "%y: T[3, 5]$ = mm(%a, %b)");
  auto error = [&](const Executor &executor) {
    llvm::Expected<KernelRef> kernel =
        executor.compile(trace, trace.ops().front(), createHostDevice());
    return kernel ? "" : llvm::toString(kernel.takeError());
  };
  EXPECT_THAT(error(cublas), HasSubstr("cuBLASLt is not loaded"));
  llvm::Expected<std::unique_ptr<Executor>> loaded = createCuBLASExecutor();
  if (!loaded) {
    EXPECT_THAT(llvm::toString(loaded.takeError()), HasSubstr("libcublasLt.so"));
    return;
  }
  EXPECT_EQ((*loaded)->name(), "cublas");
  EXPECT_THAT(error(**loaded), HasSubstr("cuBLASLt needs a CUDA device, not host"));
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

// Each group is found, in every dtype that has epilogues.
TEST_F(CuBLASExecutorTest, FindsGroups) {
  for (const char *dtype : {"bf16", "f16", "f32"}) {
    SCOPED_TRACE(dtype);
    EXPECT_THAT(groupsOf(withGELU, dtype),
                ElementsAre(text("linear gelu", CUBLASLT_EPILOGUE_GELU_BIAS)));
    EXPECT_THAT(groupsOf(withSavedGELU, dtype),
                ElementsAre(text("addmm reshape gelu", CUBLASLT_EPILOGUE_GELU_AUX_BIAS)));
    EXPECT_THAT(groupsOf(withRelu, dtype),
                ElementsAre(text("linear relu", CUBLASLT_EPILOGUE_RELU)));
    EXPECT_THAT(
        groupsOf(withGELUGradient, dtype),
        ElementsAre(text("mm reshape gelu_backward reshape sum", CUBLASLT_EPILOGUE_DGELU_BGRAD)));
    EXPECT_THAT(groupsOf(withBiasGradient, dtype),
                ElementsAre(text("permute mm sum", CUBLASLT_EPILOGUE_BGRADB)));
    EXPECT_THAT(groupsOf(withTransposedGradient, dtype),
                ElementsAre(text("mm sum", CUBLASLT_EPILOGUE_BGRADA)));
  }
  EXPECT_THAT(groupsOf(withGELU, "f64"), IsEmpty()) << "no epilogues in f64";
}

/// `text` with `from` replaced.
std::string with(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// What an epilogue would compute otherwise stays as it is.
TEST_F(CuBLASExecutorTest, LeavesOtherOpsAlone) {
  EXPECT_THAT(groupsOf(with(withGELU, "tanh", "none")), IsEmpty()) << "the exact GELU";
  EXPECT_THAT(groupsOf(with(withGELUGradient, "tanh", "none")), IsEmpty());
  EXPECT_THAT(groupsOf(with(withRelu, "return(%y)", "return(%y, %h)")), IsEmpty())
      << "what goes into relu is wanted";
  EXPECT_THAT(groupsOf(with(withSavedGELU, "return(%y, %v)", "return(%y, %v, %h)")), IsEmpty())
      << "two names of what goes into gelu are wanted";
  EXPECT_THAT(groupsOf(with(withGELUGradient, "return(%e, %s)", "return(%e, %s, %a)")), IsEmpty())
      << "what goes into gelu_backward is wanted";
  EXPECT_THAT(groupsOf(with(withBiasGradient, "return(%w, %s)", "return(%w, %s, %t)")), IsEmpty());
  EXPECT_THAT(groupsOf(with(withBiasGradient, "T[16]$ = sum(%g) {dims = [0]}",
                            "T[32]$ = sum(%g) {dims = [1]}")),
              IsEmpty())
      << "a sum over the columns";
  std::string wanted = with(withGELU, "return(%y)", "return(%y, %h)");
  EXPECT_THAT(groupsOf(wanted), ElementsAre(text("linear gelu", CUBLASLT_EPILOGUE_GELU_AUX_BIAS)));
  EXPECT_THAT(groupsOf(with(wanted, "16", "12")), IsEmpty()) << "rows of %h are no multiple of 8";
  EXPECT_THAT(groupsOf(with(withGELU, "16", "12")), SizeIs(1));
}

// Without a sum that fits, or where two names of the gradient are wanted, the sum stays outside.
TEST_F(CuBLASExecutorTest, GELUGradientWithoutSum) {
  std::string alone = text("mm reshape gelu_backward", CUBLASLT_EPILOGUE_DGELU);
  EXPECT_THAT(groupsOf(with(withGELUGradient, "return(%e, %s)", "return(%e, %s, %d)")),
              ElementsAre(alone));
  EXPECT_THAT(groupsOf(with(withGELUGradient, "return(%e, %s)", "return(%s)")), ElementsAre(alone))
      << "the product needs memory for its result";
  EXPECT_THAT(
      groupsOf(with(withGELUGradient, "{dims = [0], keepdim = true}",
                    "{dims = [0], dtype = f32, keepdim = true}"),
               "f32"),
      ElementsAre(text("mm reshape gelu_backward reshape sum", CUBLASLT_EPILOGUE_DGELU_BGRAD)))
      << "a dtype that it has anyway";
}

// Tensors that do not start at a multiple of 16 bytes are in no group.
TEST_F(CuBLASExecutorTest, UnalignedTensorsAreInNoGroup) {
  std::string format = R"(trace @t(%all: T[33, 64]$, %w: T[16, 64]$) {
  %x: T[32, 64]$ = slice(%all) {dim = 0, end = 33, start = 1}
  %h: T[32, 16]$ = linear(%x, %w)
  %y: T[32, 16]$ = relu(%h)
  return(%y)
})";
  EXPECT_THAT(groupsOf(format), SizeIs(1)) << "128 bytes further on";
  EXPECT_THAT(groupsOf(with(format, "64", "63")), IsEmpty());
}

// An op that an earlier source claimed is in no group.
TEST_F(CuBLASExecutorTest, ClaimedOpsAreInNoGroup) {
  EXPECT_THAT(groupsOf(with(withRelu, "relu(%h)", "relu(%h) claim(\"other\")")), IsEmpty());
  EXPECT_THAT(groupsOf(with(withRelu, "relu(%h)", "relu(%h) claim(\"cublas\")")), SizeIs(1));
}

// The execution transform makes one op of a group, in which the executor finds the group again,
// after `del` was placed, too.
TEST_F(CuBLASExecutorTest, FusedOpsAreFoundAgain) {
  TableClaimSource others("others", ClaimAnswer::accept());
  PassRegistry passes;
  cantFail(registerPasses(passes, {&cublas, &others}));
  for (const char *text : {withGELU, withSavedGELU, withRelu, withGELUGradient, withBiasGradient,
                           withTransposedGradient}) {
    SCOPED_TRACE(text);
    PassManager manager;
    cantFail(passes.parsePipeline("execution,del", manager));
    llvm::Expected<TracePair> pair = manager.run(TracePair(parse(text, "bf16")));
    ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
    const Trace &trace = pair->forward();
    unsigned numFused = 0;
    for (OpId id : trace.ops()) {
      if (trace.op(id).name() != core::fusedOp)
        continue;
      ++numFused;
      EXPECT_EQ(trace.op(id).claim()->executor, "cublas");
      EXPECT_EQ(cublas.claim(trace, id).why, "");
    }
    EXPECT_EQ(numFused, 1u);
  }
}

//===----------------------------------------------------------------------===//
// On a GPU
//===----------------------------------------------------------------------===//

/// A tensor on the host with elements between -1 and 1 that differ.
Tensor patternTensor(const DeviceRef &host, const TensorType &type, unsigned seed) {
  Tensor tensor = cantFail(Tensor::empty(host, type));
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    float value = float((i * 37 + seed * 101) % 255 - 127) / 128;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    uint16_t upper = uint16_t(bits >> 16); // exact: the values have 8 significant bits
    if (type.dtype == DType::F32)
      std::memcpy(tensor.data() + i * 4, &value, 4);
    else
      std::memcpy(tensor.data() + i * 2, &upper, 2);
  }
  return tensor;
}

class CuBLASGroupTest
    : public CuBLASExecutorTest,
      public testing::WithParamInterface<std::tuple<CuBLASGroupText, const char *>> {};

std::string groupCaseName(const testing::TestParamInfo<CuBLASGroupTest::ParamType> &info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param);
}

// Groups give what their ops give one by one on the host, eagerly and replayed.
TEST_P(CuBLASGroupTest, EqualsItsOps) {
  auto [group, dtype] = GetParam();
  DeviceRef device = cudaTestDevice();
  if (!device)
    GTEST_SKIP();
  HostExecutor host;
  DeviceRef hostDevice = createHostDevice();
  std::unique_ptr<Stream> stream = cantFail(device->createStream());
  std::unique_ptr<Stream> hostStream = cantFail(hostDevice->createStream());
  auto owned = createCUDAExecutors();
  ASSERT_TRUE(bool(owned)) << llvm::toString(owned.takeError());
  std::vector<const Executor *> executors;
  for (const auto &executor : *owned)
    executors.push_back(executor.get());
  TracePair pair(parse(group.text, dtype));
  auto program = compile(pair.clone(), device, executors,
                         pipelineOf("execution,cuda-graph{min-ops=1},del", executors));
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  TracePair placed = cantFail(pipelineOf("place", host)(std::move(pair), {}));
  auto reference =
      cantFail(compile(std::move(placed), hostDevice, &host, pipelineOf("execution", host)));
  std::vector<Value> hostInputs, inputs;
  for (const ParameterInfo &info : reference.inputs()) {
    Tensor tensor = patternTensor(hostDevice, *info.type.asTensor(), inputs.size());
    hostInputs.push_back(tensor);
    inputs.push_back(cantFail(copyTo(device, tensor, *stream)));
  }
  llvm::SmallVector<Value> expected;
  cantFail(reference.forward(*hostStream, hostInputs, expected));
  cantFail(hostStream->synchronize());
  for (int call = 0; call < 3; ++call) {
    llvm::SmallVector<Value> results;
    llvm::Error error = program->forward(*stream, inputs, results);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_LE(relativeError(onHost(*results[i].asTensor(), *stream), *expected[i].asTensor()),
                llvm::StringRef(dtype) == "f32" ? 1e-5 : 1e-2)
          << "result " << i << " of call " << call;
  }
}

INSTANTIATE_TEST_SUITE_P(CuBLAS, CuBLASGroupTest,
                         testing::Combine(testing::ValuesIn(cublasGroups),
                                          testing::Values("f32", "bf16")),
                         groupCaseName);

} // namespace
