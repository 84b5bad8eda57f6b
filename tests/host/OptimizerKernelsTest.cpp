//===- OptimizerKernelsTest.cpp - Parameter updates on the host -----------===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

using Attributes = llvm::SmallVector<AttributeInit, 6>;
using Values = std::vector<double>;

const Arg param = randomArg({2, 3}, 1), grad = randomArg({2, 3}, 2), first = randomArg({2, 3}, 3);
Arg secondMoment() {
  Arg arg = randomArg({2, 3}, 4);
  for (double &x : arg.values)
    x = std::abs(x);
  return arg;
}

// sgd_ takes the step that PyTorch documents, for every mix of options, in every dtype and layout.
TEST(OptimizerKernels, SGD) {
  for (bool buffered : {false, true})
    for (double decay : {0.0, 0.1})
      for (bool nesterov : {false, true}) {
        double momentum = buffered ? 0.9 : 0, dampening = buffered ? 0.2 : 0;
        std::vector<Arg> args{param, grad, buffered ? first : noArg};
        Attributes attributes{{"lr", 0.5},
                              {"momentum", momentum},
                              {"dampening", dampening},
                              {"weight_decay", decay},
                              {"nesterov", nesterov}};
        Values expected, buffer;
        for (size_t i = 0; i < param.values.size(); ++i) {
          double d = grad.values[i] + decay * param.values[i];
          if (buffered) {
            buffer.push_back(0.9 * first.values[i] + 0.8 * d);
            d = nesterov ? d + 0.9 * buffer[i] : buffer[i];
          }
          expected.push_back(param.values[i] - 0.5 * d);
        }
        auto results = resultsOf("sgd_", args, attributes);
        ASSERT_EQ(results.size(), buffered ? 2u : 1u);
        expectNear(results[0], expected, 1e-14);
        if (buffered)
          expectNear(results[1], buffer, 1e-14);
        expectSameInAllDTypesAndLayouts("sgd_", args, attributes, {0, 2});
      }
}

// adam_ takes the step of Adam and, decoupled, of AdamW, in every dtype and layout.
TEST(OptimizerKernels, Adam) {
  Arg v = secondMoment(), step{{}, {3}};
  for (double decay : {0.0, 0.1})
    for (bool decoupled : {false, true}) {
      std::vector<Arg> args{param, grad, first, v, step};
      Attributes attributes{{"lr", 0.5},   {"beta1", 0.8},          {"beta2", 0.9},
                            {"eps", 0.01}, {"weight_decay", decay}, {"decoupled", decoupled}};
      std::vector<Values> expected(3);
      for (size_t i = 0; i < param.values.size(); ++i) {
        double p = param.values[i], g = grad.values[i];
        if (decoupled)
          p -= 0.5 * decay * p;
        else
          g += decay * p;
        double m = 0.8 * first.values[i] + 0.2 * g, second = 0.9 * v.values[i] + 0.1 * g * g;
        double mHat = m / (1 - 0.8 * 0.8 * 0.8), vHat = second / (1 - 0.9 * 0.9 * 0.9);
        expected[0].push_back(p - 0.5 * mHat / (std::sqrt(vHat) + 0.01));
        expected[1].push_back(m);
        expected[2].push_back(second);
      }
      auto results = resultsOf("adam_", args, attributes);
      ASSERT_EQ(results.size(), 3u);
      for (unsigned i = 0; i < 3; ++i)
        expectNear(results[i], expected[i], 1e-13);
      expectSameInAllDTypesAndLayouts("adam_", args, attributes, {0, 2, 3});
    }
}

