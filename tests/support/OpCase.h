//===- OpCase.h - Operands and attributes to run an op on -------*- C++ -*-===//
//
// Cases are written once for all dtypes: operands hold numbers, and what an operand is for decides
// their dtype.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/RandomValues.h"
#include "support/RunOp.h"

namespace rondo {

inline constexpr DType floatDTypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16};

/// What decides the dtype of an operand: the dtype that is tested, the dtype of its statistics, or
/// nothing: it is i64, bool or `Arg::dtype`. `Scalar`, `RNG`: no tensor but a host scalar or a
/// state. `None`: the operand is absent.
enum class ArgKind { Element, Statistic, Index, Mask, Fixed, Scalar, RNG, None };

struct Arg {
  std::vector<int64_t> shape;
  std::vector<double> values;
  ArgKind kind = ArgKind::Element;
  DType dtype = DType::F32; ///< of Fixed
  Value scalar = {};        ///< of Scalar
  RNGState state = {};      ///< of RNG
  /// Of Fixed: the op takes no other dtype, also where the host computes in f64.
  bool isOnlyDType = false;

  bool isTensor() const { return kind < ArgKind::Scalar; }
};
inline const Arg noArg{{}, {}, ArgKind::None};

/// Random values for a shape.
inline Arg randomArg(std::vector<int64_t> shape, uint64_t seed, ArgKind kind = ArgKind::Element) {
  std::vector<double> values = randomValues(countOf(shape), seed);
  return {std::move(shape), std::move(values), kind};
}

inline DType dtypeOf(ArgKind kind, DType dtype) {
  switch (kind) {
  case ArgKind::Index:
    return DType::I64;
  case ArgKind::Mask:
    return DType::Bool;
  case ArgKind::Statistic:
    return dtypeSize(dtype) < 4 ? DType::F32 : dtype;
  default:
    return dtype;
  }
}

/// The dtype of the operand where `tested` is tested.
inline DType dtypeOf(const Arg &arg, DType tested) {
  return arg.kind == ArgKind::Fixed ? arg.dtype : dtypeOf(arg.kind, tested);
}

} // namespace rondo
