//===- Rows.h - Dense values, row by row ------------------------*- C++ -*-===//
//
// Kernels that work along one dimension copy a tensor to row-major doubles, compute there, and
// round once when they store the result.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"

#include "rondo/executors/Shapes.h"

#include <cmath>

namespace rondo::host {

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
