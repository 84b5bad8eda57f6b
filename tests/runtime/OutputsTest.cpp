//===- OutputsTest.cpp - Results in the caller's memory -------------------===//

#include "ProgramTesting.h"

#include <deque>

using namespace rondo;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

/// `%y` is saved, too, and `%v` is a view of it.
constexpr llvm::StringLiteral step = R"(
pair @step {
  forward @fw(%x: f32[4], %w: f32[4] parameter) {
    %h: f32[4] = mul(%x, %w)
    %y: f32[4] = exp(%h)
    %v: f32[2] = slice(%y) {dim = 0, end = 2}
    %z: f32[4] = add(%y, %x)
    return(%y, %v, %z, %x, none, %y saved #0)
  }
  backward @bw(%g: f32[4], %y: f32[4] saved #0) {
    %a: f32[4] = mul(%g, %y)
    %b: f32[4] = add(%a, %g)
    return(%b)
  }
})";

class OutputsTest : public ProgramFixture {
protected:
  explicit OutputsTest()
      : ProgramFixture({.randomOrderSeed = 5, .poison = true}),
        program(compiled(step, poisoned(), patchingPipeline)) {}

  static ProgramOptions poisoned() {
    ProgramOptions options;
    options.poison = true;
    return options;
  }
  Tensor nans() const { return floats(std::vector<float>(4, NAN)); }

  llvm::SmallVector<Value> forwardInto(llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs,
                                       SavedState *saved = nullptr) {
    llvm::SmallVector<Value> results;
    if (llvm::Error error = program->forwardInto(*stream, inputs, outputs, results, saved))
      ADD_FAILURE() << llvm::toString(std::move(error));
    return results;
  }
  /// What the forward with these outputs fails with.
  std::string outputError(llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs) {
    llvm::SmallVector<Value> results(1);
    std::string text = llvm::toString(program->forwardInto(*stream, inputs, outputs, results));
    EXPECT_THAT(results, IsEmpty());
    return text;
  }

  std::unique_ptr<Program> program;
  Tensor w = floats({1, 1, 1, 1});
};

// Results are written to the tensors that the caller gives, whichever they are, by one graph;
// results for which there is none, and views of those that were given, are as ever.
TEST_F(OutputsTest, AreWrittenTo) {
  ASSERT_TRUE(program);
  for (unsigned i = 0; i < 6; ++i) {
    Tensor x = floats({0, 0, float(i), 0}), y = nans(), z = nans();
    bool givesZ = i % 2;
    auto results = forwardInto({x, w}, {y, {}, givesZ ? z : Tensor(), {}, {}});
    ASSERT_THAT(results, SizeIs(5));
    std::vector<double> expected = {1, 1, double(std::exp(float(i))), 1};
    EXPECT_EQ(doublesOf(y), expected);
    EXPECT_EQ(results[0].asTensor()->data(), y.data());
    EXPECT_EQ(results[0].asTensor()->storage(), y.storage());
    EXPECT_EQ(results[1].asTensor()->data(), y.data()) << "a view of it";
    EXPECT_EQ(results[2].asTensor()->data() == z.data(), givesZ);
    EXPECT_EQ(valuesOf(results[2])[2], expected[2] + i);
    EXPECT_EQ(results[3].asTensor()->data(), x.data());
  }
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().recaptures, 0u);
  EXPECT_EQ(program->counters().replays, 5u);
  EXPECT_EQ(program->counters().copiedBytes, 0u);
}

// A result that is saved is saved where the caller has it, in every interleaving; the caller may
// let go of it.
TEST_F(OutputsTest, AreSaved) {
  ASSERT_TRUE(program);
  std::deque<std::pair<float, SavedState>> flows;
  auto backwardOf = [&](std::pair<float, SavedState> flow) {
    auto gradients = backward(*program, std::move(flow.second), {floats({1, 2, 3, 4})});
    double y = std::exp(flow.first);
    std::vector<double> values = valuesOf(gradients[0]);
    ASSERT_THAT(values, SizeIs(4));
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_NEAR(values[i], (i + 1) * (y + 1), 1e-5);
  };
  for (unsigned i = 0; i < 12; ++i) {
    SavedState saved;
    float x = i % 3 ? 0 : 1;
    Tensor y = i % 4 ? nans() : Tensor();
    forwardInto({floats({x, x, x, x}), w}, {y, {}, {}, {}, {}}, &saved);
    flows.emplace_back(x, std::move(saved));
    if (i % 2) {
      backwardOf(std::move(flows.back()));
      flows.pop_back();
    }
  }
  for (auto &flow : flows)
    backwardOf(std::move(flow));
}

