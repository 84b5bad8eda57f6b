//===- CuDNNUnavailable.cpp - A build without cuDNN -----------------------===//

#include "rondo/cuda/CUDAExecutors.h"
#include "rondo/executors/DeviceError.h"

using namespace rondo;

llvm::Expected<std::unique_ptr<Executor>> rondo::createCuDNNExecutor() {
  return makeDeviceError(DeviceErrorKind::InvalidArgument,
                         "this build was made without the headers of cuDNN 9.11 or newer");
}
