//===- HooksTesting.h - What first calls do, and only they ------*- C++ -*-===//
//
// Bodies of tests of hooks around captures and first runs, and of what these leave behind, for any
// device.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CallTesting.h"

namespace rondo {

/// Another executor, whose kernels for some ops wait for the device, which a capture forbids; their
/// claims do not say so.
class RefusingExecutor : public Executor {
public:
  RefusingExecutor(const Executor &base, std::set<std::string> ops)
      : base_(base), ops_(std::move(ops)) {}

  llvm::StringRef name() const override { return base_.name(); }
  ClaimAnswer claim(const Trace &trace, OpId op) const override { return base_.claim(trace, op); }
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                    const DeviceRef &device) const override {
    llvm::Expected<KernelRef> kernel = base_.compile(trace, op, device);
    if (!kernel || !ops_.count(trace.op(op).name().str()))
      return kernel;
    return std::make_shared<RefusingKernel>(std::move(*kernel));
  }

private:
  class RefusingKernel : public Kernel {
  public:
    explicit RefusingKernel(KernelRef base) : base_(std::move(base)) {}
    llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
      if (llvm::Error error = sink.synchronize())
        return error;
      return base_->enqueue(sink, args);
    }

  private:
    KernelRef base_;
  };

  const Executor &base_;
  const std::set<std::string> ops_;
};

/// A forward with a buffer that it adds to and a dropout, and a backward that accumulates the
/// gradient and makes a step with momentum.
inline constexpr llvm::StringLiteral statefulStep = R"(
pair @step {
  forward @forward(%x: f32[64], %state: f32[64] buffer, %w: f32[64] parameter) {
    %n: f32[64] = add_(%state, %x)
    %r: rng = generator_read()
    %d: f32[64], %m: bool[64] = dropout(%n, %r) {offset = 0, p = 0.5}
    %a: f32[64] = tanh(%d)
    %p: f32[64] = mul(%a, %w)
    %y: f32[64] = add(%p, %x)
    generator_advance() {count = 64}
    return(%y, %a saved #0)
  }
  backward @backward(%a: f32[64] saved #0, %t: f32[64], %grad: f32[64] static, %w: f32[64] parameter, %v: f32[64] buffer) {
    %g: f32[64] = mul(%t, %a)
    %sum: f32[64] = add_(%grad, %g)
    %e: f32[64] = tanh(%sum)
    %w1: f32[64], %v1: f32[64] = sgd_(%w, %e, %v) {lr = 0.1, momentum = 0.9}
    return(%sum, %w1, %v1)
  }
})";

class HooksFixture : public CallFixture {
protected:
  /// Notes what is called, such as `forward 0 before capture`, and fails where it is told to.
  RegionHooks recording() {
    auto before = [this](std::string what) {
      return [this, what](const HookedRegion &region) { return note(region, "before " + what); };
    };
    auto after = [this](std::string what) {
      return [this, what](const HookedRegion &region, bool succeeded) {
        return note(region, "after " + what + (succeeded ? "" : " that failed"));
      };
    };
    return {before("capture"), after("capture"), before("warm-up"), after("warm-up")};
  }
  std::vector<std::string> takeLog() { return std::exchange(log, {}); }

  /// What the hooks say of the first run of a region.
  static std::vector<std::string> firstRun(const std::string &region, bool isCaptured = true) {
    return {region + " before capture",
            region + " after capture" + (isCaptured ? "" : " that failed"),
            region + " before warm-up", region + " after warm-up"};
  }

  Program compileHooked(llvm::StringRef text, RegionHooks hooks,
                        std::vector<std::string> deny = {}) {
    CUDAGraphTransform transform(graphOptions(std::move(deny)));
    ProgramOptions options = steadyOptions();
    options.hooks = std::move(hooks);
    options.checkGraphs = true;
    return compileWith(transform, text, options);
  }

