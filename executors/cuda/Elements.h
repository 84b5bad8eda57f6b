//===- Elements.h - Element types on a GPU ----------------------*- C++ -*-===//
//
// What CUDA kernels need of dtypes: loading elements of any dtype as one of few types to compute
// with, int64_t, float or double, and rounding them when they are stored. For host code, too. No
// LLVM here or in any file that nvcc compiles.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#define RONDO_DEVICE __host__ __device__
#else
#define RONDO_DEVICE
#endif

namespace rondo::cuda {

using Half = __half;
using BFloat16 = __nv_bfloat16;

/// The values of rondo::DType, in its order; the 8-bit floats are copied but not computed with.
enum class ElementType : uint8_t {
  Bool,
  U8,
  I8,
  I16,
  I32,
  I64,
  F8E4M3,
  F8E5M2,
  F16,
  BF16,
  F32,
  F64
};
enum class ComputeType : uint8_t { I64, F32, F64 };

template <typename T>
inline constexpr bool isReducedFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
inline constexpr bool isFloatElement = std::is_floating_point_v<T> || isReducedFloat<T>;

template <typename T> struct TypeTag { using Type = T; };

/// Calls `fn(TypeTag<T>())` for the C++ type of the element type; f8 has none and is taken for f32.
template <typename Fn> RONDO_DEVICE decltype(auto) dispatch(ElementType type, Fn &&fn) {
  switch (type) {
  case ElementType::Bool:
    return fn(TypeTag<bool>());
  case ElementType::U8:
    return fn(TypeTag<uint8_t>());
  case ElementType::I8:
    return fn(TypeTag<int8_t>());
  case ElementType::I16:
    return fn(TypeTag<int16_t>());
  case ElementType::I32:
    return fn(TypeTag<int32_t>());
  case ElementType::I64:
    return fn(TypeTag<int64_t>());
  case ElementType::F16:
    return fn(TypeTag<Half>());
  case ElementType::BF16:
    return fn(TypeTag<BFloat16>());
  case ElementType::F64:
    return fn(TypeTag<double>());
  default:
    return fn(TypeTag<float>());
  }
}

/// What the arithmetic of elements of type T is done in.
RONDO_DEVICE inline float widen(Half value) {
  return __half2float(value);
}
RONDO_DEVICE inline float widen(BFloat16 value) {
  return __bfloat162float(value);
}
template <typename T> RONDO_DEVICE T widen(T value) {
  return value;
}

/// Towards zero; what no int64 holds (nan included) gives the least int64, as x86 does.
template <typename Float> RONDO_DEVICE int64_t toInteger(Float value) {
  constexpr Float bound = Float(9223372036854775808.0);
  return value >= -bound && value < bound ? int64_t(value) : INT64_MIN;
}

/// Converts between element types as PyTorch's casts do; to bool means "is not zero".
template <typename To, typename From> RONDO_DEVICE To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<To, bool>)
    return widen(value) != 0;
  else if constexpr (std::is_same_v<To, Half>)
    return __float2half_rn(static_cast<float>(widen(value)));
  else if constexpr (std::is_same_v<To, BFloat16>)
    return __float2bfloat16_rn(static_cast<float>(widen(value)));
  else if constexpr (std::is_integral_v<To> && isFloatElement<From>)
    return static_cast<To>(toInteger(widen(value)));
  else
    return static_cast<To>(widen(value));
}

/// Element `i` of the array at `data`.
template <typename C> RONDO_DEVICE C load(ElementType type, const void *data, int64_t i) {
  return dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return convert<C>(static_cast<const T *>(data)[i]);
  });
}
template <typename C> RONDO_DEVICE void store(ElementType type, void *data, int64_t i, C value) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    static_cast<T *>(data)[i] = convert<T>(value);
  });
}

/// The value as an element of `type` would hold it. To bool: is it not zero?
template <typename C> RONDO_DEVICE C roundTo(ElementType type, C value) {
  return dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return convert<C>(convert<T>(value));
  });
}

/// Element `i`, rounded to dtype `as` before it becomes a C.
template <typename C>
RONDO_DEVICE C loadAs(ElementType type, ElementType as, const void *data, int64_t i) {
  if (as == ElementType::Bool) // a C may not tell a small number from 0
    return C(load<bool>(type, data, i));
  C value = load<C>(type, data, i);
  return as == type ? value : roundTo(as, value);
}

// Arithmetic that is defined for all numbers: of integers it is modulo 2^64.
template <typename T> RONDO_DEVICE T wrapAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <typename T> RONDO_DEVICE T wrapSub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}
template <typename T> RONDO_DEVICE T wrapMul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

/// V elements that are loaded and stored at once; V * sizeof(T) a power of two.
template <typename T, int V> struct alignas(sizeof(T) * V > 16 ? 16 : sizeof(T) * V) Pack {
  T values[V];
};

} // namespace rondo::cuda
