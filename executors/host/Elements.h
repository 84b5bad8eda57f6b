//===- Elements.h - Element types and strided loops -------------*- C++ -*-===//
//
// What every host kernel needs: C++ types for dtypes, loops over tensors of any strides, and dense
// copies. Half-precision elements are computed with in f32 and rounded when stored, as PyTorch
// does.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Shapes.h"
#include "rondo/executors/Tensor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <Eigen/Core>

#include <array>
#include <limits>
#include <type_traits>
#include <vector>

namespace rondo::host {

using Half = Eigen::half;
using BFloat16 = Eigen::bfloat16;

template <typename T>
inline constexpr bool isReducedFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
inline constexpr bool isFloatElement = std::is_floating_point_v<T> || isReducedFloat<T>;
/// What arithmetic on elements of type T is done in: float for half-precision, else T.
template <typename T> using Compute = std::conditional_t<isReducedFloat<T>, float, T>;

template <typename T> struct TypeTag { using Type = T; };

/// Calls `fn(TypeTag<T>())` for the element type of `dtype`. The 8-bit floats have none: callers
/// decline them (isSupported).
template <typename Fn> decltype(auto) dispatch(DType dtype, Fn &&fn) {
  switch (dtype) {
  case DType::Bool:
    return fn(TypeTag<bool>());
  case DType::U8:
    return fn(TypeTag<uint8_t>());
  case DType::I8:
    return fn(TypeTag<int8_t>());
  case DType::I16:
    return fn(TypeTag<int16_t>());
  case DType::I32:
    return fn(TypeTag<int32_t>());
  case DType::I64:
    return fn(TypeTag<int64_t>());
  case DType::F16:
    return fn(TypeTag<Half>());
  case DType::BF16:
    return fn(TypeTag<BFloat16>());
  case DType::F64:
    return fn(TypeTag<double>());
  case DType::F32:
  default:
    return fn(TypeTag<float>());
  }
}
/// As `dispatch`, for the floating-point dtypes f16, bf16, f32, f64 alone.
template <typename Fn> decltype(auto) dispatchFloat(DType dtype, Fn &&fn) {
  switch (dtype) {
  case DType::F16:
    return fn(TypeTag<Half>());
  case DType::BF16:
    return fn(TypeTag<BFloat16>());
  case DType::F64:
    return fn(TypeTag<double>());
  default:
    return fn(TypeTag<float>());
  }
}

inline bool isSupported(DType dtype) {
  return dtype != DType::F8E4M3 && dtype != DType::F8E5M2;
}

/// Towards zero; what no int64 holds (nan included) gives the least int64, as x86 does.
template <typename Float> int64_t toInteger(Float value) {
  constexpr Float bound = Float(9223372036854775808.0);
  return value >= -bound && value < bound ? int64_t(value) : std::numeric_limits<int64_t>::min();
}

/// Converts between element types as PyTorch's casts do; to bool means "is not zero".
template <typename To, typename From> To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<To, bool>)
    return static_cast<Compute<From>>(value) != Compute<From>(0);
  else if constexpr (isReducedFloat<To>)
    return To(static_cast<float>(static_cast<Compute<From>>(value)));
  else if constexpr (std::is_integral_v<To> && isFloatElement<From>)
    return static_cast<To>(toInteger(static_cast<Compute<From>>(value)));
  else
    return static_cast<To>(static_cast<Compute<From>>(value));
}

// Arithmetic that is defined for all numbers: of integers it is modulo 2^64.
template <typename T> T wrapAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <typename T> T wrapSub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}
template <typename T> T wrapMul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

/// Visits all index tuples of `shape` in row-major order, with the element offset of each of N
/// tensors that have the given strides (0 where a tensor broadcasts): `visit(offsets)`, an
/// `std::array<int64_t, N>`.
template <size_t N, typename Visit>
void forEachOffset(llvm::ArrayRef<int64_t> shape,
                   const std::array<llvm::ArrayRef<int64_t>, N> &strides, Visit &&visit) {
  std::array<int64_t, N> offsets = {};
  unsigned rank = shape.size();
  if (rank == 0) {
    visit(offsets);
    return;
  }
  for (int64_t size : shape)
    if (size == 0)
      return;
  llvm::SmallVector<int64_t, 5> index(rank, 0);
  int64_t inner = shape[rank - 1];
  while (true) {
    std::array<int64_t, N> at = offsets;
    for (int64_t i = 0; i < inner; ++i) {
      visit(at);
      for (size_t n = 0; n < N; ++n)
        at[n] += strides[n][rank - 1];
    }
    int d = int(rank) - 2;
    for (; d >= 0; --d) {
      for (size_t n = 0; n < N; ++n)
        offsets[n] += strides[n][d];
      if (++index[d] < shape[d])
        break;
      for (size_t n = 0; n < N; ++n)
        offsets[n] -= strides[n][d] * shape[d];
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

/// The elements of `tensor` in row-major order, converted to T. (No std::vector<bool>: for masks
/// use uint8_t.)
template <typename T> std::vector<T> toDense(const TensorRef &tensor) {
  static_assert(!std::is_same_v<T, bool>);
  std::vector<T> dense;
  dense.reserve(tensor.numElements());
  dispatch(tensor.dtype, [&](auto tag) {
    using From = typename decltype(tag)::Type;
    const From *data = tensor.as<From>();
    forEachOffset<1>(tensor.shape, {tensor.strides},
                     [&](auto offsets) { dense.push_back(convert<T>(data[offsets[0]])); });
  });
  return dense;
}

/// Stores row-major `dense` into `tensor`, converted to its dtype.
template <typename T> void fromDense(llvm::ArrayRef<T> dense, const TensorRef &tensor) {
  dispatch(tensor.dtype, [&](auto tag) {
    using To = typename decltype(tag)::Type;
    To *data = tensor.as<To>();
    const T *next = dense.data();
    forEachOffset<1>(tensor.shape, {tensor.strides},
                     [&](auto offsets) { data[offsets[0]] = convert<To>(*next++); });
  });
}

} // namespace rondo::host
