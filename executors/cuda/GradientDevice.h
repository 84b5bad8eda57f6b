//===- GradientDevice.h - Device code of scaling and clipping ---*- C++ -*-===//
//
// A launch works on several gradients, a block on a chunk of one of them.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

inline constexpr int gradientBlock = 256;         ///< threads
inline constexpr int gradientVector = 4;          ///< elements that a thread works on at once
inline constexpr int64_t gradientChunk = 1 << 14; ///< elements of a gradient for each block
inline constexpr int maxGroupedGradients = 128;   ///< a power of two

/// Gradients of one dtype, none empty. Blocks firstBlock[i] to firstBlock[i + 1] - 1, or to the
/// last one, work on gradient i.
struct GradientGroup {
  void *data[maxGroupedGradients] = {};
  int64_t counts[maxGroupedGradients] = {}; ///< elements
  uint32_t firstBlock[maxGroupedGradients] = {};
  /// Is the gradient aligned to gradientVector elements, or to 16 bytes, and without gaps?
  bool isVector[maxGroupedGradients] = {};
  /// Of the one gradient there is, whose elements have gaps. Without dimensions: there are no gaps.
  Layout<1> layout;
  uint32_t numGradients = 0, numBlocks = 0;
  ElementType type = ElementType::F32;
};

struct UnscaleParams {
  GradientGroup gradients;
  const float *inverse = nullptr;
  float *foundInf = nullptr; ///< set to 1, or left alone
};

struct ClipParams {
  GradientGroup gradients;
  const void *norm = nullptr;
  ElementType normType = ElementType::F32;
  double maxNorm = 0;
};

/// Each block gives what its elements add to the norm: the sum of their squares or the greatest.
struct PartialNormParams {
  GradientGroup gradients;
  double *partials = nullptr; ///< one for each block
  bool isGreatest = false;
};
/// One block makes the norm of what all blocks of all groups gave.
struct GlobalNormParams {
  const double *partials = nullptr;
  int64_t count = 0;
  void *out = nullptr;
  ElementType outType = ElementType::F32;
  bool isGreatest = false;
};

/// One thread.
struct UpdateScaleParams {
  float *scale = nullptr;
  int32_t *tracker = nullptr;
  const float *foundInf = nullptr;
  double growth = 2, backoff = 0.5;
  int32_t interval = 1;
};

namespace gradient {
// `__global__` functions, those of groups for gradients of f64 or for others.
const void *unscale(bool isF64);
const void *clip(bool isF64);
const void *partialNorm(bool isF64);
const void *globalNorm();
const void *updateScale();
} // namespace gradient

} // namespace rondo::cuda
