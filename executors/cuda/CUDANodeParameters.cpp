//===- CUDANodeParameters.cpp - What nodes of a GPU's graphs do -----------===//

#include "CUDANodeParameters.h"

#include <algorithm>
#include <cstring>

using namespace rondo;
using namespace rondo::cuda;

//===----------------------------------------------------------------------===//
// Asking CUDA
//===----------------------------------------------------------------------===//

static llvm::Expected<CUDA_KERNEL_NODE_PARAMS_v2> getKernel(CUDADevice &device,
                                                            cudaGraphNode_t node) {
  CUDA_KERNEL_NODE_PARAMS_v2 kernel = {};
  if (llvm::Error error = device.run("cuGraphKernelNodeGetParams", [&] {
        return device.driver().cuGraphKernelNodeGetParams(node, &kernel);
      }))
    return error;
  return kernel;
}

static llvm::Expected<cudaMemsetParams> getFill(CUDADevice &device, cudaGraphNode_t node) {
  cudaMemsetParams fill = {};
  if (llvm::Error error = device.run("cudaGraphMemsetNodeGetParams",
                                     [&] { return cudaGraphMemsetNodeGetParams(node, &fill); }))
    return error;
  return fill;
}

static llvm::Expected<cudaMemcpy3DParms> getCopy(CUDADevice &device, cudaGraphNode_t node) {
  cudaMemcpy3DParms copy = {};
  if (llvm::Error error = device.run("cudaGraphMemcpyNodeGetParams",
                                     [&] { return cudaGraphMemcpyNodeGetParams(node, &copy); }))
    return error;
  return copy;
}

/// Errors other than that the device is lost become the node's problem.
static llvm::Error noteProblem(CUDAGraphNodes::Node &node, const char *problem, llvm::Error error) {
  if (deviceErrorKind(error) == DeviceErrorKind::Lost)
    return error;
  llvm::consumeError(std::move(error));
  node.problem = problem;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The block in which all parameters lie. `extra` is a list of names and values.
static llvm::ArrayRef<std::byte> packedParameters(void **extra) {
  const std::byte *data = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      data = static_cast<const std::byte *>(extra[1]);
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *static_cast<const size_t *>(extra[1]);
  }
  return {data, bytes};
}

static llvm::Error describeKernel(CUDADevice &device, CUDAGraphNodes::Node &node) {
  llvm::Expected<CUDA_KERNEL_NODE_PARAMS_v2> kernel = getKernel(device, node.handle);
  if (!kernel)
    return noteProblem(node, "is a kernel of which CUDA tells nothing", kernel.takeError());
  node.form = {kernel->func, kernel->kern, kernel->ctx, {}};
  CUfunction function = kernel->func;
  if (!function)
    if (llvm::Error error = device.run("cuKernelGetFunction", [&] {
          return device.driver().cuKernelGetFunction(&function, kernel->kern);
        }))
      return noteProblem(node, "is a kernel of another context", std::move(error));
  node.function = function;
  if (!kernel->kernelParams && kernel->extra) {
    node.parameterBytes = packedParameters(kernel->extra).size();
    return llvm::Error::success();
  }
  forEachParameter(device, function, [&](size_t offset, size_t bytes) {
    node.form.offsets.push_back(uint32_t(offset));
    node.parameterBytes = std::max(node.parameterBytes, offset + bytes);
  });
  return llvm::Error::success();
}

/// Makes `block` a copy of the parameters as the kernel's ABI packs them.
static void packParameters(CUDADevice &device, const CUDA_KERNEL_NODE_PARAMS_v2 &kernel,
                           const CUDAGraphNodes::Node &node, std::vector<std::byte> &block) {
  block.assign(node.parameterBytes, std::byte(0));
  if (kernel.kernelParams) {
    size_t index = 0;
    forEachParameter(device, node.function, [&](size_t offset, size_t bytes) {
      std::memcpy(block.data() + offset, kernel.kernelParams[index++], bytes);
    });
  } else if (kernel.extra) {
    llvm::ArrayRef<std::byte> packed = packedParameters(kernel.extra);
    llvm::copy(packed.take_front(block.size()), block.begin());
  }
}

