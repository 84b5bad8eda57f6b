//===- PointwiseKernelsTest.cpp -------------------------------------------===//

#include "PointwiseTesting.h"

using namespace rondo;
using namespace rondo::pointwise_testing;

namespace {

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

using Binary = double (*)(double, double);
struct BinaryCase {
  const char *op;
  Binary formula;
  std::vector<AttributeInit> attributes = {};
  bool takesIntegers = true, takesFloats = true;
};

double floorMod(double a, double b) {
  return b == 0 ? 0 : a - b * std::floor(a / b);
}
double bits(double a, double b, int op) {
  int64_t x = a, y = b;
  return op == 0 ? x & y : op == 1 ? x | y : x ^ y;
}

std::vector<BinaryCase> binaryCases() {
  return {
      {"add", [](double a, double b) { return a + b; }},
      {"add", [](double a, double b) { return a + 3 * b; }, {{"alpha", 3}}},
      {"sub", [](double a, double b) { return a - 2 * b; }, {{"alpha", 2}}},
      {"rsub", [](double a, double b) { return b - 2 * a; }, {{"alpha", 2}}},
      {"mul", [](double a, double b) { return a * b; }},
      {"div", [](double a, double b) { return a / b; }},
      {"maximum", [](double a, double b) { return std::max(a, b); }},
      {"minimum", [](double a, double b) { return std::min(a, b); }},
      {"remainder", floorMod},
      {"atan2", [](double a, double b) { return std::atan2(a, b); }},
      {"eq", [](double a, double b) { return double(a == b); }},
      {"ne", [](double a, double b) { return double(a != b); }},
      {"lt", [](double a, double b) { return double(a < b); }},
      {"le", [](double a, double b) { return double(a <= b); }},
      {"gt", [](double a, double b) { return double(a > b); }},
      {"ge", [](double a, double b) { return double(a >= b); }},
      {"logical_and", [](double a, double b) { return double(a != 0 && b != 0); }},
      {"logical_or", [](double a, double b) { return double(a != 0 || b != 0); }},
      {"logical_xor", [](double a, double b) { return double((a != 0) != (b != 0)); }},
      {"bitwise_and", [](double a, double b) { return bits(a, b, 0); }, {}, true, false},
      {"bitwise_or", [](double a, double b) { return bits(a, b, 1); }, {}, true, false},
      {"bitwise_xor", [](double a, double b) { return bits(a, b, 2); }, {}, true, false},
  };
}

/// An op of two operands gives its formula's value for every pair of elements that broadcasting
/// brings together, whatever their layouts.
TEST(PointwiseKernels, BinaryOpsComputeTheirFormula) {
  struct {
    Shape a, b, out;
  } broadcasts[] = {{{3, 4}, {3, 4}, {3, 4}},
                    {{3, 4}, {4}, {3, 4}},
                    {{3, 1}, {2, 1, 4}, {2, 3, 4}},
                    {{2, 3}, {}, {2, 3}},
                    {{0, 3}, {1, 3}, {0, 3}}};
  for (const BinaryCase &test : binaryCases()) {
    std::vector<DType> dtypes;
    if (test.takesFloats)
      dtypes.insert(dtypes.end(), std::begin(floats), std::end(floats));
    if (test.takesIntegers)
      dtypes.insert(dtypes.end(), {DType::I64, DType::I32, DType::I8});
    for (DType dtype : dtypes) {
      for (Layout layout : allLayouts) {
        SCOPED_TRACE(describe(test.op, dtype, layout));
        for (const auto &[aShape, bShape, out] : broadcasts) {
          Tensor a = numbers(dtype, aShape, 3, layout), b = numbers(dtype, bShape, 4, layout);
          // The formula of remainder is unstable where a multiple is near.
          double tolerance = test.op == std::string("remainder") && isFloat(dtype) ? 1e-2 : -1;
          expectElements(
              test.op, {a, b}, out, [&](auto in) { return test.formula(in(0), in(1)); },
              test.attributes, tolerance);
        }
      }
    }
  }
}

/// Operand b may be a 0-d tensor, a host scalar or an attribute: the result is the same, and of the
/// dtype of tensor a where b's kind is not a higher one.
TEST(PointwiseKernels, ScalarsComeInThreeForms) {
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::U8}) {
    for (const char *op : {"add", "mul", "sub", "maximum", "lt", "div", "pow", "rsub"}) {
      SCOPED_TRACE(describe(op, dtype, Layout::Sliced));
      Tensor a = withLayout(tensorOf(dtype, {2, 3}, {1, 2, 3, 4, 5, 6}), Layout::Sliced);
      auto result = [&](OperandInit b) { return runOp(op, {a, b})[0]; };
      Value byAttribute = runOp(op, {a}, {{"scalar", 3}})[0];
      Value byScalar = result(Value(int64_t(3)));
      Value byTensor = result(tensorOf(DType::I64, {}, {3}));
      Value byVector = result(tensorOf(dtype, {1}, {3}));
      EXPECT_EQ(byAttribute.asTensor()->dtype(), byScalar.asTensor()->dtype());
      for (const Value &other : {byScalar, byTensor, byVector})
        EXPECT_EQ(valuesOf(other), valuesOf(byAttribute));
    }
  }
}

