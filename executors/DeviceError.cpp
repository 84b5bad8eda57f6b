//===- DeviceError.cpp - What went wrong on a device ----------------------===//

#include "rondo/executors/DeviceError.h"

#include "llvm/Support/raw_ostream.h"

using namespace rondo;

char DeviceError::ID = 0;

llvm::StringRef rondo::deviceErrorKindName(DeviceErrorKind kind) {
  switch (kind) {
  case DeviceErrorKind::InvalidArgument:
    return "invalid argument";
  case DeviceErrorKind::OutOfMemory:
    return "out of memory";
  case DeviceErrorKind::NotCapturable:
    return "not capturable";
  case DeviceErrorKind::CaptureInvalidated:
    return "capture invalidated";
  case DeviceErrorKind::Lost:
    return "device lost";
  case DeviceErrorKind::Launch:
    return "launch failed";
  }
  return "unknown";
}

void DeviceError::log(llvm::raw_ostream &os) const {
  os << deviceErrorKindName(kind_) << ": " << message_;
}

std::error_code DeviceError::convertToErrorCode() const {
  switch (kind_) {
  case DeviceErrorKind::InvalidArgument:
    return std::make_error_code(std::errc::invalid_argument);
  case DeviceErrorKind::OutOfMemory:
    return std::make_error_code(std::errc::not_enough_memory);
  case DeviceErrorKind::Lost:
    return std::make_error_code(std::errc::no_such_device);
  default:
    return std::make_error_code(std::errc::operation_not_permitted);
  }
}

std::optional<DeviceErrorKind> rondo::deviceErrorKind(llvm::Error &error) {
  std::optional<DeviceErrorKind> kind;
  error = llvm::handleErrors(std::move(error), [&](std::unique_ptr<DeviceError> info) {
    if (!kind)
      kind = info->kind();
    return llvm::Error(std::move(info));
  });
  return kind;
}
