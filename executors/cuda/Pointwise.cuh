//===- Pointwise.cuh - Kernels that work element by element -----*- C++ -*-===//
//
// One kernel for each function and type that it computes with. Elements may have any dtype: which
// one is the same for all threads, so that choosing it costs little beside the memory it comes
// from.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "PointwiseDevice.h"

namespace rondo::cuda {

/// The C whose bits these are.
template <typename C> __device__ C numberOf(uint64_t bits) {
  if constexpr (std::is_same_v<C, float>)
    return __uint_as_float(uint32_t(bits));
  else if constexpr (std::is_same_v<C, double>)
    return __longlong_as_double(int64_t(bits));
  else
    return int64_t(bits);
}

/// Not inlined: what is common to all functions is compiled once.
template <typename C> __device__ __noinline__ C roundElement(ElementType as, C value) {
  return roundTo(as, value);
}
template <typename C>
__device__ __noinline__ C loadElement(ElementType type, ElementType as, const void *data,
                                      int64_t i) {
  return loadAs<C>(type, as, data, i);
}
template <typename C>
__device__ __noinline__ void storeElement(ElementType type, void *data, int64_t i, C value) {
  store(type, data, i, value);
}

/// Element `i` of input `k`, or the constant. Host scalars are loaded from the parameters like
/// elements: a call of another function would cost registers.
template <typename C> __device__ C numberAt(const PointwiseParams &p, int k, int64_t i) {
  if (!p.in[k] && p.isRounded[k])
    return numberOf<C>(p.constants[k]);
  return loadElement<C>(p.inTypes[k], p.as[k], p.in[k] ? p.in[k] : &p.constants[k], i);
}

/// As `dispatch`, for the vector types of C.
template <typename C, typename Fn> __device__ void dispatchVector(ElementType type, Fn &&fn) {
  if constexpr (std::is_same_v<C, double>)
    return fn(TypeTag<double>());
  else if constexpr (std::is_same_v<C, int64_t>)
    return type == ElementType::I64   ? fn(TypeTag<int64_t>())
           : type == ElementType::I32 ? fn(TypeTag<int32_t>())
                                      : fn(TypeTag<bool>());
  else
    return type == ElementType::F32    ? fn(TypeTag<float>())
           : type == ElementType::BF16 ? fn(TypeTag<BFloat16>())
           : type == ElementType::F16  ? fn(TypeTag<Half>())
                                       : fn(TypeTag<bool>());
}

/// Elements first … first + pointwiseVector - 1.
template <typename C>
__device__ void loadVector(ElementType type, ElementType as, const void *data, int64_t first,
                           C (&values)[pointwiseVector]) {
  dispatchVector<C>(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    auto pack =
        *reinterpret_cast<const Pack<T, pointwiseVector> *>(static_cast<const T *>(data) + first);
#pragma unroll
    for (int j = 0; j < pointwiseVector; ++j)
      values[j] =
          as == ElementType::Bool ? C(convert<bool>(pack.values[j])) : convert<C>(pack.values[j]);
  });
  if (as != type && as != ElementType::Bool) {
#pragma unroll
    for (int j = 0; j < pointwiseVector; ++j)
      values[j] = roundElement(as, values[j]);
  }
}
template <typename C>
__device__ void storeVector(ElementType type, void *data, int64_t first,
                            const C (&values)[pointwiseVector]) {
  dispatchVector<C>(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    Pack<T, pointwiseVector> pack;
#pragma unroll
    for (int j = 0; j < pointwiseVector; ++j)
      pack.values[j] = convert<T>(values[j]);
    *reinterpret_cast<Pack<T, pointwiseVector> *>(static_cast<T *>(data) + first) = pack;
  });
}

template <typename C, typename Fn, int... I>
__device__ C applyTo(const C (&values)[maxPointwiseInputs], std::integer_sequence<int, I...>) {
  return static_cast<C>(Fn()(values[I]...));
}

template <typename C, typename Fn, int N>
__global__ void __launch_bounds__(pointwiseBlock)
    pointwiseKernel(const __grid_constant__ PointwiseParams p) {
  constexpr auto inputs = std::make_integer_sequence<int, N>();
  int64_t thread = int64_t(blockIdx.x) * pointwiseBlock + threadIdx.x;
  int64_t threads = int64_t(gridDim.x) * pointwiseBlock, count = p.layout.count, scalar = 0;
  if (p.isDense) {
    int64_t vectors = count / pointwiseVector;
    for (int64_t v = thread; v < vectors; v += threads) {
      C in[maxPointwiseInputs][pointwiseVector], out[pointwiseVector];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (p.in[k] && !p.isOneElement[k]) {
          loadVector(p.inTypes[k], p.as[k], p.in[k], v * pointwiseVector, in[k]);
        } else {
          C number = numberAt<C>(p, k, 0);
#pragma unroll
          for (int j = 0; j < pointwiseVector; ++j)
            in[k][j] = number;
        }
      }
#pragma unroll
      for (int j = 0; j < pointwiseVector; ++j) {
        C values[maxPointwiseInputs];
#pragma unroll
        for (int k = 0; k < N; ++k)
          values[k] = in[k][j];
        out[j] = applyTo<C, Fn>(values, inputs);
      }
      storeVector(p.outType, p.out, v * pointwiseVector, out);
    }
    scalar = vectors * pointwiseVector; // the rest
  }
  for (int64_t i = scalar + thread; i < count; i += threads) {
    int64_t offsets[maxPointwiseInputs + 1];
    p.layout.offsets(i, offsets);
    C values[maxPointwiseInputs];
#pragma unroll
    for (int k = 0; k < N; ++k)
      values[k] = numberAt<C>(p, k, offsets[k]);
    storeElement<C>(p.outType, p.out, offsets[maxPointwiseInputs], applyTo<C, Fn>(values, inputs));
  }
}

template <typename C, typename Fn, int N> const void *pointwiseSymbol() {
  return reinterpret_cast<const void *>(&pointwiseKernel<C, Fn, N>);
}

/// Of a function object on N numbers, all int64_t, all float or all double.
template <typename Fn, int N> PointwiseKernels onNumbers() {
  return {pointwiseSymbol<int64_t, Fn, N>(), pointwiseSymbol<float, Fn, N>(),
          pointwiseSymbol<double, Fn, N>()};
}
/// Of one on N numbers, all float or all double.
template <typename Fn, int N> PointwiseKernels onFloats() {
  return {nullptr, pointwiseSymbol<float, Fn, N>(), pointwiseSymbol<double, Fn, N>()};
}
/// Of one on N int64_t.
template <typename Fn, int N> PointwiseKernels onIntegers() {
  return {pointwiseSymbol<int64_t, Fn, N>(), nullptr, nullptr};
}

} // namespace rondo::cuda
