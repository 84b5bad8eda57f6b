//===- OpCases.h - What the kernels of every core op are run on -*- C++ -*-===//
//
// The table of cases of the conformance suite, a function for each family of ops. A case is run in
// every dtype of its op and every layout of its operands and results.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/OpCase.h"

#include <cmath>
#include <functional>
#include <limits>

namespace rondo {

struct OpCase {
  std::string name;
  std::vector<Arg> args;
  std::vector<AttributeInit> attributes = {};
  /// Only in floating-point dtypes.
  bool floatsOnly = false;
  /// Only row-major and in one dtype, f32 if the op takes it: the size is the point.
  bool isLarge = false;
  /// Results count as at least so large when errors are compared with them: where what is exactly 0
  /// in theory comes out of sums that cancel.
  double leastNorm = 0;
};

/// What the results of an op are compared with.
enum class OpCheck {
  InDouble,  ///< the host's results in f64
  SameDType, ///< the host's in the same dtypes, equal
  Printed,   ///< what the host writes to stderr
  Nothing,   ///< values are unspecified
};

struct OpCases {
  std::string op;
  std::vector<DType> dtypes;
  /// Made anew for each test. There is a case `empty` and one `one element`, but for ops without
  /// either (see `lacks`).
  std::function<std::vector<OpCase>()> cases;
  OpCheck check = OpCheck::InDouble;
  /// Gets the attribute `dtype`, the dtype that is tested; the attribute `device`.
  bool takesDType = false, takesDevice = false;
  /// The bound on errors in f32.
  double f32Tolerance = 1e-5;
  /// The case that the op cannot have, `empty` or `one element`, or both, and why.
  std::string lacks = {};
};
using OpCaseTable = std::vector<OpCases>;

/// All of them, in a fixed order.
const OpCaseTable &opCaseTable();

void addCreationCases(OpCaseTable &table);
void addPointwiseCases(OpCaseTable &table);
void addUnaryCases(OpCaseTable &table);
void addReductionCases(OpCaseTable &table);
void addSoftmaxCases(OpCaseTable &table);
void addDataMovementCases(OpCaseTable &table);
void addIndexCases(OpCaseTable &table);
void addMatmulCases(OpCaseTable &table);
void addNormalizationCases(OpCaseTable &table);
void addAttentionCases(OpCaseTable &table);
void addLossCases(OpCaseTable &table);
void addRandomCases(OpCaseTable &table);
void addOptimizerCases(OpCaseTable &table);
void addHostEffectCases(OpCaseTable &table);

//===----------------------------------------------------------------------===//
// What cases are made of
//===----------------------------------------------------------------------===//

namespace op_cases {

using Shape = std::vector<int64_t>;
using Attributes = std::vector<AttributeInit>;
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

inline const std::vector<DType> floats{DType::F64, DType::F32, DType::F16, DType::BF16};
inline const std::vector<DType> integers{DType::I64, DType::I32, DType::I16, DType::I8, DType::U8};
template <typename T> std::vector<T> operator+(std::vector<T> a, const std::vector<T> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline const std::vector<DType> integral = integers + std::vector{DType::Bool};
inline const std::vector<DType> numbers = floats + integers, all = floats + integral;

inline Attribute ints(Shape values) {
  return Attribute(llvm::ArrayRef<int64_t>(values));
}
inline Attribute bools(std::vector<bool> values) {
  Attribute::List list;
  for (bool value : values)
    list.emplace_back(value);
  return list;
}

/// From [-2, 2).
inline Arg random(Shape shape, uint64_t seed = 1) {
  return randomArg(std::move(shape), seed);
}
/// From [0.25, 2.25).
inline Arg positive(Shape shape, uint64_t seed = 1) {
  Arg arg = random(std::move(shape), seed);
  for (double &value : arg.values)
    value = std::fabs(value) + 0.25;
  return arg;
}
inline Arg given(Shape shape, std::vector<double> values, ArgKind kind = ArgKind::Element) {
  return {std::move(shape), std::move(values), kind};
}
/// Of one dtype whatever is tested.
inline Arg fixed(DType dtype, Arg arg) {
  arg.kind = ArgKind::Fixed;
  arg.dtype = dtype;
  return arg;
}
/// Of the one dtype that the op takes.
inline Arg always(DType dtype, Arg arg) {
  arg = fixed(dtype, std::move(arg));
  arg.isOnlyDType = true;
  return arg;
}
inline Arg indices(Shape shape, std::vector<double> values) {
  return given(std::move(shape), std::move(values), ArgKind::Index);
}
/// From [low, high).
inline Arg randomIndex(Shape shape, int64_t low, int64_t high, uint64_t seed = 1) {
  Arg arg = randomArg(std::move(shape), seed, ArgKind::Index);
  for (double &value : arg.values)
    value = std::floor(low + (value + 2) / 4 * double(high - low));
  return arg;
}
inline Arg mask(Shape shape, uint64_t seed = 1) {
  Arg arg = randomArg(std::move(shape), seed, ArgKind::Mask);
  for (double &value : arg.values)
    value = value > 0;
  return arg;
}
inline Arg statistic(Arg arg) {
  arg.kind = ArgKind::Statistic;
  return arg;
}
inline Arg hostScalar(Value value) {
  Arg arg{{}, {}, ArgKind::Scalar};
  arg.scalar = value;
  return arg;
}
inline Arg rng(uint64_t seed, uint64_t offset) {
  Arg arg{{}, {}, ArgKind::RNG};
  arg.state = {seed, offset};
  return arg;
}
inline OpCase floatsOnly(OpCase test) {
  test.floatsOnly = true;
  return test;
}
inline OpCase large(OpCase test) {
  test.isLarge = true;
  return test;
}

/// Row-major f64 results of the host, for operands that are results of another op.
std::vector<std::vector<double>> hostResults(llvm::StringRef op, const std::vector<Arg> &args,
                                             const Attributes &attributes = {});

} // namespace op_cases

} // namespace rondo
