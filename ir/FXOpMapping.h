//===- FXOpMapping.h - ATen ops and the core ops they become ----*- C++ -*-===//
//
// One table (FXOpMapping.cpp) from ATen names to small functions. Each reads the arguments of one
// call and emits core ops; a form of call that it does not know it leaves unread or fails, and the
// op becomes opaque.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace rondo::fx {

class Call;

/// `core` is the name in the table.
using LowerFn = void (*)(Call &call, llvm::StringRef core);

/// One row.
struct Mapping {
  llvm::StringLiteral aten;       ///< `aten.add.Tensor`
  llvm::StringLiteral parameters; ///< names in ATen's order, separated by spaces
  LowerFn lower;
  llvm::StringLiteral core; ///< the op it becomes, or the one that does the work
};

/// All rows, grouped by kind of op.
llvm::ArrayRef<Mapping> mappings();

/// All parameters are tensors, in the order of the core op's operands; None where it has optional
/// ones.
void lowerOperands(Call &call, llvm::StringRef core);

// Element by element (FXMapPointwise.cpp).
void lowerBinary(Call &call, llvm::StringRef core);
void lowerGelu(Call &call, llvm::StringRef core);
void lowerGeluBackward(Call &call, llvm::StringRef core);
void lowerLeakyRelu(Call &call, llvm::StringRef core);
void lowerLeakyReluBackward(Call &call, llvm::StringRef core);
void lowerSoftplus(Call &call, llvm::StringRef core);
void lowerClamp(Call &call, llvm::StringRef core);
void lowerMaskedFill(Call &call, llvm::StringRef core);
void lowerAddc(Call &call, llvm::StringRef core);
void lowerLerp(Call &call, llvm::StringRef core);
void lowerThresholdBackward(Call &call, llvm::StringRef core);
void lowerToCopy(Call &call, llvm::StringRef core);

// Reductions (FXMapPointwise.cpp).
void lowerReduction(Call &call, llvm::StringRef core);
void lowerArgExtremum(Call &call, llvm::StringRef core);
void lowerAlongDim(Call &call, llvm::StringRef core);
void lowerSoftmaxBackward(Call &call, llvm::StringRef core);

// Tensors from nothing, and random ones (FXMapFactories.cpp).
void lowerFull(Call &call, llvm::StringRef core);
void lowerZeros(Call &call, llvm::StringRef core);
void lowerOnes(Call &call, llvm::StringRef core);
void lowerEmpty(Call &call, llvm::StringRef core);
void lowerArange(Call &call, llvm::StringRef core);
void lowerEye(Call &call, llvm::StringRef core);
void lowerDrawn(Call &call, llvm::StringRef core);
void lowerBernoulli(Call &call, llvm::StringRef core);
void lowerMultinomial(Call &call, llvm::StringRef core);
void lowerDropout(Call &call, llvm::StringRef core);
void lowerDropoutBackward(Call &call, llvm::StringRef core);

// Views and movement of data (FXMapShapes.cpp).
void lowerReshape(Call &call, llvm::StringRef core);
void lowerPermute(Call &call, llvm::StringRef core);
void lowerT(Call &call, llvm::StringRef core);
void lowerTranspose(Call &call, llvm::StringRef core);
void lowerExpand(Call &call, llvm::StringRef core);
void lowerSlice(Call &call, llvm::StringRef core);
void lowerSelect(Call &call, llvm::StringRef core);
void lowerSqueeze(Call &call, llvm::StringRef core);
void lowerUnsqueeze(Call &call, llvm::StringRef core);
void lowerAsStrided(Call &call, llvm::StringRef core);
void lowerDiagonal(Call &call, llvm::StringRef core);
void lowerSplit(Call &call, llvm::StringRef core);
void lowerSplitWithSizes(Call &call, llvm::StringRef core);
void lowerUnbind(Call &call, llvm::StringRef core);
void lowerClone(Call &call, llvm::StringRef core);
void lowerConcatenation(Call &call, llvm::StringRef core);
void lowerRepeat(Call &call, llvm::StringRef core);
void lowerFlip(Call &call, llvm::StringRef core);
void lowerRoll(Call &call, llvm::StringRef core);
void lowerPad(Call &call, llvm::StringRef core);
void lowerTriangle(Call &call, llvm::StringRef core);
void lowerGather(Call &call, llvm::StringRef core);
void lowerScatter(Call &call, llvm::StringRef core);
void lowerIndex(Call &call, llvm::StringRef core);
void lowerIndexPut(Call &call, llvm::StringRef core);
void lowerSelectScatter(Call &call, llvm::StringRef core);
void lowerSliceScatter(Call &call, llvm::StringRef core);
void lowerTopK(Call &call, llvm::StringRef core);
void lowerSort(Call &call, llvm::StringRef core);

// Layers (FXMapLayers.cpp).
void lowerAddmm(Call &call, llvm::StringRef core);
void lowerLayerNorm(Call &call, llvm::StringRef core);
void lowerLayerNormBackward(Call &call, llvm::StringRef core);
void lowerRMSNorm(Call &call, llvm::StringRef core);
void lowerRMSNormBackward(Call &call, llvm::StringRef core);
void lowerBatchNorm(Call &call, llvm::StringRef core);
void lowerBatchNormBackward(Call &call, llvm::StringRef core);
void lowerConvolution(Call &call, llvm::StringRef core);
void lowerConvolutionBackward(Call &call, llvm::StringRef core);
void lowerEmbedding(Call &call, llvm::StringRef core);
void lowerEmbeddingBackward(Call &call, llvm::StringRef core);
void lowerNLLLoss(Call &call, llvm::StringRef core);
void lowerNLLLossBackward(Call &call, llvm::StringRef core);
void lowerMSELoss(Call &call, llvm::StringRef core);
void lowerMSELossBackward(Call &call, llvm::StringRef core);

// Loss scaling and optimisers (FXMapOptimizer.cpp).
void lowerUnscale(Call &call, llvm::StringRef core);
void lowerUpdateScale(Call &call, llvm::StringRef core);
void lowerAdam(Call &call, llvm::StringRef core);
void lowerAdamW(Call &call, llvm::StringRef core);
void lowerSGD(Call &call, llvm::StringRef core);
void lowerForeach(Call &call, llvm::StringRef core);

// Attention (FXMapAttention.cpp).
void lowerAttention(Call &call, llvm::StringRef core);
void lowerAttentionBackward(Call &call, llvm::StringRef core);

} // namespace rondo::fx
