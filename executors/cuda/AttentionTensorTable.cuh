//===- AttentionTensorTable.cuh - Tensor core kernels of other files ------===//

#pragma once

#include <cstdint>

namespace rondo::cuda {

struct TensorKernel {
  const void *symbol;
  uint32_t sharedBytes;
};

// AttentionTensorCoresBackward.cu; for Half and BFloat16, heads of 64 and 128.
template <typename T, int Head> TensorKernel tensorGradKeysKernel();
template <typename T, int Head> TensorKernel tensorGradQueriesKernel();

} // namespace rondo::cuda
