//===- RandomDevice.h - Device code of random numbers -----------*- C++ -*-===//

#pragma once

#include "PointwiseDevice.h"

namespace rondo::cuda {

inline constexpr int randomBlock = 256;
/// Numbers whose words come from one block of Philox: a thread draws them together.
inline constexpr int drawVector = 4;
static_assert(drawVector == pointwiseVector);

/// An RNG state, as it lies in memory of the device.
struct RandomState {
  uint64_t seed, offset;
};

/// Elements in row-major order of the result: element i is number `offset` + i of the state.
struct DrawParams {
  Layout<3> layout; ///< of the result, the operand and the mask, of which some may be missing
  const RandomState *state = nullptr;
  uint64_t offset = 0;
  void *out = nullptr, *mask = nullptr;
  const void *in = nullptr;
  ElementType outType = ElementType::F32, inType = ElementType::F32, maskType = ElementType::Bool;
  bool isDense = false; ///< as PointwiseParams::isDense
  /// low and high; mean and deviation; of dropout the scale.
  double a = 0, b = 1;
  unsigned bits = 24; ///< that a uniform number is made of
  int64_t low = 0;
  uint64_t count = 0;     ///< of integers, from `low`
  uint32_t threshold = 0; ///< below which dropout drops
};

inline constexpr int choiceBlock = 512;

/// A block for each row of weights.
struct ChoiceParams {
  const RandomState *state = nullptr;
  uint64_t offset = 0;
  const void *weights = nullptr;
  ElementType type = ElementType::F32;
  int64_t rows = 0, categories = 0, draws = 0;
  int64_t weightStrides[2] = {}, outStrides[2] = {}; ///< of rows and along a row
  int64_t *out = nullptr;
  double *copy = nullptr; ///< of the weights, row after row
  bool isReplacing = false;
};

/// offset += count, or with `isSeed` {seed, 0}.
struct GeneratorParams {
  RandomState *state = nullptr;
  uint64_t seed = 0, count = 0;
  bool isSeed = false;
};

namespace drawing {
/// DrawParams.
PointwiseKernels uniform(), normal(), integer(), bernoulli(), dropout();
const void *choose();
const void *setGenerator();
} // namespace drawing

namespace pointwise {
PointwiseKernels dropoutBackward();
}

} // namespace rondo::cuda