// What was saved can be looked at, and the backward's results can be placed, too.
TEST_F(OutputsTest, OfTheBackward) {
  ASSERT_TRUE(program);
  Tensor y = nans(), b = nans();
  SavedState saved;
  forwardInto({floats({0, 0, 0, 0}), w}, {y, {}, {}, {}, {}}, &saved);
  auto values = cantFail(program->savedValues(saved));
  ASSERT_THAT(values, SizeIs(1));
  EXPECT_EQ(values[0].value.asTensor()->data(), y.data());
  llvm::SmallVector<Value> results;
  std::string error = llvm::toString(
      program->backwardInto(*stream, SavedState(), {floats({1, 2, 3, 4})}, b, results));
  EXPECT_THAT(error, HasSubstr("the SavedState is empty"));
  EXPECT_THAT(llvm::toString(program->backwardInto(*stream, std::move(saved),
                                                   {floats({1, 2, 3, 4})}, y, results)),
              AllOf(HasSubstr("output #0 for result '%b' of the backward"),
                    HasSubstr("shares memory with what is saved for '%y'")));
  ASSERT_TRUE(saved.isValid()) << "nothing ran";
  cantFail(program->backwardInto(*stream, std::move(saved), {floats({1, 2, 3, 4})}, b, results));
  EXPECT_THAT(doublesOf(b), ElementsAre(2, 4, 6, 8));
}

// A program all of whose results are placed has no memory for results.
TEST_F(OutputsTest, AllocateNothing) {
  auto small = compiled(R"(trace @t(%x: f32[1024]) {
  %y: f32[1024] = exp(%x)
  return(%y)
})");
  ASSERT_TRUE(small);
  Tensor x = floats(std::vector<float>(1024, 0)), y = floats(std::vector<float>(1024, 5));
  uint64_t before = device->memoryUse().bytes;
  llvm::SmallVector<Value> results;
  for (unsigned i = 0; i < 3; ++i)
    cantFail(small->forwardInto(*stream, {x}, y, results));
  EXPECT_EQ(doublesOf(y)[1023], 1);
  EXPECT_EQ(device->memoryUse().bytes, before);
  cantFail(small->forward(*stream, {x}, results));
  EXPECT_EQ(device->memoryUse().bytes, before + 4096);
}

// Outputs that do not fit are errors that name the result and say what is wrong; nothing runs.
TEST_F(OutputsTest, BadOutputs) {
  ASSERT_TRUE(program);
  Tensor x = floats({0, 0, 0, 0}), y = nans(), wide = floats(std::vector<float>(9, NAN));
  auto part = [&](int64_t byteOffset) {
    return Tensor(wide.storage(), byteOffset, DType::F32, {4}, {1});
  };
  struct Case {
    std::vector<Tensor> outputs;
    const char *error;
  };
  Tensor none;
  const Case cases[] = {
      {{y}, "the forward gives 5 results, got 1 outputs for them"},
      {{floats({1, 2, 3}), none, none, none, none},
       "output #0 for result '%y' of the forward: expected f32[4], got "},
      {{cantFail(Tensor::empty(device, DType::I32, {4})), none, none, none, none},
       "expected f32[4], got "},
      {{Tensor(wide.storage(), 0, DType::F32, {4}, {2}), none, none, none, none},
       "expected f32[4], got "},
      {{part(4), none, none, none, none}, "a multiple of 16 bytes"},
      {{x, none, none, none, none}, "it shares memory with argument #0 '%x' of the forward"},
      {{part(16), none, part(16), none, none},
       "output #2 for result '%z' of the forward: it shares memory with output #0"},
      {{none, floats({1, 2}), none, none, none}, "the result is a part of %y"},
      {{none, none, none, y, none}, "the result shares memory with %x"},
      {{none, none, none, none, y}, "the result is missing"},
  };
  for (const Case &item : cases)
    EXPECT_THAT(outputError({x, w}, item.outputs), HasSubstr(item.error));
  EXPECT_TRUE(std::isnan(doublesOf(y)[0]));
  EXPECT_EQ(program->counters().eagerRuns, 0u);

  DeviceRef other = createHostDevice({.index = 1});
  Tensor elsewhere = cantFail(Tensor::empty(other, DType::F32, {4}));
  EXPECT_THAT(outputError({x, w}, {elsewhere, none, none, none, none}),
              HasSubstr("expected a tensor on host, got one on host:1"));
  forwardInto({x, w}, {y, none, none, none, none});
  EXPECT_EQ(doublesOf(y)[0], 1);
}

} // namespace
