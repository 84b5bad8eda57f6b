//===- AttentionKernelTable.cuh - Kernels of other files --------*- C++ -*-===//

#pragma once

namespace rondo::cuda {

// AttentionBackward.cu; for float and double.
template <typename C> const void *attentionGradKeysKernel();
template <typename C> const void *attentionGradQueriesKernel();
// AttentionMask.cu
template <typename C> const void *attentionGradMaskKernel();

} // namespace rondo::cuda
