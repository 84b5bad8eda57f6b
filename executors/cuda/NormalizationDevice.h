//===- NormalizationDevice.h - Device code of norms -------------*- C++ -*-===//

#pragma once

#include "RowSetDevice.h"

namespace rondo::cuda {

/// Of x, the result, w, b, and the statistics mean and rstd. RMS norm has neither b nor mean.
struct NormParams {
  enum { X, Out, W, B, Mean, Rstd, NumTensors };
  RowSet<NumTensors> set;
  bool isCentred = false; ///< layer norm
  double eps = 0;
};

/// Of the incoming gradient, x, the statistics, w, and the gradient of x.
struct NormBackwardParams {
  enum { Grad, X, Mean, Rstd, W, GradX, NumTensors };
  RowSet<NumTensors> set;
  bool isCentred = false;
};

/// Threads of a block for each position in a row, when gradients are summed over rows.
inline constexpr int normColumns = 32;

/// Of the gradients of w and b: sums over the rows. Blocks share the rows of a position where
/// positions are few; then a second kernel adds up what they have.
struct NormParameterParams {
  RowSet<NormBackwardParams::NumTensors> set;
  Layout<2> gradients;                     ///< of w and b
  void *gradW = nullptr, *gradB = nullptr; ///< null: not wanted
  ElementType wType = ElementType::F32, bType = ElementType::F32;
  /// The incoming gradient and x are of one vector type, the statistics of the compute type.
  bool isPlain = false;
  int64_t splits = 1; ///< the grid's second dimension
  int64_t chunk = 0;  ///< rows for each
  /// [splits, 2, positions] numbers of the compute type; null for one split
  void *partials = nullptr;
};

namespace norm {
// Of F32 and F64.
const void *forward(ComputeType type);
const void *backward(ComputeType type);
const void *parameterGradients(ComputeType type);
const void *finishParameterGradients(ComputeType type);
} // namespace norm

} // namespace rondo::cuda
