//===- CompileErrorsTest.cpp - What compile refuses -----------------------===//
//
// A pair that cannot be made ready to run is refused when it is compiled, at the op that is to
// blame.
//
//===----------------------------------------------------------------------===//

#include "ProgramTesting.h"

#include "rondo/ir/TraceBuilder.h"

using namespace rondo;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

/// Claims everything, and fails to compile where `failure` is set.
class AnyExecutor : public Executor {
public:
  explicit AnyExecutor(std::string failure = {}) : failure_(std::move(failure)) {}
  llvm::StringRef name() const override { return "any"; }
  ClaimAnswer claim(const Trace &, OpId) const override { return ClaimAnswer::accept(); }
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                    const DeviceRef &device) const override {
    if (!failure_.empty())
      return makeError(failure_);
    return HostExecutor().compile(trace, op, device);
  }

private:
  std::string failure_;
};

constexpr llvm::StringLiteral negation = R"(trace @t(%x: f32[2]) {
  %y: f32[2] = neg(%x)
  return(%y)
})";

class CompileErrorsTest : public ProgramFixture {
protected:
  CompileErrorsTest() {
    OpaqueTypeSpec page;
    page.name = "test.page";
    cantFail(registry.registerType(page));
    OpSpec open;
    open.name = "test.open";
    open.results = {"page"};
    cantFail(registry.registerOp(open));
    OpSpec close;
    close.name = "test.close";
    close.operands = {{"page", OperandKind::Any}};
    cantFail(registry.registerOp(close));
  }

  std::string errorOf(llvm::StringRef text, llvm::ArrayRef<DeviceRef> devices,
                      llvm::ArrayRef<const Executor *> executors, Pipeline pipeline) const {
    llvm::Expected<Program> program =
        compile(parse(text), devices, executors, std::move(pipeline), {});
    return program ? "" : llvm::toString(program.takeError());
  }
};

TracePair withoutPasses(TracePair pair) {
  return pair;
}

} // namespace

//===----------------------------------------------------------------------===//
// Devices and executors
//===----------------------------------------------------------------------===//

// A program needs a device, none twice, and a pipeline.
TEST_F(CompileErrorsTest, Devices) {
  Pipeline usual = pipelineOf(regionPipeline.str(), host);
  EXPECT_EQ(errorOf(negation, {device}, {&host}, usual), "");
  EXPECT_THAT(errorOf(negation, {}, {&host}, usual), HasSubstr("needs a device"));
  EXPECT_THAT(errorOf(negation, {nullptr}, {&host}, usual), HasSubstr("needs a device"));
  EXPECT_THAT(errorOf(negation, {device, device}, {&host}, usual),
              HasSubstr("device host is given twice"));
  EXPECT_THAT(errorOf(negation, {device, createHostDevice()}, {&host}, usual),
              HasSubstr("device host is given twice"));
  EXPECT_THAT(errorOf(negation, {device}, {&host}, nullptr), HasSubstr("needs a pipeline"));
}

// A value on a device that was not given is named, and so are those that were.
TEST_F(CompileErrorsTest, ValueOnAnotherDevice) {
  constexpr llvm::StringLiteral text = R"(trace @t(%x: f32[2]@host:1) {
  %y: f32[2]@host:1 = neg(%x)
  return(%y)
})";
  EXPECT_THAT(compileError(text), AllOf(HasSubstr("value '%x' is on host:1"),
                                        HasSubstr("not among the program's devices: host")));
  DeviceRef other = createHostDevice({.index = 1});
  EXPECT_EQ(errorOf(text, {other}, {&host}, pipelineOf("execution,del", host)), "");
}

// An op without a claim, or with one by an executor that was not given, is located and named.
TEST_F(CompileErrorsTest, Claims) {
  Pipeline none = [](TracePair pair, const SymbolBindings &) {
    return withoutPasses(std::move(pair));
  };
  EXPECT_THAT(errorOf(negation, {device}, {&host}, none),
              AllOf(HasSubstr("t.trace:2:"), HasSubstr("'neg' op"), HasSubstr("no executor claims"),
                    HasSubstr("execution transform")));
  AnyExecutor any;
  EXPECT_THAT(errorOf(negation, {device}, {&host}, pipelineOf("execution", any)),
              AllOf(HasSubstr("t.trace:2:"), HasSubstr("'neg' op"), HasSubstr("executor 'any'"),
                    HasSubstr("not among those given")));
  EXPECT_EQ(errorOf(negation, {device}, {&host, &any}, pipelineOf("execution", any)), "");
}

// An executor that cannot compile an op that it claimed is quoted, at the op; every such op is.
TEST_F(CompileErrorsTest, ExecutorFails) {
  AnyExecutor failing("expects a better day");
  std::string error = errorOf(R"(trace @t(%x: f32[2]) {
  %y: f32[2] = neg(%x)
  %z: f32[2] = exp(%y)
  return(%z)
})",
                              {device}, {&failing}, pipelineOf("execution", failing));
  EXPECT_THAT(error, HasSubstr("t.trace:2:"));
  EXPECT_THAT(error, HasSubstr("'neg' op: expects a better day"));
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

// What the pipeline fails with is what compile fails with.
TEST_F(CompileErrorsTest, PipelineFails) {
  Pipeline failing = [](TracePair, const SymbolBindings &) -> llvm::Expected<TracePair> {
    return makeError("the pipe is blocked");
  };
  EXPECT_EQ(errorOf(negation, {device}, {&host}, failing), "error: the pipe is blocked");
}

