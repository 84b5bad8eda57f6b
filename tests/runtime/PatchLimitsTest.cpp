//===- PatchLimitsTest.cpp - Kernels that hide where their memory is ------===//
//
// A kernel for `neg` whose parameters are not plain addresses: computed from them, with noise among
// them, with their alignment among them. Whatever it is, results are right wherever things lie.
//
//===----------------------------------------------------------------------===//

#include "ProgramTesting.h"

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

/// What a kernel's parameters are beside its addresses.
enum class Habit { Plain, Hides, Noisy, Aligns, Refuses };

class OddKernel : public Kernel {
public:
  OddKernel(Habit habit, int64_t count) : habit_(habit), count_(count) {}

  llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
    static uint64_t noise = 1;
    Block block{};
    block.mask = habit_ == Habit::Hides ? ~uint64_t(0) : 0;
    block.from = uint64_t(args.operands[0].i64) ^ block.mask;
    block.to = uint64_t(args.results[0].i64) ^ block.mask;
    block.count = uint32_t(count_);
    if (habit_ == Habit::Noisy)
      block.padding = uint32_t(noise += 0x9e3779b9);
    if (habit_ == Habit::Aligns)
      block.alignment = uint64_t(args.operands[0].i64 | args.results[0].i64) % 256;
    if (uint64_t bytes = count_ * sizeof(float);
        habit_ == Habit::Refuses && block.from < block.to + bytes && block.to < block.from + bytes)
      return makeDeviceError(DeviceErrorKind::InvalidArgument, "memory overlaps");
    KernelLaunch launch;
    launch.function = reinterpret_cast<const void *>(&run);
    launch.parameters = {reinterpret_cast<const std::byte *>(&block), sizeof(block)};
    return sink.launch(launch);
  }

private:
  struct Block {
    uint64_t mask, from, to, alignment;
    uint32_t count, padding;
  };

  static void run(const std::byte *parameters) {
    const Block &block = *reinterpret_cast<const Block *>(parameters);
    auto *from = reinterpret_cast<const float *>(block.from ^ block.mask);
    auto *to = reinterpret_cast<float *>(block.to ^ block.mask);
    if ((block.alignment & 255) != 0 &&
        block.alignment != ((block.from | block.to) & 255)) // as if it read wide words
      return;
    for (uint32_t i = 0; i < block.count; ++i)
      to[i] = -from[i];
  }

  Habit habit_;
  int64_t count_;
};

/// Claims `neg`.
class OddExecutor : public Executor {
public:
  Habit habit = Habit::Plain;

  llvm::StringRef name() const override { return "odd"; }
  ClaimAnswer claim(const Trace &trace, OpId op) const override {
    ClaimAnswer answer;
    answer.accepted = trace.op(op).name() == "neg";
    answer.why = answer.accepted ? "" : "only 'neg'";
    return answer;
  }
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op, const DeviceRef &) const override {
    const TensorType &type = *trace.type(trace.op(op).operand(0)).asTensor();
    return std::make_shared<OddKernel>(habit, constantDims(type.shape)[0]);
  }
};

class PatchLimitsTest : public ProgramFixture {
protected:
  PatchLimitsTest() : ProgramFixture({.randomOrderSeed = 3, .poison = true}) {}

  std::unique_ptr<Program> compiledFor(Habit habit, ProgramOptions options = steadyOptions()) {
    odd.habit = habit;
    options.poison = options.checkGraphs = true;
    std::vector<const Executor *> executors = {&odd, &host};
    return std::make_unique<Program>(cantFail(
        compile(parse(R"(trace @t(%x: f32[8], %w: f32[8] parameter) {
  %n: f32[8] = neg(%x)
  %m: f32[8] = mul(%n, %w)
  %r: f32[8] = neg(%m)
  %s: f32[8] = add(%w, %x)
  return(%r, %s)
})"),
                device, executors, pipelineOf(patchingPipeline.str(), executors), options)));
  }
  /// `offset` bytes into memory of its own.
  Tensor at(size_t offset, float value) {
    StorageRef storage = cantFail(Storage::allocate(device, 32 + offset));
    std::fill_n(reinterpret_cast<float *>(storage->data() + offset), 8, value);
    return Tensor(std::move(storage), int64_t(offset), DType::F32, {8}, {1});
  }
  /// Calls with `x` and `w`, held results, and checks the numbers.
  void call(Program &program, const Tensor &x, const Tensor &w, float a, float b) {
    auto results = forward(program, {x, w});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(valuesOf(results[0]), Doubles(8, a * b));
    EXPECT_EQ(valuesOf(results[1]), Doubles(8, a + b));
    held.push_back(std::move(results));
    if (held.size() > 2)
      held.erase(held.begin());
  }

  OddExecutor odd;
  std::vector<llvm::SmallVector<Value>> held;
};