/// The kinds of a host scalar count: a float makes integers f32, a bool is 0 or 1.
TEST(PointwiseKernels, ScalarsPromote) {
  Tensor a = tensorOf(DType::I32, {2}, {1, 2});
  Value sum = runOp("add", {a, Value(0.5)})[0];
  EXPECT_EQ(sum.asTensor()->dtype(), DType::F32);
  EXPECT_EQ(valuesOf(sum), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(valuesOf(runOp("add", {a, Value(true)})[0]), (std::vector<double>{2, 3}));
  EXPECT_EQ(valuesOf(runOp("mul", {a}, {{"scalar", true}})[0]), (std::vector<double>{1, 2}));
  // A float that no half holds is not rounded to half before it is used ...
  Tensor half = tensorOf(DType::F16, {1}, {1024});
  EXPECT_EQ(valuesOf(runOp("mul", {half}, {{"scalar", 1.0005}})[0])[0], 1024.5 + 0.5);
  // ... but for comparisons.
  Tensor tenth = tensorOf(DType::F16, {1}, {0.1});
  EXPECT_EQ(valuesOf(runOp("eq", {tenth}, {{"scalar", 0.1}})[0])[0], 1);
}

/// Operands of different dtypes are promoted before anything is computed.
TEST(PointwiseKernels, OperandsPromote) {
  Tensor bytes = tensorOf(DType::U8, {1}, {200}), ints = tensorOf(DType::I32, {1}, {1000});
  Tensor halves = tensorOf(DType::F16, {1}, {0.5}), brains = tensorOf(DType::BF16, {1}, {256});
  Tensor bools = tensorOf(DType::Bool, {1}, {1});
  EXPECT_EQ(valuesOf(runOp("add", {bytes, ints})[0])[0], 1200);
  EXPECT_EQ(valuesOf(runOp("add", {bytes, bytes})[0])[0], 144); // modulo 256
  EXPECT_EQ(valuesOf(runOp("add", {halves, brains})[0])[0], 256.5);
  EXPECT_EQ(valuesOf(runOp("add", {bools, bools})[0])[0], 1);
  EXPECT_EQ(valuesOf(runOp("mul", {bools, ints})[0])[0], 1000);
  EXPECT_EQ(valuesOf(runOp("lt", {bytes, tensorOf(DType::I8, {1}, {-1})})[0])[0], 0);
  EXPECT_EQ(valuesOf(runOp("bitwise_xor", {bools, bools})[0])[0], 0);
}

/// Integers are computed modulo their size, division by zero and overflow included.
TEST(PointwiseKernels, IntegersWrap) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  auto run = [](const char *op, int64_t a, int64_t b) {
    Tensor x = tensorOf(DType::I64, {1}, {0}), y = tensorOf(DType::I64, {1}, {0});
    *x.ref().as<int64_t>() = a;
    *y.ref().as<int64_t>() = b;
    return *runOp(op, {x, y})[0].asTensor()->ref().as<int64_t>();
  };
  EXPECT_EQ(run("add", least, -1), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(run("sub", least, 1), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(run("mul", least, -1), least);
  EXPECT_EQ(run("mul", int64_t(1) << 62, 6), least);
  EXPECT_EQ(run("remainder", least, -1), 0);
  EXPECT_EQ(run("remainder", 7, 0), 0);
  EXPECT_EQ(run("remainder", -7, 3), 2);
  EXPECT_EQ(run("remainder", 7, -3), -2);
  EXPECT_EQ(run("pow", 3, 5), 243);
  EXPECT_EQ(run("pow", -2, 63), least);
  EXPECT_EQ(run("pow", 7, 0), 1);
  EXPECT_EQ(run("pow", 0, 0), 1);
  EXPECT_EQ(run("pow", 2, -1), 0);
  EXPECT_EQ(run("pow", 0, -1), 0);
  EXPECT_EQ(run("pow", -1, -3), -1);
  EXPECT_EQ(run("pow", 1, least), 1);
  EXPECT_EQ(run("maximum", int64_t(1) << 53, (int64_t(1) << 53) + 1), (int64_t(1) << 53) + 1);
  EXPECT_EQ(valuesOf(runOp("abs", {tensorOf(DType::I8, {1}, {-128})})[0])[0], -128);
  EXPECT_EQ(valuesOf(runOp("neg", {tensorOf(DType::U8, {1}, {1})})[0])[0], 255);
}

/// Special numbers follow PyTorch: nan wins, powers of 0 and of nan are those of pow.
TEST(PointwiseKernels, BinaryOpsOfSpecialNumbers) {
  for (DType dtype : floats) {
    SCOPED_TRACE(dtypeName(dtype).str());
    auto run = [&](const char *op, double a, double b) {
      return valuesOf(runOp(op, {tensorOf(dtype, {1}, {a}), tensorOf(dtype, {1}, {b})})[0])[0];
    };
    for (const char *op : {"maximum", "minimum", "add", "remainder"}) {
      EXPECT_TRUE(std::isnan(run(op, notANumber, 1))) << op;
      EXPECT_TRUE(std::isnan(run(op, 1, notANumber))) << op;
    }
    EXPECT_TRUE(std::isnan(run("remainder", 1, 0)));
    EXPECT_EQ(run("remainder", -3, 2), 1);
    EXPECT_EQ(run("remainder", 3, -2), -1);
    EXPECT_EQ(run("pow", notANumber, 0), 1);
    EXPECT_EQ(run("pow", 1, notANumber), 1);
    EXPECT_EQ(run("pow", 2, -1), 0.5);
    EXPECT_TRUE(std::isnan(run("pow", -1, 0.5)));
    EXPECT_EQ(run("div", 1, 0), inf);
    EXPECT_EQ(run("eq", notANumber, notANumber), 0);
    EXPECT_EQ(run("ne", notANumber, notANumber), 1);
    EXPECT_EQ(run("logical_and", notANumber, 1), 1);
  }
}

//===----------------------------------------------------------------------===//
// Three operands
//===----------------------------------------------------------------------===//

/// where, masked_fill, addcmul, addcdiv and lerp combine broadcast operands in every layout.
TEST(PointwiseKernels, TernaryOpsComputeTheirFormula) {
  Shape shape = {3, 4};
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I32}) {
    for (Layout layout : allLayouts) {
      SCOPED_TRACE(describe("", dtype, layout));
      Tensor a = numbers(dtype, shape, 1, layout), b = numbers(dtype, {4}, 2, layout);
      Tensor x = numbers(dtype, shape, 3, Layout::Contiguous);
      Tensor mask = withLayout(tensorOf(DType::Bool, {3, 1}, {1, 0, 1}), layout);
      Tensor zero = tensorOf(dtype, {}, {5});
      expectElements("where", {mask, a, b}, shape,
                     [](auto in) { return in(0) != 0 ? in(1) : in(2); });
      expectElements("masked_fill", {x, mask, zero}, shape,
                     [](auto in) { return in(1) != 0 ? in(2) : in(0); });
      expectElements("addcmul", {x, a, b}, shape, [](auto in) { return in(0) + 2 * in(1) * in(2); },
                     {{"value", 2}});
      if (!isFloat(dtype))
        continue;
      expectElements("addcdiv", {x, a, b}, shape,
                     [](auto in) { return in(0) + 0.5 * in(1) / in(2); }, {{"value", 0.5}});
      expectElements("lerp", {x, a, b}, shape,
                     [](auto in) { return in(0) + in(2) * (in(1) - in(0)); });
      expectElements("lerp", {x, a}, shape, [](auto in) { return in(0) + 0.75 * (in(1) - in(0)); },
                     {{"scalar", 0.75}});
    }
  }
}

