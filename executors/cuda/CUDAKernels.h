//===- CUDAKernels.h - Families of kernels of the CUDA executor -*- C++ -*-===//
//
// One function per family; CUDAExecutor's constructor calls them. A family is three files: its
// table, XKernels.cpp, which knows ops and LLVM; its device code, X.cu, which knows neither; and
// XDevice.h between them, with the parameter structs and functions that return `__global__`
// symbols.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/cuda/CUDAExecutor.h"

namespace rondo::cuda {

/// Adds a kernel of a core op. Asserts that it is well formed.
inline void addKernel(CUDAExecutor &executor, CUDAKernelSpec spec) {
  llvm::cantFail(executor.add(std::move(spec)));
}

void addCreationKernels(CUDAExecutor &executor);
void addPointwiseKernels(CUDAExecutor &executor);
void addUnaryKernels(CUDAExecutor &executor);
void addPointwiseBackwardKernels(CUDAExecutor &executor);
void addCopyKernels(CUDAExecutor &executor);
void addReductionKernels(CUDAExecutor &executor);
void addDataMovementKernels(CUDAExecutor &executor);
void addRandomKernels(CUDAExecutor &executor);
void addMatmulKernels(CUDAExecutor &executor);
void addSoftmaxKernels(CUDAExecutor &executor);
void addNormalizationKernels(CUDAExecutor &executor);
void addAttentionKernels(CUDAExecutor &executor);
void addLossKernels(CUDAExecutor &executor);
void addIndexKernels(CUDAExecutor &executor);
void addEmbeddingKernels(CUDAExecutor &executor);
void addSortKernels(CUDAExecutor &executor);
void addGradientKernels(CUDAExecutor &executor);
void addOptimizerKernels(CUDAExecutor &executor);
void addHostEffectKernels(CUDAExecutor &executor);

} // namespace rondo::cuda