// Rate and step may be attribute, scalar of any kind, or 0-d tensor of any dtype; all give the
// same.
TEST(OptimizerKernels, SourcesOfNumbers) {
  auto tensors = [] { return operandsOf({param, grad, first, secondMoment()}, DType::F64); };
  auto adam = [&](OperandInit step, std::optional<OperandInit> lr) {
    std::vector<OperandInit> operands = tensors();
    operands.push_back(step);
    Attributes attributes;
    if (lr)
      operands.push_back(*lr);
    else
      attributes.push_back({"lr", 2});
    return valuesOf(runOp("adam_", operands, attributes)[0]);
  };
  Values expected = adam(Value(int64_t(2)), std::nullopt);
  EXPECT_EQ(adam(Value(2.0), OperandInit(Value(2.0))), expected);
  EXPECT_EQ(adam(tensorOf(DType::F32, {}, {2}), OperandInit(Value(int64_t(2)))), expected);
  EXPECT_EQ(adam(tensorOf(DType::I64, {}, {2}), OperandInit(tensorOf(DType::F16, {}, {2}))),
            expected);
  EXPECT_NE(adam(Value(true), OperandInit(Value(2.0))), expected); // step 1
  EXPECT_EQ(adam(Value(true), OperandInit(Value(2.0))), adam(Value(1.0), std::nullopt));
  auto sgd = [&](OperandInit lr) {
    std::vector<OperandInit> operands = tensors();
    return valuesOf(runOp("sgd_", {operands[0], operands[1], OperandInit(), lr})[0]);
  };
  EXPECT_EQ(sgd(Value(0.25)), sgd(tensorOf(DType::F64, {}, {0.25})));
  EXPECT_NE(sgd(Value(0.25)), sgd(Value(0.5)));
}

// An update is as without found_inf where that is 0, and else writes nothing, whatever the
// gradients and the step are.
TEST(OptimizerKernels, FoundInf) {
  auto flag = [](double value) { return OperandInit(tensorOf(DType::F32, {1}, {value})); };
  auto updated = [&](llvm::StringRef op, unsigned numStates, double step, OperandInit foundInf) {
    std::vector<OperandInit> operands =
        operandsOf({param, grad, first, secondMoment()}, DType::F64);
    operands.resize(numStates);
    if (op == "adam_")
      operands.push_back(Value(step));
    else if (numStates == 2)
      operands.emplace_back();
    operands.push_back(Value(0.5)); // the rate
    operands.push_back(foundInf);
    std::vector<Values> states;
    for (const Value &state : runOp(op, operands, {}))
      states.push_back(valuesOf(state));
    return states;
  };
  const std::vector<Values> sgdStates{param.values}, momentumStates{param.values, first.values},
      adamStates{param.values, first.values, secondMoment().values};
  for (double nonZero : {1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(updated("sgd_", 2, 0, flag(nonZero)), sgdStates);
    EXPECT_EQ(updated("sgd_", 3, 0, flag(nonZero)), momentumStates);
    EXPECT_EQ(updated("adam_", 4, 0, flag(nonZero)), adamStates);
  }
  EXPECT_EQ(updated("sgd_", 2, 0, flag(0)), updated("sgd_", 2, 0, OperandInit()));
  EXPECT_NE(updated("sgd_", 2, 0, flag(0)), sgdStates);
  EXPECT_EQ(updated("sgd_", 3, 0, flag(0)), updated("sgd_", 3, 0, OperandInit()));
  EXPECT_EQ(updated("adam_", 4, 2, flag(0)), updated("adam_", 4, 2, OperandInit()));
  EXPECT_NE(updated("adam_", 4, 2, flag(0)), adamStates);
}

// Nothing happens to empty parameters, with a buffer or without.
TEST(OptimizerKernels, Empty) {
  Arg empty{{0}, {}};
  EXPECT_EQ(resultsOf("sgd_", {empty, empty, empty}, {{"lr", 1}, {"momentum", 0.5}}),
            (std::vector<Values>{{}, {}}));
  EXPECT_EQ(resultsOf("sgd_", {param, grad}, {{"lr", 0}})[0], param.values);
}

// 8-bit floats are declined, bf16 is not.
TEST(OptimizerKernels, DeclinesDTypes) {
  auto why = [](DType dtype) {
    return whyDeclined("sgd_", {{dtype, {2}}, {dtype, {2}}}, {{"lr", 1}});
  };
  EXPECT_EQ(why(DType::F8E4M3), "has no host kernel for dtype f8e4m3");
  EXPECT_EQ(why(DType::BF16), "");
}

} // namespace
