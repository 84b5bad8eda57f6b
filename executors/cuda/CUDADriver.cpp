//===- CUDADriver.cpp - The functions of the CUDA driver ------------------===//

#include "CUDADriver.h"

#include "CUDAError.h"

using namespace rondo;
using namespace rondo::cuda;

/// Null if the driver has no such function.
static void *findFunction(const char *name, unsigned version) {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else
  (void)version; // the toolkit's own, which are those of the list
  cudaError_t result = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (result != cudaSuccess)
    cudaGetLastError();
  return result == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : nullptr;
}

llvm::Expected<CUDADriver> rondo::cuda::loadCUDADriver() {
  CUDADriver driver;
  const char *missing = nullptr;
#define RONDO_CUDA_DRIVER_FUNCTION(name, version)                                                  \
  driver.name = reinterpret_cast<PFN_##name##_v##version>(findFunction(#name, version));           \
  if (!driver.name && !missing)                                                                    \
    missing = #name;
  RONDO_CUDA_DRIVER_FUNCTIONS(RONDO_CUDA_DRIVER_FUNCTION)
#undef RONDO_CUDA_DRIVER_FUNCTION
  if (missing)
    return noDeviceError("the driver is too old for this build: it has no " + llvm::Twine(missing));
  return driver;
}
