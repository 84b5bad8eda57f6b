//===- HostKernels.h - Families of kernels of the host executor -*- C++ -*-===//
//
// One function per family, one file each; HostExecutor's constructor calls them.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/host/HostExecutor.h"

namespace rondo::host {

/// Adds a kernel of a core op. Asserts that it is well formed.
inline void addKernel(HostExecutor &executor, HostKernelSpec spec) {
  llvm::cantFail(executor.add(std::move(spec)));
}

void addCreationKernels(HostExecutor &executor);
void addPointwiseKernels(HostExecutor &executor);
void addUnaryKernels(HostExecutor &executor);
void addCopyKernels(HostExecutor &executor);
void addPointwiseBackwardKernels(HostExecutor &executor);
void addReductionKernels(HostExecutor &executor);
void addDataMovementKernels(HostExecutor &executor);
void addRandomKernels(HostExecutor &executor);
void addMatmulKernels(HostExecutor &executor);
void addSoftmaxKernels(HostExecutor &executor);
void addNormalizationKernels(HostExecutor &executor);
void addAttentionKernels(HostExecutor &executor);
void addLossKernels(HostExecutor &executor);
void addIndexKernels(HostExecutor &executor);
void addGradientKernels(HostExecutor &executor);
void addOptimizerKernels(HostExecutor &executor);
void addHostEffectKernels(HostExecutor &executor);

} // namespace rondo::host
