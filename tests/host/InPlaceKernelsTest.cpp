//===- InPlaceKernelsTest.cpp ---------------------------------------------===//

#include "RunOp.h"

using namespace rondo;

namespace {

using List = std::vector<double>;

constexpr DType floats[] = {DType::F32, DType::F64, DType::BF16, DType::F16};
constexpr Layout writable[] = {Layout::Contiguous, Layout::Transposed, Layout::Sliced};

/// Numbers from `least` to 2 above it.
Tensor numbers(DType dtype, llvm::ArrayRef<int64_t> shape, uint64_t seed, double least = 0.5) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  List values = randomValues(count, seed);
  for (double &value : values)
    value = std::fabs(value) + least;
  return tensorOf(dtype, shape, values);
}

/// Every in-place op writes what its functional twin computes into its first operand, in any
/// layout, and nothing beside it.
TEST(InPlaceKernels, TwinsAgree) {
  struct {
    const char *op;
    unsigned numTensors;
    std::vector<AttributeInit> attributes;
    double least = 0.5; // of the first operand
  } cases[] = {
      {"add", 2, {{"alpha", 2}}},
      {"sub", 2, {}},
      {"mul", 2, {}},
      {"div", 2, {}},
      {"pow", 2, {}},
      {"pow", 1, {{"scalar", 2}}},
      {"relu", 1, {}, -1},
      {"sqrt", 1, {}},
      {"clamp", 1, {{"min", 1}, {"max", 1.5}}},
      {"lerp", 3, {}},
      {"lerp", 2, {{"scalar", 0.25}}},
      {"addcmul", 3, {{"value", 2}}},
      {"addcdiv", 3, {{"value", 0.5}}},
      {"add", 1, {{"scalar", 1.5}}},
  };
  for (const auto &test : cases) {
    for (DType dtype : floats) {
      for (Layout layout : writable) {
        SCOPED_TRACE(test.op + (" " + dtypeName(dtype) + " " + layoutName(layout)).str());
        std::vector<OperandInit> operands;
        Tensor x = withLayout(numbers(dtype, {3, 4}, 1, test.least), layout);
        operands.emplace_back(x);
        for (unsigned i = 1; i < test.numTensors; ++i)
          operands.emplace_back(withLayout(numbers(dtype, {i == 2 ? 1 : 3, 4}, 1 + i), layout));
        List expected = valuesOf(runOp(test.op, operands, test.attributes)[0]);
        EXPECT_NE(valuesOf(x), expected);
        Value out = runOp(std::string(test.op) + "_", operands, test.attributes)[0];
        EXPECT_EQ(valuesOf(x), expected);
        EXPECT_EQ(out.asTensor()->data(), x.data());
        EXPECT_TRUE(gapsArePoisoned(x));
      }
    }
  }
}

/// masked_fill_ overwrites where the mask says so.
TEST(InPlaceKernels, MaskedFill) {
  for (Layout layout : writable) {
    Tensor x = withLayout(tensorOf(DType::BF16, {2, 2}, {1, 2, 3, 4}), layout);
    Tensor mask = tensorOf(DType::Bool, {2, 1}, {0, 1});
    runOp("masked_fill_", {x, mask}, {{"scalar", 7}});
    EXPECT_EQ(valuesOf(x), (List{1, 2, 7, 7}));
  }
}

/// accumulate_ adds, or overwrites even a nan and in the dtype of x; in any layout, and nothing
/// beside.
TEST(InPlaceKernels, Accumulate) {
  for (DType dtype : floats) {
    for (Layout layout : writable) {
      SCOPED_TRACE((dtypeName(dtype) + " " + layoutName(layout)).str());
      Tensor x = withLayout(tensorOf(dtype, {2, 2}, {NAN, INFINITY, 3, 4}), layout);
      auto accumulate = [&](List values, bool first) {
        Tensor src = withLayout(tensorOf(DType::F32, {2, 2}, values), layout);
        runOp("accumulate_", {x, src, tensorOf(DType::Bool, {}, {double(first)})});
      };
      accumulate({1, 2, 3, 0x1p-30}, true);
      EXPECT_EQ(valuesOf(x), (List{1, 2, 3, dtype == DType::F16 ? 0 : 0x1p-30}));
      accumulate({1, 0, -1, 8}, false);
      EXPECT_EQ(valuesOf(x), (List{2, 2, 2, dtype == DType::F64 ? 8 + 0x1p-30 : 8}));
      accumulate({1, 0, -1, 8}, true);
      EXPECT_EQ(valuesOf(x), (List{1, 0, -1, 8}));
      EXPECT_TRUE(gapsArePoisoned(x));
    }
  }
}

/// What is computed in another dtype is rounded to that of the operand.
TEST(InPlaceKernels, ConvertsToItsOwnDType) {
  Tensor x = tensorOf(DType::F32, {2}, {1, 2}), wide = tensorOf(DType::F64, {2}, {0.5, 0x1p-40});
  runOp("add_", {x, wide});
  EXPECT_EQ(valuesOf(x), (List{1.5, 2}));
  Tensor half = tensorOf(DType::F16, {1}, {2048});
  runOp("add_", {half, tensorOf(DType::F32, {1}, {1.5})});
  EXPECT_EQ(valuesOf(half), List{2050}); // 2049.5
}

