//===- ExpSum.cuh - Sums of exponentials ------------------------*- C++ -*-===//
//
// The sum of exp(x - max) in one pass: where a greater x comes, the sum so far is scaled down
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"

#include <cmath>

namespace rondo::cuda {

template <typename C> __device__ C infinityOf() {
  return C(INFINITY);
}
template <typename C> __device__ C notANumber() {
  return C(NAN);
}

/// Of the numbers seen. A nan makes the sum nan; -inf adds 0.
template <typename C> struct ExpSum {
  C max; ///< -inf for no numbers
  C sum; ///< of exp(x - max), 1 for x = max

  static __device__ ExpSum none() { return {-infinityOf<C>(), 0}; }
  __device__ void see(C x) {
    if (x > max) {
      sum = sum * ::exp(max - x) + 1;
      max = x;
    } else if (x != -infinityOf<C>()) {
      sum += x == max ? C(1) : ::exp(x - max);
    }
  }
  /// The sum for a softmax, nan where the greatest number is infinite.
  __device__ C softmaxSum() const {
    return max - max == 0 ? sum : notANumber<C>(); // inf - inf is nan
  }
  __device__ bool isAllMinusInfinity() const { return max == -infinityOf<C>() && sum == 0; }
};

struct AddExpSums {
  template <typename C> __device__ ExpSum<C> operator()(ExpSum<C> a, ExpSum<C> b) const {
    if (a.max == b.max)
      return {a.max, a.sum + b.sum};
    return a.max > b.max ? ExpSum<C>{a.max, a.sum + b.sum * ::exp(b.max - a.max)}
                         : ExpSum<C>{b.max, b.sum + a.sum * ::exp(a.max - b.max)};
  }
};

} // namespace rondo::cuda