// A pipeline may not change what programs take and give.
TEST_F(CompileErrorsTest, SignatureChanges) {
  struct Case {
    const char *becomes;
    std::string says;
  };
  const Case cases[] = {
      {R"(trace @t(%x: f32[2], %z: f32[2]) {
  %y: f32[2] = neg(%x)
  return(%y)
})",
       "1 arguments and 1 results became 2 and 1"},
      {R"(trace @t(%x: f32[2]) {
  %y: f32[2] = neg(%x)
  return(%y, %x)
})",
       "1 arguments and 1 results became 1 and 2"},
      {R"(trace @t(%x: f32[3]) {
  %y: f32[2] = full() {dtype = f32, shape = [2], value = 1}
  return(%y)
})",
       "argument #0 '%x' had type f32[2], now it has f32[3]"},
      {R"(trace @t(%x: f32[2]) {
  %y: f32[] = sum(%x)
  return(%y)
})",
       "result #0 was f32[2], now it is f32[]"},
      {R"(trace @t(%x: f32[2]) {
  return(none)
})",
       "result #0 was f32[2], now it is missing"},
      {R"(pair @t {
  forward @f(%x: f32[2]) {
    return(%x)
  }
  backward @b(%g: f32[2]) {
    return(%g)
  }
})",
       "gave or took the backward"},
  };
  for (const Case &bad : cases) {
    SCOPED_TRACE(bad.says);
    Pipeline changes = [&](TracePair, const SymbolBindings &) {
      return pipelineOf("execution", host)(parse(bad.becomes), {});
    };
    EXPECT_THAT(errorOf(negation, {device}, {&host}, changes),
                AllOf(HasSubstr("pipeline"), HasSubstr(bad.says)));
  }
  // Other strides of a fresh result are its business.
  Pipeline transposes = [&](TracePair, const SymbolBindings &) {
    return pipelineOf("execution", host)(parse(R"(trace @t(%x: f32[2, 2]) {
  %y: f32[2, 2; 1, 2] = neg(%x)
  return(%y)
})"),
                                         {});
  };
  EXPECT_EQ(errorOf(R"(trace @t(%x: f32[2, 2]) {
  %y: f32[2, 2] = neg(%x)
  return(%y)
})",
                    {device}, {&host}, transposes),
            "");
}

//===----------------------------------------------------------------------===//
// Ops and values
//===----------------------------------------------------------------------===//

// Ops whose bodies are chosen at run time are refused, whoever claims them.
TEST_F(CompileErrorsTest, ControlFlow) {
  constexpr llvm::StringLiteral branch = R"(trace @t(%c: bool[], %x: f32[2]) {
  %y: f32[2] = if(%c, %x) {
  ^(%0: f32[2]):
    %1: f32[2] = neg(%0)
    return(%1)
  } {
  ^(%0: f32[2]):
    %1: f32[2] = abs(%0)
    return(%1)
  }
  return(%y)
})";
  constexpr llvm::StringLiteral loop = R"(trace @t(%x: f32[2]) {
  %y: f32[2] = while(%x) {
  ^(%0: f32[2]):
    %s: f32[] = sum(%0)
    %1: bool[] = lt(%s) {scalar = 10}
    return(%1)
  } {
  ^(%0: f32[2]):
    %1: f32[2] = add(%0, %0)
    return(%1)
  }
  return(%y)
})";
  AnyExecutor any;
  for (llvm::StringRef text : {llvm::StringRef(branch), llvm::StringRef(loop)}) {
    std::string name = text == branch ? "'if' op" : "'while' op";
    EXPECT_THAT(errorOf(text, {device}, {&any}, pipelineOf("execution", any)),
                AllOf(HasSubstr("t.trace:2:"), HasSubstr(name), HasSubstr("does not run it"),
                      HasSubstr("chosen at run time")));
    EXPECT_THAT(compileError(text), AllOf(HasSubstr("t.trace:2:"), HasSubstr(name)));
  }
}

// An op that the host has no kernel for is named, with what to register.
TEST_F(CompileErrorsTest, Convolution) {
  llvm::Expected<Sample> sample = loadSample("convnet", registry);
  ASSERT_TRUE(bool(sample)) << llvm::toString(sample.takeError());
  llvm::Expected<Program> program =
      compile(std::move(sample->pair), device, &host, pipelineOf(usualPipeline.str(), host));
  ASSERT_FALSE(bool(program));
  EXPECT_THAT(llvm::toString(program.takeError()),
              AllOf(HasSubstr("'convolution' op"), HasSubstr("no kernel for 'convolution'"),
                    HasSubstr("HostExecutor::add")));
}

// Values of opaque types are named, be they arguments or results of ops.
TEST_F(CompileErrorsTest, OpaqueTypes) {
  AnyExecutor any;
  Pipeline claims = pipelineOf("execution", any);
  EXPECT_THAT(errorOf("trace @t(%p: !test.page) {\n  test.close(%p)\n  return()\n}", {device},
                      {&any}, claims),
              AllOf(HasSubstr("'%p'"), HasSubstr("!test.page"), HasSubstr("opaque")));
  EXPECT_THAT(errorOf("trace @t() {\n  %p: !test.page = test.open()\n  return(%p)\n}", {device},
                      {&any}, claims),
              AllOf(HasSubstr("t.trace:2:"), HasSubstr("'%p'"), HasSubstr("!test.page")));
}

// All that is wrong with a pair is said at once.
TEST_F(CompileErrorsTest, Several) {
  std::string error = errorOf(R"(trace @t(%x: f32[2]@host:7, %p: !test.page) {
  %y: f32[2]@host:7 = neg(%x)
  return(%y)
})",
                              {device}, {&host}, [](TracePair pair, const SymbolBindings &) {
                                return withoutPasses(std::move(pair));
                              });
  EXPECT_THAT(error, AllOf(HasSubstr("'%x'"), HasSubstr("'%p'"), HasSubstr("'neg' op")));
}
