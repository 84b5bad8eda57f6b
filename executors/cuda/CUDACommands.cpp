//===- CUDACommands.cpp - Kernels, fills and copies for CUDA --------------===//

#include "CUDACommands.h"

#include <algorithm>

using namespace rondo;

cuda::CUDAKernelCommand::CUDAKernelCommand(const KernelLaunch &launch)
    : bytes_(launch.parameters.size()), extra_{CU_LAUNCH_PARAM_BUFFER_POINTER,
                                               const_cast<std::byte *>(launch.parameters.data()),
                                               CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_,
                                               CU_LAUNCH_PARAM_END} {
  node_.func = asFunction(launch.function);
  node_.gridDimX = launch.grid[0];
  node_.gridDimY = launch.grid[1];
  node_.gridDimZ = launch.grid[2];
  node_.blockDimX = launch.block[0];
  node_.blockDimY = launch.block[1];
  node_.blockDimZ = launch.block[2];
  node_.sharedMemBytes = launch.sharedBytes;
  node_.extra = bytes_ ? extra_ : nullptr;
}

CUresult cuda::CUDAKernelCommand::launch(const CUDADriver &driver, CUstream stream) const {
  return driver.cuLaunchKernel(node_.func, node_.gridDimX, node_.gridDimY, node_.gridDimZ,
                               node_.blockDimX, node_.blockDimY, node_.blockDimZ,
                               node_.sharedMemBytes, stream, nullptr, node_.extra);
}

cudaMemsetParams cuda::fillParameters(void *destination, uint8_t value, size_t bytes) {
  cudaMemsetParams parameters = {};
  parameters.dst = destination;
  parameters.value = value;
  parameters.elementSize = 1;
  parameters.width = bytes;
  parameters.height = 1;
  return parameters;
}

size_t cuda::parameterBytesOf(const CUDADevice &device, const void *function) {
  CUDAContextScope current(device.driver(), device.context());
  auto get = device.driver().cuFuncGetParamInfo;
  size_t bytes = 0, offset = 0, size = 0;
  for (size_t i = 0; get(asFunction(function), i, &offset, &size) == CUDA_SUCCESS; ++i)
    bytes = std::max(bytes, offset + size);
  return bytes;
}

llvm::StringRef cuda::problemOfKernel(const KernelLaunch &launch) {
  if (!launch.function)
    return "expected a kernel, given a null function";
  if (llvm::is_contained(launch.grid, 0u) || llvm::is_contained(launch.block, 0u))
    return "expected sizes of grid and block above 0, given 0";
  return "";
}

llvm::StringRef cuda::problemOfFill(const void *destination, size_t bytes) {
  return destination || !bytes ? "" : "expected memory to fill, given null";
}

llvm::StringRef cuda::problemOfCopy(const void *destination, const void *source, size_t bytes) {
  return (destination && source) || !bytes ? "" : "expected memory to copy, given null";
}

std::string cuda::problemOfParameters(size_t expected, size_t given) {
  if (expected == given)
    return "";
  return "expected " + std::to_string(expected) + " bytes of parameters, given " +
         std::to_string(given);
}
