//===- CUDARaw.cpp - CUDA's own API, in a build without it ----------------===//

#include "Raw.h"

using namespace rondo;

llvm::Expected<std::unique_ptr<RawAPI>> rondo::createCUDARaw(const DeviceAPI &) {
  return makeDeviceError(DeviceErrorKind::InvalidArgument, "this build has no CUDA");
}
