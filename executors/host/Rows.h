//===- Rows.h - Dense values, row by row ------------------------*- C++ -*-===//
//
// Kernels that work along one dimension copy a tensor to row-major doubles, compute there, and
// round once when they store the result.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"

#include <cmath>

namespace rondo::host {

inline llvm::SmallVector<int64_t, 5> rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 5> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  return strides;
}

/// A row-major tensor seen as [outer, size, inner] around one dimension.
struct Axis {
  int64_t outer = 1, size = 1, inner = 1;

  /// `dim` counts from the end when negative. A 0-d tensor counts as having one dimension.
  Axis(llvm::ArrayRef<int64_t> shape, int64_t dim) {
    int64_t rank = shape.size();
    if (rank == 0)
      return;
    int64_t at = dim < 0 ? dim + rank : dim;
    for (int64_t d = 0; d < rank; ++d)
      (d < at ? outer : d == at ? size : inner) *= shape[d];
  }

  int64_t index(int64_t o, int64_t i, int64_t k) const { return (o * size + i) * inner + k; }
  /// Calls `visit(first)` with the index of the first element of every row along the dimension;
  /// the others follow at distance `inner`. Rows without elements are not visited.
  template <typename Visit> void forEachRow(Visit &&visit) const {
    for (int64_t o = 0; size > 0 && o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k)
        visit(index(o, 0, k));
  }
};

/// What softmax needs to know of a row.
struct ExpSum {
  double max; ///< nan if an element is; -inf for no elements
  double sum; ///< of exp(x - max)

  double logSumExp() const { return max + std::log(sum); }
  bool isAllMinusInfinity() const { return max == -std::numeric_limits<double>::infinity(); }
};

/// Of the `size` elements at `row`, `stride` apart.
inline ExpSum expSum(const double *row, int64_t size, int64_t stride) {
  ExpSum result{-std::numeric_limits<double>::infinity(), 0};
  for (int64_t i = 0; i < size; ++i) {
    double x = row[i * stride];
    if (std::isnan(x) || x > result.max)
      result.max = x;
    if (std::isnan(x))
      break;
  }
  for (int64_t i = 0; i < size; ++i)
    result.sum += std::exp(row[i * stride] - result.max);
  return result;
}

} // namespace rondo::host