  /// All that statefulStep writes to, and the program that does.
  struct Stateful {
    Program program;
    Tensor state, w, v, grad;
  };
  /// With kernels that cannot be captured for the ops of the names in `refusing`.
  Stateful makeStateful(std::set<std::string> refusing = {},
                        ProgramOptions options = steadyOptions()) {
    RunTarget refusingTarget{device, {}};
    for (const Executor *executor : target.executors) {
      refusing_.push_back(std::make_unique<RefusingExecutor>(*executor, refusing));
      refusingTarget.executors.push_back(refusing_.back().get());
    }
    options.checkGraphs = true;
    Program program = cantFail(compile(parse(statefulStep), device, refusingTarget.executors,
                                       pipelineOf(smallRegions.str(), refusingTarget.executors),
                                       std::move(options)));
    cantFail(program.generators()->set(*stream, "default", {7, 100}));
    return {std::move(program), filled(device, 0, 64), filled(device, 1, 64), filled(device, 0, 64),
            filled(device, 0, 64)};
  }
  /// One forward and backward; all that they give and leave.
  std::vector<std::vector<double>> stepOf(Stateful &made, float x) {
    SavedState saved;
    Results results = forward(made.program, {filled(device, x, 64), made.state, made.w}, &saved);
    backward(made.program, std::move(saved), {filled(device, 2, 64), made.grad, made.w, made.v});
    RNGState state = cantFail(made.program.generators()->get(*stream, "default"));
    return {numbersOn(results[0]), numbersOn(made.state), numbersOn(made.w),
            numbersOn(made.v),     numbersOn(made.grad),  {double(state.offset)}};
  }

  /// 12: whatever the first calls capture, fail to capture and split, each call advances in-place
  /// state, the generator, gradients and the optimiser's state once: as eager calls, bit for bit.
  void advanceOnce() {
    for (const std::set<std::string> &refusing :
         {std::set<std::string>{}, {"tanh"}, {"add_"}, {"dropout"}, {"sgd_"}, {"tanh", "sgd_"}})
      for (CaptureFailure policy : {CaptureFailure::Split, CaptureFailure::Eager}) {
        SCOPED_TRACE(testing::PrintToString(refusing));
        ProgramOptions options = steadyOptions();
        options.onCaptureFailure = policy;
        Stateful eager = makeStateful(), made = makeStateful(refusing, options);
        eager.program.setEager(true);
        for (unsigned i = 1; i <= 5; ++i) {
          std::vector<std::vector<double>> expected = stepOf(eager, float(i) / 8);
          EXPECT_EQ(stepOf(made, float(i) / 8), expected) << "step " << i;
          EXPECT_EQ(expected.back().front(), 100 + 64 * i);
        }
        CacheCounters counters = made.program.counters();
        EXPECT_EQ(counters.failures > 0, !refusing.empty());
        if (policy == CaptureFailure::Split) {
          EXPECT_GT(counters.replays, 0u);
        }
      }
  }

  /// Hooks that allocate, submit work to another stream and to the call's, and wait for it, are
  /// called while nothing is captured, and disturb nothing.
  void useTheDevice() {
    unsigned calls = 0;
    std::unique_ptr<Stream> other = cantFail(device->createStream());
    auto use = [&]() -> llvm::Error {
      ++calls;
      EXPECT_EQ(stream->captureStatus(), CaptureStatus::None);
      Tensor a = filled(device, float(calls), 1000), b = filled(device, 0, 1000);
      for (Stream *submitted : {other.get(), stream.get()}) {
        if (llvm::Error error = submitted->copy(b.data(), a.data(), a.extentBytes()))
          return error;
        if (llvm::Error error = submitted->synchronize())
          return error;
        EXPECT_EQ(numbersOn(b), std::vector<double>(1000, calls));
      }
      return device->synchronize();
    };
    ProgramOptions options = steadyOptions();
    options.hooks.beforeCapture =
        options.hooks.beforeWarmUp = [&](const HookedRegion &) { return use(); };
    options.hooks.afterCapture =
        options.hooks.afterWarmUp = [&](const HookedRegion &, bool) { return use(); };
    Stateful eager = makeStateful(), made = makeStateful({}, options);
    eager.program.setEager(true);
    for (unsigned i = 1; i <= 4; ++i) {
      std::vector<std::vector<double>> expected = stepOf(eager, float(i));
      EXPECT_EQ(stepOf(made, float(i)), expected) << "step " << i;
      EXPECT_EQ(calls, 8u) << "four for each side, in the first step";
    }
    EXPECT_EQ(made.program.counters().replays, 6u);
  }

  std::vector<std::string> log;
  std::string failsAt; ///< the note at which a hook fails

private:
  llvm::Error note(const HookedRegion &region, const std::string &what) {
    EXPECT_EQ(region.device, device->device());
    EXPECT_GT(region.numOps, 0u);
    log.push_back(sideName(region.side).str() + " " + std::to_string(region.id) + " " + what);
    return log.back() == failsAt ? makeError("the hook is out of luck") : llvm::Error::success();
  }

  std::vector<std::unique_ptr<RefusingExecutor>> refusing_;
};

} // namespace rondo
