//===- OptimizerDevice.h - Device code of parameter updates -----*- C++ -*-===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

inline constexpr int optimizerBlock = 256; ///< threads
inline constexpr int optimizerVector = 4;  ///< elements that a thread works on at once
/// Blocks of a launch at most: each computes what is common to all elements once.
inline constexpr unsigned maxOptimizerBlocks = 2048;

/// A number that is known at launch, or the one element at `address`.
struct DeviceNumber {
  uint64_t bits = 0; ///< if there is no address: of an i64, an f64 or a bool, as it was given
  const void *address = nullptr;
  ElementType type = ElementType::F64;
};

struct SGDNumbers {
  DeviceNumber lr;
  const float *foundInf = nullptr; ///< if there and not 0, nothing is updated
  double momentum = 0, dampening = 0, decay = 0;
  bool nesterov = false;
};
struct AdamNumbers {
  DeviceNumber step, lr;
  const float *foundInf = nullptr; ///< if there and not 0, nothing is updated
  double beta1 = 0, beta2 = 0, eps = 0, decay = 0;
  bool decoupled = false;
};

/// Tensor 0 is the parameter, 1 the gradient, which alone is not written, 2 the momentum buffer or
/// m, 3 v.
template <int N, typename Numbers> struct UpdateParams {
  Layout<N> layout;
  void *tensors[N] = {};
  ElementType types[N] = {};
  /// All are dense in one order, of vector types and aligned to optimizerVector elements.
  bool isDense = false;
  Numbers numbers;
};
using SGDParams = UpdateParams<2, SGDNumbers>;
using MomentumParams = UpdateParams<3, SGDNumbers>;
using AdamParams = UpdateParams<4, AdamNumbers>;

/// `__global__` functions that compute in double, or else in float. The types say which.
const void *updateKernel(const SGDParams &, bool inDouble);
const void *updateKernel(const MomentumParams &, bool inDouble);
const void *updateKernel(const AdamParams &, bool inDouble);

} // namespace rondo::cuda