/// masked_fill takes a host scalar, an attribute or a 0-d tensor of any dtype, and keeps x's dtype.
TEST(PointwiseKernels, MaskedFillTakesScalars) {
  Tensor x = tensorOf(DType::F32, {2}, {1, 2}), mask = tensorOf(DType::Bool, {2}, {0, 1});
  std::vector<double> expected = {1, -inf};
  EXPECT_EQ(valuesOf(runOp("masked_fill", {x, mask}, {{"scalar", -inf}})[0]), expected);
  EXPECT_EQ(valuesOf(runOp("masked_fill", {x, mask, Value(-inf)})[0]), expected);
  EXPECT_EQ(valuesOf(runOp("masked_fill", {x, mask, tensorOf(DType::F64, {}, {-inf})})[0]),
            expected);
  // A mask of nothing leaves everything.
  Tensor none = tensorOf(DType::Bool, {1}, {0});
  EXPECT_EQ(valuesOf(runOp("masked_fill", {x, none}, {{"scalar", 7}})[0]), valuesOf(x));
}

/// A weight of 1 gives exactly b, one of 0 exactly a.
TEST(PointwiseKernels, LerpMeetsItsEnds) {
  Tensor a = tensorOf(DType::F32, {1}, {0.1}), b = tensorOf(DType::F32, {1}, {1e8});
  EXPECT_EQ(valuesOf(runOp("lerp", {a, b}, {{"scalar", 1.0}})[0]), valuesOf(b));
  EXPECT_EQ(valuesOf(runOp("lerp", {a, b}, {{"scalar", 0.0}})[0]), valuesOf(a));
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// A result may have other strides than row-major ones; bytes between its elements are not touched.
TEST(PointwiseKernels, ResultsOfAnyStrides) {
  Tensor a = tensorOf(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  for (DType dtype : {DType::F32, DType::BF16}) {
    for (Dims strides : {Dims{1, 2}, Dims{1, 4}, Dims{8, 2}}) {
      Type type = TensorType(dtype, {2, 3}, strides, Device::host());
      Tensor x = dtype == DType::F32 ? a : tensorOf(dtype, {2, 3}, valuesOf(a));
      Value out = runOp("neg", {x}, {}, nullptr, {type})[0];
      EXPECT_EQ(valuesOf(out), (std::vector<double>{-1, -2, -3, -4, -5, -6}));
      EXPECT_TRUE(gapsArePoisoned(*out.asTensor()));
    }
  }
}

/// Why the host executor declines an op on `types`, empty if it takes it.
std::string whyNot(const char *op, std::vector<Type> types,
                   std::vector<AttributeInit> attributes = {}) {
  OpRegistry registry;
  cantFail(registerCoreOps(registry));
  TraceBuilder builder(registry);
  std::vector<ValueId> operands;
  for (const Type &type : types)
    operands.push_back(builder.argument("x", type));
  builder.ops(op, operands, attributes);
  OpId id = builder.lastOp();
  builder.returnValues({});
  llvm::Expected<Trace> trace = std::move(builder).finish();
  if (!trace)
    return llvm::toString(trace.takeError());
  ClaimAnswer answer = HostExecutor().claim(*trace, id);
  return answer.accepted ? "" : answer.why;
}

/// 8-bit floats are declined by name, unless they are only moved.
TEST(PointwiseKernels, EightBitFloatsAreDeclined) {
  Type small = TensorType(DType::F8E4M3, {4}), f32 = TensorType(DType::F32, {4});
  EXPECT_THAT(whyNot("add", {small, small}),
              testing::HasSubstr("has no host kernel for dtype f8e4m3"));
  EXPECT_THAT(whyNot("cast", {f32}, {{"dtype", DType::F8E5M2}}),
              testing::HasSubstr("has no host kernel for dtype f8e5m2"));
  EXPECT_EQ(whyNot("add", {f32, f32}), "");
  EXPECT_EQ(whyNot("clone", {small}), "");
}

/// Every op of these families has a kernel.
TEST(PointwiseKernels, EveryOpHasAKernel) {
  HostExecutor executor;
  for (const char *op : {"add",
                         "sub",
                         "rsub",
                         "mul",
                         "div",
                         "pow",
                         "maximum",
                         "minimum",
                         "remainder",
                         "atan2",
                         "eq",
                         "ne",
                         "lt",
                         "le",
                         "gt",
                         "ge",
                         "logical_and",
                         "logical_or",
                         "logical_xor",
                         "bitwise_and",
                         "bitwise_or",
                         "bitwise_xor",
                         "neg",
                         "abs",
                         "sign",
                         "exp",
                         "log",
                         "log1p",
                         "expm1",
                         "sqrt",
                         "rsqrt",
                         "reciprocal",
                         "sin",
                         "cos",
                         "tanh",
                         "sigmoid",
                         "erf",
                         "floor",
                         "ceil",
                         "round",
                         "relu",
                         "silu",
                         "logical_not",
                         "bitwise_not",
                         "isnan",
                         "isinf",
                         "softplus",
                         "leaky_relu",
                         "gelu",
                         "clamp",
                         "cast",
                         "to_device",
                         "where",
                         "masked_fill",
                         "addcmul",
                         "addcdiv",
                         "lerp",
                         "threshold_backward",
                         "gelu_backward",
                         "leaky_relu_backward",
                         "silu_backward",
                         "tanh_backward",
                         "sigmoid_backward"})
    EXPECT_NE(executor.find(op), nullptr) << op;
  EXPECT_EQ(executor.find("no_such_op"), nullptr);
}

} // namespace
