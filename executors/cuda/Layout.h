//===- Layout.h - Which element a thread works on ---------------*- C++ -*-===//
//
// Several tensors of one shape, walked through together: an element's number, in row-major order of
// the shape, gives its offset in each of them. Plain C++, part of kernels' parameters.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"

namespace rondo::cuda {

/// Dimensions that a kernel can walk through, after those that can be merged are.
inline constexpr int maxDims = 8;

/// Division of 0 <= n < 2^31 by a constant, by a multiplication (Granlund and Montgomery, "Division
/// by invariant integers using multiplication", PLDI 1994).
struct Divider {
  uint32_t divisor = 1, multiplier = 0, shift = 0;

  Divider() = default;
  /// 1 <= divisor < 2^31
  explicit Divider(uint32_t d) : divisor(d) {
    while ((uint64_t(1) << shift) < d)
      ++shift;
    multiplier = uint32_t(((uint64_t(1) << 32) * ((uint64_t(1) << shift) - d)) / d + 1);
  }
#ifdef __CUDACC__
  __device__ uint32_t quotient(uint32_t n) const {
    return (__umulhi(n, multiplier) + n) >> shift;
  }
#endif
};

/// N tensors of one shape. Offsets and strides in elements.
template <int N> struct Layout {
  int64_t count = 0;   ///< elements of the shape
  int rank = 0;        ///< at most maxDims
  bool isSmall = true; ///< count < 2^31: `dividers` serve
  int64_t shape[maxDims] = {};
  Divider dividers[maxDims];
  int64_t strides[N][maxDims] = {};

#ifdef __CUDACC__
  /// Where element `i` is in each tensor.
  __device__ void offsets(int64_t i, int64_t (&result)[N]) const {
#pragma unroll
    for (int k = 0; k < N; ++k)
      result[k] = 0;
    if (isSmall) {
      uint32_t rest = uint32_t(i);
      for (int d = rank - 1; d >= 0; --d) {
        uint32_t quotient = d == 0 ? 0 : dividers[d].quotient(rest);
        int64_t index = rest - quotient * dividers[d].divisor;
        rest = quotient;
#pragma unroll
        for (int k = 0; k < N; ++k)
          result[k] += index * strides[k][d];
      }
    } else {
      for (int d = rank - 1; d >= 0; --d) {
        int64_t quotient = d == 0 ? 0 : i / shape[d], index = i - quotient * shape[d];
        i = quotient;
#pragma unroll
        for (int k = 0; k < N; ++k)
          result[k] += index * strides[k][d];
      }
    }
  }
#endif
};

} // namespace rondo::cuda
