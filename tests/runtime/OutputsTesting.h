//===- OutputsTesting.h - Results in the caller's memory --------*- C++ -*-===//

#pragma once

#include "EveryDeviceTesting.h"

#include <deque>

namespace rondo {

/// `%y` is saved, too, and `%v` is a view of it.
inline constexpr llvm::StringLiteral stepWithOutputs = R"(
pair @step {
  forward @fw(%x: f32[4], %w: f32[4] parameter) {
    %h: f32[4] = mul(%x, %w)
    %y: f32[4] = add(%h) {scalar = 1}
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

class OutputsTest : public EveryDeviceTest {
protected:
  void prepare() override {
    program = compileText(stepWithOutputs, poisoned(),
                          "execution,cuda-graph{min-ops=1 inputs=patched},del");
    w = filled(device, 1, 4);
  }

  Tensor nans() const { return filled(device, NAN, 4); }

  Results forwardInto(llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs,
                      SavedState *saved = nullptr) {
    Results results;
    EXPECT_EQ(textOf(program->forwardInto(*stream, inputs, outputs, results, saved)), "");
    cantFail(stream->synchronize());
    return results;
  }
  /// What the forward with these outputs fails with.
  std::string outputError(llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs) {
    Results results(1);
    std::string text = textOf(program->forwardInto(*stream, inputs, outputs, results));
    EXPECT_THAT(results, testing::IsEmpty());
    return text;
  }

  std::optional<Program> program;
  Tensor w;
};

// Results are written to the tensors that the caller gives, whichever they are, by one graph;
// results for which there is none, and views of those that were given, are as ever.
TEST_P(OutputsTest, AreWrittenTo) {
  for (unsigned i = 0; i < 6; ++i) {
    Tensor x = tensorOf(device, {0, 0, float(i), 0}), y = nans(), z = nans();
    bool givesZ = i % 2;
    auto results = forwardInto({x, w}, {y, {}, givesZ ? z : Tensor(), {}, {}});
    ASSERT_THAT(results, testing::SizeIs(5));
    std::vector<double> expected = {1, 1, double(i + 1), 1};
    EXPECT_EQ(numbersOn(y), expected);
    EXPECT_EQ(results[0].asTensor()->data(), y.data());
    EXPECT_EQ(results[0].asTensor()->storage(), y.storage());
    EXPECT_EQ(results[1].asTensor()->data(), y.data()) << "a view of it";
    EXPECT_EQ(results[2].asTensor()->data() == z.data(), givesZ);
    EXPECT_EQ(numbersOn(results[2])[2], expected[2] + i);
    EXPECT_EQ(results[3].asTensor()->data(), x.data());
  }
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().recaptures, 0u);
  EXPECT_EQ(program->counters().replays, 5u);
  EXPECT_EQ(program->counters().copiedBytes, 0u);
}

// A result that is saved is saved where the caller has it, in every interleaving; the caller may
// let go of it.
TEST_P(OutputsTest, AreSaved) {
  std::deque<std::pair<float, SavedState>> flows;
  auto backwardOf = [&](std::pair<float, SavedState> flow) {
    auto gradients = backward(*program, std::move(flow.second), {tensorOf(device, {1, 2, 3, 4})});
    double y = flow.first + 1;
    std::vector<double> values = numbersOn(gradients[0]);
    ASSERT_THAT(values, testing::SizeIs(4));
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(values[i], (i + 1) * (y + 1));
  };
  for (unsigned i = 0; i < 12; ++i) {
    SavedState saved;
    float x = i % 3 ? 0 : 1;
    Tensor y = i % 4 ? nans() : Tensor();
    forwardInto({tensorOf(device, {x, x, x, x}), w}, {y, {}, {}, {}, {}}, &saved);
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
TEST_P(OutputsTest, OfTheBackward) {
  Tensor y = nans(), b = nans();
  SavedState saved;
  forwardInto({tensorOf(device, {0, 0, 0, 0}), w}, {y, {}, {}, {}, {}}, &saved);
  auto values = cantFail(program->savedValues(saved));
  ASSERT_THAT(values, testing::SizeIs(1));
  EXPECT_EQ(values[0].value.asTensor()->data(), y.data());
  Results results;
  std::string error = textOf(
      program->backwardInto(*stream, SavedState(), {tensorOf(device, {1, 2, 3, 4})}, b, results));
  EXPECT_THAT(error, testing::HasSubstr("the SavedState is empty"));
  EXPECT_THAT(textOf(program->backwardInto(*stream, std::move(saved),
                                           {tensorOf(device, {1, 2, 3, 4})}, y, results)),
              testing::AllOf(testing::HasSubstr("output #0 for result '%b' of the backward"),
                             testing::HasSubstr("shares memory with what is saved for '%y'")));
  ASSERT_TRUE(saved.isValid()) << "nothing ran";
  cantFail(program->backwardInto(*stream, std::move(saved), {tensorOf(device, {1, 2, 3, 4})}, b,
                                 results));
  EXPECT_THAT(numbersOn(b), testing::ElementsAre(2, 4, 6, 8));
}

// A program all of whose results are placed has no memory for results.
TEST_P(OutputsTest, AllocateNothing) {
  Program small = compileText(R"(trace @t(%x: f32[1024]) {
  %y: f32[1024] = exp(%x)
  return(%y)
})");
  Tensor x = filled(device, 0, 1024), y = filled(device, 5, 1024);
  uint64_t before = bytesInUse();
  Results results;
  for (unsigned i = 0; i < 3; ++i)
    cantFail(small.forwardInto(*stream, {x}, y, results));
  EXPECT_EQ(numbersOn(y)[1023], 1);
  EXPECT_EQ(bytesInUse(), before);
  cantFail(small.forward(*stream, {x}, results));
  EXPECT_EQ(bytesInUse(), before + 4096);
}

// Outputs that do not fit are errors that name the result and say what is wrong; nothing runs.
TEST_P(OutputsTest, BadOutputs) {
  Tensor x = tensorOf(device, {0, 0, 0, 0}), y = nans(), wide = filled(device, NAN, 9);
  auto part = [&](int64_t byteOffset) {
    return Tensor(wide.storage(), byteOffset, DType::F32, {4}, {1});
  };
  struct Case {
    std::vector<Tensor> outputs;
    std::string error;
  };
  Tensor none;
  std::string expected =
      "expected " + Type(TensorType(DType::F32, {4}, device->device())).str() + ", got ";
  const Case cases[] = {
      {{y}, "the forward gives 5 results, got 1 outputs for them"},
      {{tensorOf(device, {1, 2, 3}), none, none, none, none},
       "output #0 for result '%y' of the forward: " + expected},
      {{cantFail(Tensor::empty(device, DType::I32, {4})), none, none, none, none}, expected},
      {{Tensor(wide.storage(), 0, DType::F32, {4}, {2}), none, none, none, none}, expected},
      {{part(4), none, none, none, none}, "a multiple of 16 bytes"},
      {{x, none, none, none, none}, "it shares memory with argument #0 '%x' of the forward"},
      {{part(16), none, part(16), none, none},
       "output #2 for result '%z' of the forward: it shares memory with output #0"},
      {{none, tensorOf(device, {1, 2}), none, none, none}, "the result is a part of %y"},
      {{none, none, none, y, none}, "the result shares memory with %x"},
      {{none, none, none, none, y}, "the result is missing"},
  };
  for (const Case &item : cases)
    EXPECT_THAT(outputError({x, w}, item.outputs), testing::HasSubstr(item.error));
  EXPECT_TRUE(std::isnan(numbersOn(y)[0]));
  EXPECT_EQ(program->counters().eagerRuns, 0u);

  DeviceRef other = createHostDevice({.index = 1});
  Tensor elsewhere = cantFail(Tensor::empty(other, DType::F32, {4}));
  EXPECT_THAT(outputError({x, w}, {elsewhere, none, none, none, none}),
              testing::HasSubstr("expected a tensor on " + deviceName(device->device()) +
                                 ", got one on host:1"));
  forwardInto({x, w}, {y, none, none, none, none});
  EXPECT_EQ(numbersOn(y)[0], 1);
}

} // namespace rondo