static llvm::Expected<GraphNodeParameters>
readKernel(CUDADevice &device, const CUDAGraphNodes::Node &node, std::vector<std::byte> &block) {
  llvm::Expected<CUDA_KERNEL_NODE_PARAMS_v2> kernel = getKernel(device, node.handle);
  if (!kernel)
    return kernel.takeError();
  packParameters(device, *kernel, node, block);
  GraphNodeParameters result;
  result.kind = GraphNodeKind::Kernel;
  result.kernel = {node.function,
                   {kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ},
                   {kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ},
                   kernel->sharedMemBytes,
                   block};
  return result;
}

//===----------------------------------------------------------------------===//
// Fills and copies
//===----------------------------------------------------------------------===//

static llvm::Error describeFill(CUDADevice &device, CUDAGraphNodes::Node &node) {
  llvm::Expected<cudaMemsetParams> fill = getFill(device, node.handle);
  if (!fill)
    return noteProblem(node, "is a fill of which CUDA tells nothing", fill.takeError());
  if (fill->height != 1)
    node.problem = "is a fill in two dimensions";
  node.elementBytes = fill->elementSize;
  return llvm::Error::success();
}

static llvm::Expected<GraphNodeParameters> readFill(CUDADevice &device,
                                                    const CUDAGraphNodes::Node &node) {
  llvm::Expected<cudaMemsetParams> fill = getFill(device, node.handle);
  if (!fill)
    return fill.takeError();
  GraphNodeParameters result;
  result.kind = GraphNodeKind::Fill;
  result.destination = fill->dst;
  result.bytes = fill->width * fill->elementSize;
  result.value = FillValue(fill->value, fill->elementSize);
  return result;
}

static llvm::Error describeCopy(CUDADevice &device, CUDAGraphNodes::Node &node) {
  llvm::Expected<cudaMemcpy3DParms> copy = getCopy(device, node.handle);
  if (!copy)
    return noteProblem(node, "is a copy of which CUDA tells nothing", copy.takeError());
  if (copy->srcArray || copy->dstArray)
    node.problem = "is a copy of arrays";
  else if (copy->extent.height != 1 || copy->extent.depth != 1)
    node.problem = "is a copy in several dimensions";
  return llvm::Error::success();
}

/// Where a copy begins in memory whose rows are `pitched.pitch` bytes.
static char *addressOf(const cudaPitchedPtr &pitched, const cudaPos &position) {
  return static_cast<char *>(pitched.ptr) + position.x +
         (position.y + position.z * pitched.ysize) * pitched.pitch;
}

static llvm::Expected<GraphNodeParameters> readCopy(CUDADevice &device,
                                                    const CUDAGraphNodes::Node &node) {
  llvm::Expected<cudaMemcpy3DParms> copy = getCopy(device, node.handle);
  if (!copy)
    return copy.takeError();
  GraphNodeParameters result;
  result.kind = GraphNodeKind::Copy;
  result.destination = addressOf(copy->dstPtr, copy->dstPos);
  result.source = addressOf(copy->srcPtr, copy->srcPos);
  result.bytes = copy->extent.width;
  return result;
}

//===----------------------------------------------------------------------===//
// All kinds
//===----------------------------------------------------------------------===//

llvm::Error cuda::describeNode(CUDADevice &device, CUDAGraphNodes::Node &node) {
  switch (node.kind) {
  case GraphNodeKind::Kernel:
    return describeKernel(device, node);
  case GraphNodeKind::Fill:
    return describeFill(device, node);
  case GraphNodeKind::Copy:
    return describeCopy(device, node);
  case GraphNodeKind::Empty:
    return llvm::Error::success();
  case GraphNodeKind::Conditional:
  case GraphNodeKind::Other:
    node.problem = "is no kernel, fill, copy or empty node";
    return llvm::Error::success();
  }
  llvm_unreachable("no kind of node");
}

llvm::Expected<GraphNodeParameters> cuda::readNode(CUDADevice &device,
                                                   const CUDAGraphNodes::Node &node,
                                                   std::vector<std::byte> &block) {
  assert(!node.problem && "not to be read");
  if (node.kind == GraphNodeKind::Kernel)
    return readKernel(device, node, block);
  if (node.kind == GraphNodeKind::Fill && !node.isNoBytes)
    return readFill(device, node);
  if (node.kind == GraphNodeKind::Copy && !node.isNoBytes)
    return readCopy(device, node);
  GraphNodeParameters result;
  result.kind = node.kind;
  return result;
}
