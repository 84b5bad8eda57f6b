//===- TestKernels.cu - Kernels for tests of the CUDA device --------------===//

#include "TestKernels.h"

#include "rondo/executors/Philox.h"

#if __has_include(<curand_kernel.h>)
#include <curand_kernel.h>
#define RONDO_HAS_CURAND
#endif

namespace {

__global__ void add1(int *p) {
  *p += 1;
}

__global__ void axpy(float a, const float *x, float *y, int n) {
  for (int i = 0; i < n; ++i)
    y[i] += a * x[i];
}

/// Returns when the host has set the flag, which lies in its memory.
__global__ void waitFlag(const int *flag) {
  while (!*static_cast<const volatile int *>(flag))
    __nanosleep(1000);
}

/// For an address that is none.
__global__ void writeToAddress(unsigned long long address) {
  *reinterpret_cast<volatile int *>(address) = 1;
}

/// Says of how many blocks the cluster of the first block is; 0 for a GPU without clusters.
__global__ void clusterSize(int *size) {
  unsigned blocks = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
#endif
  if (blockIdx.x == 0)
    *size = int(blocks);
}

/// words[i] is word number first + i of a seed.
__global__ void philoxWords(uint64_t seed, uint64_t first, uint32_t plane, uint32_t count,
                            uint32_t *words) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    words[i] = rondo::philox::word(seed, first + i, plane);
}

#ifdef RONDO_HAS_CURAND
/// The same by cuRAND: each thread skips to its own offset in subsequence `plane`.
__global__ void curandWords(uint64_t seed, uint64_t first, uint32_t plane, uint32_t count,
                            uint32_t *words) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, plane, first + i, &state);
  words[i] = curand(&state);
}
const void *curandWordsSymbol() {
  return reinterpret_cast<const void *>(&curandWords);
}
#else
const void *curandWordsSymbol() {
  return nullptr;
}
#endif

} // namespace

rondo::CUDATestKernels rondo::testKernelSymbols() {
  return {reinterpret_cast<const void *>(&add1),
          reinterpret_cast<const void *>(&axpy),
          reinterpret_cast<const void *>(&waitFlag),
          reinterpret_cast<const void *>(&writeToAddress),
          reinterpret_cast<const void *>(&clusterSize),
          reinterpret_cast<const void *>(&philoxWords),
          curandWordsSymbol()};
}
