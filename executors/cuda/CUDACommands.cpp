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

cuda::CUDAKernelCommand::CUDAKernelCommand(const KernelLaunch &launch, const CUDAKernelForm &form)
    : CUDAKernelCommand(launch) {
  node_.func = form.function;
  node_.kern = form.kernel;
  node_.ctx = form.context;
  if (form.offsets.empty())
    return;
  for (uint32_t offset : form.offsets)
    parameters_.push_back(const_cast<std::byte *>(launch.parameters.data() + offset));
  node_.kernelParams = parameters_.data();
  node_.extra = nullptr;
}

CUresult cuda::CUDAKernelCommand::launch(const CUDADriver &driver, CUstream stream) const {
  return driver.cuLaunchKernel(node_.func, node_.gridDimX, node_.gridDimY, node_.gridDimZ,
                               node_.blockDimX, node_.blockDimY, node_.blockDimZ,
                               node_.sharedMemBytes, stream, nullptr, node_.extra);
}

cudaMemsetParams cuda::fillParameters(void *destination, FillValue value, size_t bytes,
                                      unsigned elementBytes) {
  cudaMemsetParams parameters = {};
  parameters.dst = destination;
  parameters.value =
      elementBytes == 4 ? value.repeated() : value.repeated() & ((1u << (8 * elementBytes)) - 1);
  parameters.elementSize = elementBytes;
  parameters.width = bytes / elementBytes;
  parameters.height = 1;
  return parameters;
}

void cuda::forEachParameter(const CUDADevice &device, const void *function,
                            llvm::function_ref<void(size_t offset, size_t bytes)> parameter) {
  CUDAContextScope current(device.driver(), device.context());
  auto get = device.driver().cuFuncGetParamInfo;
  size_t offset = 0, bytes = 0;
  for (size_t i = 0; get(asFunction(function), i, &offset, &bytes) == CUDA_SUCCESS; ++i)
    parameter(offset, bytes);
}

size_t cuda::parameterBytesOf(const CUDADevice &device, const void *function) {
  size_t end = 0;
  forEachParameter(device, function,
                   [&](size_t offset, size_t bytes) { end = std::max(end, offset + bytes); });
  return end;
}

llvm::StringRef cuda::problemOfKernel(const KernelLaunch &launch) {
  if (!launch.function)
    return "expected a kernel, given a null function";
  if (llvm::is_contained(launch.grid, 0u) || llvm::is_contained(launch.block, 0u))
    return "expected sizes of grid and block above 0, given 0";
  return "";
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
