//===- DeviceError.h - What went wrong on a device --------------*- C++ -*-===//

#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace rondo {

enum class DeviceErrorKind : uint8_t {
  InvalidArgument,
  OutOfMemory,
  /// The call is not allowed while a stream is being captured. The capture is invalid.
  NotCapturable,
  /// Work was submitted to a capture that an earlier error has made invalid.
  CaptureInvalidated,
  /// The device is gone; every later call fails with the first error.
  Lost,
  /// A kernel, or the library it calls, failed.
  Launch,
};
/// `invalid argument`, `out of memory`, `not capturable`, `capture invalidated`, `device lost`,
/// `launch failed`.
llvm::StringRef deviceErrorKindName(DeviceErrorKind kind);

/// An error of a device. Unless its kind is Lost the device stays usable.
class DeviceError : public llvm::ErrorInfo<DeviceError> {
public:
  static char ID; // LLVM's way to tell error classes apart

  DeviceError(DeviceErrorKind kind, const llvm::Twine &message)
      : kind_(kind), message_(message.str()) {}
  DeviceErrorKind kind() const { return kind_; }
  const std::string &text() const { return message_; }
  /// `not capturable: message`.
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

private:
  DeviceErrorKind kind_;
  std::string message_;
};

inline llvm::Error makeDeviceError(DeviceErrorKind kind, const llvm::Twine &message) {
  return llvm::make_error<DeviceError>(kind, message);
}
/// The kind of the first DeviceError in `error`, which stays as it is; nothing if there is none.
std::optional<DeviceErrorKind> deviceErrorKind(llvm::Error &error);

} // namespace rondo