// Plain addresses are followed wherever they go.
TEST_F(PatchLimitsTest, Plain) {
  auto program = compiledFor(Habit::Plain);
  for (unsigned i = 0; i < 20; ++i)
    call(*program, at(16 * (i % 5), float(i)), at(16 * (i % 3), 2), float(i), 2);
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().recaptures, 0u);
  EXPECT_THAT(program->takeRemarks(), IsEmpty());
}

// What is hidden is not patched: the graph is captured anew when it moves, a remark names the
// buffer, and each set of results has a graph. What other nodes use is patched.
TEST_F(PatchLimitsTest, Hidden) {
  auto program = compiledFor(Habit::Hides);
  for (unsigned i = 0; i < 20; ++i)
    call(*program, at(16 * (i % 5), float(i)), at(0, 2), float(i), 2);
  EXPECT_GT(program->counters().recaptures, 10u);
  EXPECT_GT(program->counters().captures, 1u) << "by where results are";
  EXPECT_LE(program->counters().captures, 4u);
  EXPECT_THAT(program->takeRemarks(),
              ElementsAre(testing::AllOf(HasSubstr("captured anew when %x moves"),
                                         HasSubstr("computed from it"), HasSubstr("'copied'"))));
  EXPECT_THAT(program->takeRemarks(), IsEmpty()) << "said once";

  // With x where it was, only w moves.
  held.clear();
  Tensor x = at(0, 5);
  call(*program, x, at(0, 2), 5, 2);
  uint64_t recaptures = program->counters().recaptures;
  held.clear();
  for (unsigned i = 0; i < 5; ++i) {
    call(*program, x, at(16 * i, float(i)), 5, float(i));
    held.clear();
  }
  EXPECT_EQ(program->counters().recaptures, recaptures);
}

// Noise is told from addresses.
TEST_F(PatchLimitsTest, Noise) {
  auto program = compiledFor(Habit::Noisy);
  for (unsigned i = 0; i < 20; ++i)
    call(*program, at(16 * (i % 5), float(i)), at(16 * (i % 3), 2), float(i), 2);
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().recaptures, 0u);
}

// Where a kernel depends on alignment, addresses of the same alignment are followed, others are
// captured.
TEST_F(PatchLimitsTest, Alignment) {
  auto program = compiledFor(Habit::Aligns);
  for (unsigned i = 0; i < 10; ++i)
    call(*program, at(0, float(i)), at(0, 2), float(i), 2);
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().recaptures, 0u);
  EXPECT_GT(program->counters().patches, 5u);
  for (unsigned i = 1; i < 5; ++i)
    call(*program, at(16 * i, float(i)), at(0, 2), float(i), 2);
  EXPECT_EQ(program->counters().recaptures, 4u);
  EXPECT_THAT(program->takeRemarks(), ElementsAre(HasSubstr("modulo 256")));
}

