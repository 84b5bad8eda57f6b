//===- CUDAFunctions.cpp - Kernels and libraries on a GPU -----------------===//

#include "CUDAFunctions.h"

#include "CUDAArchitectures.h"
#include "CUDADeviceImpl.h"

using namespace rondo;
using namespace rondo::cuda;

/// Dynamic shared memory that every function may use.
static constexpr uint32_t ordinarySharedBytes = 48 * 1024;

static llvm::Error explain(const CUDADevice &device, llvm::Error error) {
  return llvm::handleErrors(std::move(error), [&](const DeviceError &why) {
    if (why.kind() == DeviceErrorKind::Lost || why.kind() == DeviceErrorKind::OutOfMemory)
      return makeDeviceError(why.kind(), why.text());
    return makeDeviceError(DeviceErrorKind::Launch, why.text() + "; built for " +
                                                        builtArchitectures() + ", run on " +
                                                        device.description());
  });
}

llvm::Expected<const void *> cuda::loadFunction(DeviceAPI &device, const void *symbol,
                                                uint32_t sharedBytes) {
  auto *cudaDevice = dynamic_cast<CUDADevice *>(&device);
  if (!cudaDevice)
    return makeDeviceError(DeviceErrorKind::InvalidArgument,
                           "expected a CUDA device to load a kernel on, given " +
                               deviceName(device.device()));
  const CUDADriver &driver = cudaDevice->driver();
  CUDARelaxedScope relaxed(driver);
  cudaFunction_t function = nullptr;
  if (llvm::Error error = cudaDevice->run("cudaGetFuncBySymbol",
                                          [&] { return cudaGetFuncBySymbol(&function, symbol); }))
    return explain(*cudaDevice, std::move(error));
  if (llvm::Error error =
          cudaDevice->run("cuFuncLoad", [&] { return driver.cuFuncLoad(function); }))
    return explain(*cudaDevice, std::move(error));
  if (sharedBytes > ordinarySharedBytes)
    if (llvm::Error error = cudaDevice->run("cuFuncSetAttribute", [&] {
          return driver.cuFuncSetAttribute(
              function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(sharedBytes));
        }))
      return explain(*cudaDevice, std::move(error));
  return static_cast<const void *>(function);
}

struct CurrentDeviceScope::State {
  CUDAContextScope scope;
};

CurrentDeviceScope::CurrentDeviceScope(DeviceAPI &device) {
  if (auto *cudaDevice = dynamic_cast<CUDADevice *>(&device))
    state_.reset(new State{{cudaDevice->driver(), cudaDevice->context()}});
}

CurrentDeviceScope::~CurrentDeviceScope() = default;
