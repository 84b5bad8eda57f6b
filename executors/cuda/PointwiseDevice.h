//===- PointwiseDevice.h - Device code of pointwise ops ---------*- C++ -*-===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

inline constexpr int maxPointwiseInputs = 4;
inline constexpr int pointwiseBlock = 256; ///< threads
inline constexpr int pointwiseVector = 4;  ///< elements that a thread works on at once

/// The `__global__` functions of one function on numbers, by what it computes with; null for none.
struct PointwiseKernels {
  const void *i64 = nullptr, *f32 = nullptr, *f64 = nullptr;

  const void *find(ComputeType type) const {
    return type == ComputeType::I64 ? i64 : type == ComputeType::F64 ? f64 : f32;
  }
};

/// Can elements of `type` be loaded several at once into numbers of the compute type? The dtypes
/// that occur with it often.
constexpr bool isVectorType(ComputeType compute, ElementType type) {
  switch (compute) {
  case ComputeType::I64:
    return type == ElementType::I64 || type == ElementType::I32 || type == ElementType::Bool;
  case ComputeType::F32:
    return type == ElementType::F32 || type == ElementType::BF16 || type == ElementType::F16 ||
           type == ElementType::Bool;
  case ComputeType::F64:
    return type == ElementType::F64;
  }
  return false;
}

/// What pointwise kernels get.
struct PointwiseParams {
  Layout<maxPointwiseInputs + 1> layout;   ///< of the inputs and the result
  const void *in[maxPointwiseInputs] = {}; ///< null: the constant of that number
  void *out = nullptr;
  /// Their bits, from the lowest: of a number of the compute type if it is rounded, else of an
  /// element of inTypes, i64, f64 or bool: a host scalar as it was given, so that a graph can
  /// follow it.
  uint64_t constants[maxPointwiseInputs] = {};
  bool isRounded[maxPointwiseInputs] = {};
  ElementType inTypes[maxPointwiseInputs] = {}, as[maxPointwiseInputs] = {};
  ElementType outType = ElementType::F32;
  /// All tensors are dense in one order, aligned to pointwiseVector elements and of vector types,
  /// but for inputs that are one element for all.
  bool isDense = false;
  bool isOneElement[maxPointwiseInputs] = {};
};

/// Functions on numbers. They take the op's operands, then its parameters.
namespace pointwise {
// Arithmetic.cu
PointwiseKernels add(), sub(), rsub(), mul(), div(), pow(), remainder(), atan2();
PointwiseKernels maximum(), minimum(), eq(), ne(), lt(), le(), gt(), ge();
PointwiseKernels bitAnd(), bitOr(), bitXor();
PointwiseKernels where(), maskedFill(), addcmul(), addcdiv(), lerp();
PointwiseKernels clamp(), clampMin(), clampMax();
PointwiseKernels copy(), accumulate();
// Unary.cu
PointwiseKernels neg(), abs(), sign(), floor(), ceil(), round(), relu();
PointwiseKernels logicalNot(), bitwiseNot(), isnan(), isinf();
PointwiseKernels exp(), log(), log1p(), expm1(), sqrt(), rsqrt(), reciprocal(), sin(), cos();
PointwiseKernels tanh(), sigmoid(), erf(), silu(), softplus(), leakyRelu(), geluTanh(), geluErf();
// PointwiseBackward.cu
PointwiseKernels thresholdBackward(), geluTanhBackward(), geluErfBackward(), leakyReluBackward();
PointwiseKernels siluBackward(), tanhBackward(), sigmoidBackward();
} // namespace pointwise

} // namespace rondo::cuda