// A kernel that looks whether its memory overlaps, as libraries do, is followed like any other: it
// is looked at with memory that is large enough.
TEST_F(PatchLimitsTest, RefusesOverlap) {
  odd.habit = Habit::Refuses;
  std::vector<const Executor *> executors = {&odd, &host};
  ProgramOptions options = steadyOptions();
  options.poison = options.checkGraphs = true;
  Program program =
      cantFail(compile(parse(R"(trace @t(%x: f32[100000]) {
  %n: f32[100000] = neg(%x)
  return(%n)
})"),
                       device, executors, pipelineOf(patchingPipeline.str(), executors), options));
  for (unsigned i = 0; i < 10; ++i) {
    Tensor x = floats(std::vector<float>(100000, float(i)));
    held.push_back(forward(program, {x}));
    ASSERT_EQ(held.back().size(), 1u);
    EXPECT_EQ(valuesOf(held.back()[0]), Doubles(100000, -double(i)));
  }
  EXPECT_EQ(program.counters().captures, 1u);
  EXPECT_EQ(program.counters().recaptures, 0u);
  EXPECT_EQ(program.counters().patches, 9u);
  EXPECT_THAT(program.takeRemarks(), IsEmpty());
}

// Hooks are called around captures that are made anew, too, and only around these; the error of one
// lets go of the graph.
TEST_F(PatchLimitsTest, Hooks) {
  unsigned captures = 0, warmUps = 0;
  bool fails = false;
  ProgramOptions options = steadyOptions();
  options.hooks.afterCapture = [&](const HookedRegion &, bool succeeded) {
    captures += succeeded;
    return fails ? makeError("the hook is out of luck") : llvm::Error::success();
  };
  options.hooks.beforeWarmUp = [&](const HookedRegion &) {
    ++warmUps;
    return llvm::Error::success();
  };
  auto program = compiledFor(Habit::Aligns, options);
  for (unsigned i = 0; i < 5; ++i)
    call(*program, at(0, float(i)), at(0, 2), float(i), 2);
  EXPECT_EQ(captures, 1u);
  for (unsigned i = 1; i < 5; ++i)
    call(*program, at(16 * i, float(i)), at(0, 2), float(i), 2);
  EXPECT_EQ(captures, 5u);
  EXPECT_EQ(warmUps, 1u);
  fails = true;
  EXPECT_THAT(forwardError(*program, {at(128, 1), at(0, 2)}), HasSubstr("out of luck"));
  EXPECT_EQ(program->counters().entries, 0u);
  fails = false;
  call(*program, at(128, 3), at(0, 2), 3, 2);
  EXPECT_EQ(warmUps, 2u);
}

// What can be patched is proven, whatever else cannot, and the proof leaves everything as it was.
TEST_F(PatchLimitsTest, Verified) {
  for (Habit habit : {Habit::Plain, Habit::Hides, Habit::Noisy, Habit::Aligns}) {
    ProgramOptions options = steadyOptions();
    options.verifyPatches = true;
    auto program = compiledFor(habit, options);
    for (unsigned i = 0; i < 10; ++i)
      call(*program, at(16 * (i % 5), float(i)), at(16 * (i % 3), 2), float(i), 2);
    EXPECT_GT(program->counters().replays, 5u);
  }
}

// An exec takes another graph's parameters while launches of it are in flight.
TEST(PatchLimitsAsynchronousTest, RecapturesInFlight) {
  CoreRegistry registry;
  HostExecutor host;
  OddExecutor odd;
  odd.habit = Habit::Hides;
  DeviceRef device = createHostDevice({.asynchronous = true});
  std::unique_ptr<Stream> stream = cantFail(device->createStream());
  std::vector<const Executor *> executors = {&odd, &host};
  Program program =
      cantFail(compile(cantFail(parsePair("trace @t(%x: f32[8]) {\n  %n: f32[8] = neg(%x)\n"
                                          "  %m: f32[8] = add(%n, %x)\n  return(%m)\n}",
                                          "t", registry)),
                       device, executors, pipelineOf(patchingPipeline.str(), executors)));
  std::vector<Value> kept;
  std::vector<llvm::SmallVector<Value>> all;
  for (unsigned i = 0; i < 30; ++i) {
    Tensor x = cantFail(Tensor::empty(device, DType::F32, {8}));
    std::fill_n(x.ref().as<float>(), 8, float(i));
    kept.push_back(x);
    llvm::SmallVector<Value> results;
    cantFail(program.forward(*stream, {x}, results));
    all.push_back(std::move(results));
  }
  cantFail(stream->synchronize());
  for (const auto &results : all)
    EXPECT_EQ(doublesOf(*results[0].asTensor()), Doubles(8, 0));
}

} // namespace
