//===- CreationKernelsTest.cpp --------------------------------------------===//

#include "RunOp.h"

using namespace rondo;

namespace {

using List = std::vector<double>;
using Ints = llvm::SmallVector<int64_t, 4>;

constexpr DType dtypes[] = {DType::F32, DType::F64, DType::BF16, DType::F16,
                            DType::I64, DType::I32, DType::U8};

/// full gives its value everywhere, converted to the dtype, for shapes with and without elements.
TEST(CreationKernels, Full) {
  for (DType dtype : dtypes) {
    for (const Ints &shape : {Ints{2, 3}, Ints{}, Ints{0, 2}, Ints{700}}) {
      Value out = runOp("full", {}, {{"shape", shape}, {"value", 7}, {"dtype", dtype}})[0];
      EXPECT_EQ(valuesOf(out), List(out.asTensor()->numElements(), 7));
      EXPECT_EQ(out.asTensor()->dtype(), dtype);
    }
  }
  auto full = [](Attribute value, DType dtype) {
    return valuesOf(
        runOp("full", {}, {{"shape", Ints{1}}, {"value", value}, {"dtype", dtype}})[0])[0];
  };
  EXPECT_EQ(full(-2.5, DType::I32), -2);
  EXPECT_EQ(full(0.5, DType::Bool), 1);
  EXPECT_EQ(full(true, DType::F32), 1);
  EXPECT_TRUE(std::isnan(full(std::nan(""), DType::BF16)));
}

/// arange counts from start by step, up to but without end; exact for integers.
TEST(CreationKernels, Arange) {
  for (DType dtype : dtypes) {
    auto run = [&](Attribute start, Attribute end, Attribute step) {
      return valuesOf(runOp("arange", {},
                            {{"start", start}, {"end", end}, {"step", step}, {"dtype", dtype}})[0]);
    };
    EXPECT_EQ(run(2, 9, 3), (List{2, 5, 8}));
    EXPECT_EQ(run(9, 2, -3), (List{9, 6, 3}));
    EXPECT_EQ(run(3, 3, 1), List());
    if (isFloat(dtype)) {
      EXPECT_EQ(run(1.0, 3, 0.5), (List{1, 1.5, 2, 2.5}));
    }
  }
  Value big = runOp(
      "arange", {},
      {{"start", int64_t(1) << 62}, {"end", (int64_t(1) << 62) + 2}, {"dtype", DType::I64}})[0];
  EXPECT_EQ(big.asTensor()->ref().as<int64_t>()[1], (int64_t(1) << 62) + 1);
  List many = valuesOf(runOp("arange", {}, {{"end", 1500}, {"dtype", DType::F32}})[0]);
  ASSERT_EQ(many.size(), 1500U);
  EXPECT_EQ(many[1499], 1499);
}

/// eye has ones where row and column are the same, and nowhere else.
TEST(CreationKernels, Eye) {
  for (DType dtype : dtypes) {
    EXPECT_EQ(valuesOf(runOp("eye", {}, {{"n", 2}, {"dtype", dtype}})[0]), (List{1, 0, 0, 1}));
    EXPECT_EQ(valuesOf(runOp("eye", {}, {{"n", 2}, {"m", 3}, {"dtype", dtype}})[0]),
              (List{1, 0, 0, 0, 1, 0}));
    EXPECT_EQ(valuesOf(runOp("eye", {}, {{"n", 0}, {"m", 3}, {"dtype", dtype}})[0]), List());
  }
}

/// Results of other strides get the same elements.
TEST(CreationKernels, ResultsOfAnyStrides) {
  Type columns = TensorType(DType::F32, {2, 3}, {1, 2}, Device::host());
  std::vector<AttributeInit> sizes = {{"n", 2}, {"m", 3}, {"dtype", DType::F32}};
  EXPECT_EQ(valuesOf(runOp("eye", {}, sizes, nullptr, {columns})[0]), (List{1, 0, 0, 0, 1, 0}));
  Type spread = TensorType(DType::I32, {3}, {4}, Device::host());
  EXPECT_EQ(
      valuesOf(runOp("arange", {}, {{"end", 3}, {"dtype", DType::I32}}, nullptr, {spread})[0]),
      (List{0, 1, 2}));
}

/// A constant is a host scalar of its value's kind.
TEST(CreationKernels, Constant) {
  auto constant = [](Attribute value) { return runOp("constant", {}, {{"value", value}})[0]; };
  Value integer = constant(int64_t(1) << 62), real = constant(0.1), truth = constant(true);
  ASSERT_TRUE(integer.asInt() && real.asFloat() && truth.asBool());
  EXPECT_EQ(*integer.asInt(), int64_t(1) << 62);
  EXPECT_EQ(*real.asFloat(), 0.1);
  EXPECT_TRUE(*truth.asBool());
}

/// empty writes nothing.
TEST(CreationKernels, EmptyStaysUnwritten) {
  Value out = runOp("empty", {}, {{"shape", Ints{4}}, {"dtype", DType::F32}})[0];
  for (double value : valuesOf(out))
    EXPECT_TRUE(std::isnan(value));
}

TEST(CreationKernels, EveryOpHasAKernel) {
  HostExecutor executor;
  for (const char *op : {"full", "empty", "arange", "eye", "constant"})
    EXPECT_NE(executor.find(op), nullptr) << op;
}

} // namespace