/// An operand that overlaps the written tensor in another layout is read before it is overwritten:
/// x += transpose(x), x += its first row, x = shifted x.
TEST(InPlaceKernels, OverlappingOperandsAreReadFirst) {
  for (DType dtype : {DType::F32, DType::BF16, DType::I64}) {
    SCOPED_TRACE(dtypeName(dtype).str());
    List values(40 * 40);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i % 61;
    auto at = [&](size_t i, size_t j) { return values[i * 40 + j]; };
    List sum, rows, shifted;
    for (size_t i = 0; i < 40; ++i)
      for (size_t j = 0; j < 40; ++j) {
        sum.push_back(at(i, j) + at(j, i));
        rows.push_back(at(i, j) + at(0, j));
        if (i < 39)
          shifted.push_back(at(i, j));
      }
    auto view = [](const Tensor &x, int64_t offset, std::vector<int64_t> shape,
                   std::vector<int64_t> strides) {
      return Tensor(x.storage(), offset * dtypeSize(x.dtype()), x.dtype(), shape, strides);
    };
    Tensor x = tensorOf(dtype, {40, 40}, values);
    runOp("add_", {x, view(x, 0, {40, 40}, {1, 40})});
    EXPECT_EQ(valuesOf(x), sum);
    x = tensorOf(dtype, {40, 40}, values);
    runOp("add_", {x, view(x, 0, {40}, {1})});
    EXPECT_EQ(valuesOf(x), rows);
    x = tensorOf(dtype, {40, 40}, values);
    Tensor lower = view(x, 40, {39, 40}, {40, 1});
    runOp("copy_", {lower, view(x, 0, {39, 40}, {40, 1})});
    EXPECT_EQ(valuesOf(lower), shifted);
    // The same elements as both operands.
    x = tensorOf(dtype, {2}, {3, 4});
    runOp("mul_", {x, x});
    EXPECT_EQ(valuesOf(x), (List{9, 16}));
  }
}

/// copy_ converts and broadcasts, in any layout.
TEST(InPlaceKernels, Copy) {
  for (DType to : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::Bool}) {
    for (DType from : {DType::F32, DType::F64, DType::F16, DType::I64, DType::U8}) {
      for (Layout layout : writable) {
        Tensor x = withLayout(tensorOf(to, {2, 3}, List(6, 0)), layout);
        Tensor source = withLayout(tensorOf(from, {1, 3}, {0, 1, 3}), layout);
        runOp("copy_", {x, source});
        List expected = to == DType::Bool ? List{0, 1, 1, 0, 1, 1} : List{0, 1, 3, 0, 1, 3};
        EXPECT_EQ(valuesOf(x), expected);
      }
    }
  }
  // Nothing to copy, and a 0-d source.
  runOp("copy_", {tensorOf(DType::F32, {0, 3}, {}), tensorOf(DType::F32, {3}, {1, 2, 3})});
  Tensor x = tensorOf(DType::F32, {2}, {1, 2});
  runOp("copy_", {x, tensorOf(DType::F32, {}, {5})});
  EXPECT_EQ(valuesOf(x), (List{5, 5}));
}

/// fill_ takes a 0-d tensor of any dtype, a host scalar or an attribute; zero_ needs none.
TEST(InPlaceKernels, FillAndZero) {
  for (DType dtype : {DType::F32, DType::BF16, DType::I64, DType::U8}) {
    for (Layout layout : writable) {
      Tensor x = withLayout(tensorOf(dtype, {2, 2}, {1, 2, 3, 4}), layout);
      runOp("fill_", {x}, {{"scalar", 5}});
      EXPECT_EQ(valuesOf(x), List(4, 5));
      runOp("fill_", {x, Value(6.5)});
      EXPECT_EQ(valuesOf(x), List(4, isFloat(dtype) ? 6.5 : 6));
      runOp("fill_", {x, Value(int64_t(7))});
      EXPECT_EQ(valuesOf(x), List(4, 7));
      runOp("fill_", {x, Value(true)});
      EXPECT_EQ(valuesOf(x), List(4, 1));
      runOp("fill_", {x, tensorOf(DType::F64, {}, {8})});
      EXPECT_EQ(valuesOf(x), List(4, 8));
      runOp("zero_", {x});
      EXPECT_EQ(valuesOf(x), List(4, 0));
      EXPECT_TRUE(gapsArePoisoned(x));
    }
  }
}

TEST(InPlaceKernels, EveryOpHasAKernel) {
  HostExecutor executor;
  for (const char *op :
       {"add_", "sub_", "mul_", "div_", "pow_", "relu_", "sqrt_", "clamp_", "masked_fill_", "lerp_",
        "addcmul_", "addcdiv_", "fill_", "zero_", "copy_", "accumulate_"})
    EXPECT_NE(executor.find(op), nullptr) << op;
  EXPECT_EQ(executor.find("exp_"), nullptr);
}

} // namespace
