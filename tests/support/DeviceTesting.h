//===- DeviceTesting.h - What tests of devices say often --------*- C++ -*-===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

#include <cstring>
#include <string>

namespace rondo {

/// `success` or the name of the kind of error.
inline std::string outcome(llvm::Error error) {
  if (!error)
    return "success";
  std::optional<DeviceErrorKind> kind = deviceErrorKind(error);
  std::string text = llvm::toString(std::move(error));
  return kind ? deviceErrorKindName(*kind).str() : "no DeviceError: " + text;
}
template <typename T> std::string outcome(llvm::Expected<T> value) {
  return outcome(value.takeError());
}

/// A launch that owns its parameter block.
class PackedLaunch {
public:
  template <typename... Args>
  explicit PackedLaunch(const void *function, Args... args) : function_(function) {
    (append(args), ...);
  }
  operator KernelLaunch() const {
    KernelLaunch launch;
    launch.function = function_;
    launch.parameters = {bytes_, size_};
    return launch;
  }
  /// What the block holds is the caller's affair once it has been submitted.
  void scribble() { std::memset(bytes_, 0x5a, sizeof(bytes_)); }

private:
  template <typename T> void append(T value) {
    size_ = (size_ + alignof(T) - 1) / alignof(T) * alignof(T);
    std::memcpy(bytes_ + size_, &value, sizeof(T));
    size_ += sizeof(T);
  }

  const void *function_;
  std::byte bytes_[64] = {};
  size_t size_ = 0;
};

} // namespace rondo
