//===- CUDAUnavailable.cpp - A build without CUDA -------------------------===//

#include "rondo/cuda/CUDADevice.h"
#include "rondo/cuda/CUDAExecutors.h"

using namespace rondo;

static llvm::Error notBuilt() {
  return makeDeviceError(DeviceErrorKind::InvalidArgument,
                         "no CUDA device: this build was made without the CUDA toolkit; use the "
                         "host device");
}

bool rondo::isCUDABuilt() {
  return false;
}

llvm::Expected<unsigned> rondo::countCUDADevices() {
  return notBuilt();
}

llvm::Expected<DeviceRef> rondo::createCUDADevice(unsigned) {
  return notBuilt();
}

llvm::Expected<std::unique_ptr<Stream>> rondo::borrowCUDAStream(const DeviceRef &, void *) {
  return notBuilt();
}

llvm::Expected<std::unique_ptr<Executor>> rondo::createCuBLASExecutor() {
  return notBuilt();
}

llvm::Expected<std::vector<std::unique_ptr<Executor>>>
rondo::createCUDAExecutors(std::vector<std::string> *) {
  return notBuilt();
}
