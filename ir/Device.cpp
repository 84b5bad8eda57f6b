//===- Device.cpp - Where a tensor lives ----------------------------------===//

#include "rondo/ir/Device.h"

#include "llvm/ADT/StringExtras.h"

namespace rondo {

/// Reads decimal digits without sign, white space or leading zeros.
static std::optional<uint16_t> parseIndex(llvm::StringRef text) {
  if (text.empty() || !llvm::all_of(text, llvm::isDigit) || (text[0] == '0' && text.size() > 1))
    return std::nullopt;
  uint16_t index;
  if (text.getAsInteger(10, index))
    return std::nullopt;
  return index;
}

std::string deviceName(Device device) {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << device;
  return os.str();
}

std::optional<Device> parseDevice(llvm::StringRef name) {
  if (name == "host")
    return Device::host();
  DeviceKind kind;
  if (name.consume_front("host:"))
    kind = DeviceKind::Host;
  else if (name.consume_front("cuda:"))
    kind = DeviceKind::CUDA;
  else
    return std::nullopt;
  std::optional<uint16_t> index = parseIndex(name);
  if (!index)
    return std::nullopt;
  return Device{kind, *index};
}

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Device device) {
  if (device == Device::host())
    return os << "host";
  return os << (device.isHost() ? "host:" : "cuda:") << device.index;
}

} // namespace rondo
