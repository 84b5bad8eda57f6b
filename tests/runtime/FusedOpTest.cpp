//===- FusedOpTest.cpp - Groups that an executor runs as one --------------===//

#include "ProgramTesting.h"

#include <atomic>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

/// Runs `exp(neg(x))` on row-major f32 tensors as one kernel, which uses its workspace.
class ExpOfNegExecutor : public Executor {
public:
  llvm::StringRef name() const override { return "fuser"; }
  ClaimAnswer claim(const Trace &, OpId) const override {
    return ClaimAnswer::decline("it takes groups alone");
  }
  void claimGroups(const Trace &trace, BodyId body,
                   std::vector<GroupClaim> &groups) const override {
    for (OpId id : trace.ops(body)) {
      const Op &op = trace.op(id);
      OpId before = op.name() == "exp" ? trace.definingOp(op.operand(0)) : OpId();
      if (before && trace.op(before).name() == "neg")
        groups.push_back({{before, id}, ClaimAnswer::accept(workspaceBytes)});
    }
  }
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op, const DeviceRef &) const override {
    EXPECT_EQ(trace.op(op).name(), "fused");
    EXPECT_EQ(trace.op(op).results().size(), 1u);
    const TensorType &type = trace.tensorType(trace.op(op).result());
    return std::make_shared<ExpOfNegKernel>(type.numElements().value(), numEnqueued);
  }

  static constexpr uint64_t workspaceBytes = 64;
  mutable std::atomic<unsigned> numEnqueued = 0;

private:
  class ExpOfNegKernel : public Kernel {
  public:
    ExpOfNegKernel(int64_t count, std::atomic<unsigned> &numEnqueued)
        : count_(count), numEnqueued_(numEnqueued) {}
    llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
      ++numEnqueued_;
      Slot slots[4];
      slots[0].address = args.operands[0].address;
      slots[1].address = args.results[0].address;
      slots[2].address = args.workspace;
      slots[3].i64 = count_;
      KernelLaunch launch;
      launch.function = reinterpret_cast<const void *>(&run);
      launch.parameters = {reinterpret_cast<const std::byte *>(slots), sizeof slots};
      return sink.launch(launch);
    }

  private:
    static void run(const std::byte *parameters) {
      const Slot *slots = reinterpret_cast<const Slot *>(parameters);
      auto *x = static_cast<const float *>(slots[0].address);
      auto *y = static_cast<float *>(slots[1].address);
      std::memset(slots[2].address, 1, workspaceBytes);
      for (int64_t i = 0; i < slots[3].i64; ++i)
        y[i] = std::exp(-x[i]);
    }

    int64_t count_;
    std::atomic<unsigned> &numEnqueued_;
  };
};

class FusedOpTest : public ProgramFixture {
protected:
  llvm::Expected<Program> compileWithFuser(llvm::StringRef text, llvm::StringRef pipeline) const {
    std::vector<const Executor *> executors = {&fuser, &host};
    ProgramOptions options = steadyOptions();
    options.checkGraphs = options.poison = true;
    return compile(parse(text), device, executors, pipelineOf(pipeline.str(), executors), options);
  }

  ExpOfNegExecutor fuser;
};

constexpr llvm::StringLiteral text = R"(trace @t(%x: f32[3]) {
  %a: f32[3] = relu(%x)
  %b: f32[3] = neg(%a)
  %c: f32[3] = exp(%b)
  %d: f32[3] = add(%c, %a)
  return(%d)
})";

// A group is one step of the executor that claims it, with its workspace, in regions and outside.
TEST_F(FusedOpTest, IsOneStep) {
  for (llvm::StringRef pipeline : {"execution,cuda-graph{min-ops=1},del", "execution,del"}) {
    SCOPED_TRACE(pipeline.str());
    llvm::Expected<Program> program = compileWithFuser(text, pipeline);
    ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
    EXPECT_GE(program->memory(Side::Forward).arena, ExpOfNegExecutor::workspaceBytes);
    unsigned before = fuser.numEnqueued;
    for (float x : {1.f, 2.f, -3.f}) {
      Value input = floats({x, 0, -x});
      llvm::SmallVector<Value> results = forward(*program, {input});
      ASSERT_EQ(results.size(), 1u);
      cantFail(stream->synchronize());
      auto value = [](float v) { return double(std::exp(-std::max(v, 0.f)) + std::max(v, 0.f)); };
      EXPECT_THAT(valuesOf(results[0]), ElementsAre(value(x), value(0), value(-x)));
    }
    EXPECT_GE(fuser.numEnqueued, before + 1);
  }
}

// A `fused` op of an executor that does not compile it is an error at the op.
TEST_F(FusedOpTest, OfAnotherExecutorIsAnError) {
  EXPECT_THAT(compileError(R"(trace @t(%x: f32[3]) claimed {
  %y: f32[3] = fused(%x) claim("host") {
  ^(%a: f32[3]):
    %b: f32[3] = neg(%a) claim("host")
    return(%b)
  }
  return(%y)
})",
                           "del"),
              HasSubstr("'fused' op: executor 'host' has no kernel for 'fused'"));
}

} // namespace
