//===- SoftmaxDevice.h - Device code of softmax -----------------*- C++ -*-===//

#pragma once

#include "RowSetDevice.h"

namespace rondo::cuda {

/// Of x and the result.
struct SoftmaxParams {
  RowSet<2> set;
  bool isLog = false;
  bool isSafe = false; ///< 0 where all of a row are -inf
};

/// Of grad, the result of the forward, and the result.
struct SoftmaxBackwardParams {
  RowSet<3> set;
  bool isLog = false;
};

namespace softmax {
// Of F32 and F64.
const void *forward(ComputeType type);
const void *backward(ComputeType type);
} // namespace softmax

} // namespace rondo::cuda
