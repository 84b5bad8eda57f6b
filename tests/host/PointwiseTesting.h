//===- PointwiseTesting.h - Pointwise kernels against formulas --*- C++ -*-===//

#pragma once

#include "RunOp.h"

#include <functional>

namespace rondo::pointwise_testing {

inline constexpr DType floats[] = {DType::F32, DType::F64, DType::BF16, DType::F16};
inline constexpr DType integers[] = {DType::I64, DType::I32, DType::I16, DType::I8, DType::U8};
inline constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();
inline constexpr double inf = std::numeric_limits<double>::infinity();

using Shape = llvm::SmallVector<int64_t, 4>;

/// Small numbers that `dtype` holds: fractions for floats, else from -8 to 7, or 0 to 15.
inline Tensor numbers(DType dtype, llvm::ArrayRef<int64_t> shape, uint64_t seed, Layout layout) {
  std::vector<double> values = randomValues(countOf(shape), seed);
  for (double &value : values) {
    if (!isFloat(dtype))
      value = std::floor(value * 4);
    if (dtype == DType::U8 || dtype == DType::Bool)
      value = std::fabs(value);
  }
  return withLayout(tensorOf(dtype, shape, values), layout);
}

/// The elements of `tensor` broadcast to `shape`.
inline std::vector<double> valuesAs(const Tensor &tensor, llvm::ArrayRef<int64_t> shape) {
  auto strides = broadcastStrides(tensor.ref(), shape);
  return host::toDense<double>({tensor.data(), tensor.dtype(), shape, strides});
}

/// Runs the op and compares every element with `formula(in)`, where `in(k)` is the element of
/// operand k that broadcasts to it. A negative tolerance is that of the result's dtype.
template <typename Formula>
void expectElements(llvm::StringRef op, const std::vector<Tensor> &tensors, Shape shape,
                    Formula formula, std::vector<AttributeInit> attributes = {},
                    double tolerance = -1) {
  std::vector<OperandInit> operands(tensors.begin(), tensors.end());
  std::vector<Value> results = runOp(op, operands, attributes);
  ASSERT_EQ(results.size(), 1U);
  const Tensor *out = results[0].asTensor();
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out->shape(), llvm::ArrayRef<int64_t>(shape));
  std::vector<std::vector<double>> inputs;
  for (const Tensor &tensor : tensors)
    inputs.push_back(valuesAs(tensor, shape));
  std::vector<double> expected;
  for (int64_t i = 0; i < countOf(shape); ++i)
    expected.push_back(formula([&](unsigned k) { return inputs[k][i]; }));
  EXPECT_LE(relativeError(valuesOf(*out), expected),
            tolerance < 0 ? toleranceOf(out->dtype()) : tolerance)
      << testing::PrintToString(valuesOf(*out)) << " for " << testing::PrintToString(expected);
}

inline std::string describe(llvm::StringRef op, DType dtype, Layout layout) {
  return (op + " " + dtypeName(dtype) + " " + layoutName(layout)).str();
}

} // namespace rondo::pointwise_testing
