//===- CUDAArchitectures.cu - What the kernels are built for --------------===//

#include "CUDAArchitectures.h"

std::string rondo::cuda::builtArchitectures() {
  std::string text;
  for (int architecture : {__CUDA_ARCH_LIST__}) // 800,900
    text += (text.empty() ? "sm_" : ", sm_") + std::to_string(architecture / 10);
  return text;
}
