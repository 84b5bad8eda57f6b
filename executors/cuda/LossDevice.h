//===- LossDevice.h - Device code of losses ---------------------*- C++ -*-===//

#pragma once

#include "RowSetDevice.h"

namespace rondo::cuda {

enum class LossReduction : uint8_t { None, Mean, Sum };

/// What a block adds to a loss and to its divisor.
struct LossTotals {
  double loss, divisor;
};
/// At most this many blocks make totals.
inline constexpr int maxLossBlocks = 1024;

/// Of losses of classes. A row are the scores of one target.
struct ClassLossParams {
  /// Result: a loss for each row, or the gradient of the scores. Grad: the incoming one.
  enum { Scores, Target, Weight, Result, Grad, NumTensors };
  RowSet<NumTensors> set;
  LossReduction reduction = LossReduction::Mean;
  bool takesLogits = false;        ///< else scores are log-probabilities
  bool givesProbabilities = false; ///< else a target is a class
  int64_t ignoreIndex = -100;
  double smoothing = 0;
  LossTotals *totals = nullptr; ///< of each block of the forward, or of countTargets
  int numTotals = 0;
  /// Of nll_loss_backward: the divisor.
  const void *totalWeight = nullptr;
  ElementType totalWeightType = ElementType::F32;
};

/// Of sums of losses: what is made of the totals of all blocks.
struct LossFinishParams {
  const LossTotals *totals = nullptr;
  int numTotals = 0;
  bool isMean = false;
  void *loss = nullptr, *divisor = nullptr; ///< null: not wanted
  ElementType lossType = ElementType::F32, divisorType = ElementType::F32;
};

struct MSELossParams {
  enum { X, Target, Loss, NumTensors };
  Layout<NumTensors> layout;
  const void *x = nullptr, *target = nullptr;
  void *loss = nullptr; ///< null: `totals` are made
  ElementType xType = ElementType::F32, targetType = ElementType::F32, lossType = ElementType::F32;
  LossTotals *totals = nullptr; ///< of each block
};

struct MSELossBackwardParams {
  enum { Grad, X, Target, Result, NumTensors };
  Layout<NumTensors> layout;
  const void *data[NumTensors - 1] = {};
  void *result = nullptr;
  ElementType types[NumTensors] = {};
  double factor = 2;
};

namespace loss {
// Of F32 and F64.
const void *ofClasses(ComputeType type);
const void *ofClassesBackward(ComputeType type);
const void *meanSquares(ComputeType type);
const void *meanSquaresBackward(ComputeType type);
/// Totals whose divisors are those of the targets: what the backward needs of a mean.
const void *countTargets();
const void *finish();
} // namespace loss

} // namespace rondo::cuda
