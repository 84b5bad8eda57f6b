//===- Device.h - Where a tensor lives --------------------------*- C++ -*-===//

#pragma once

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

enum class DeviceKind : uint8_t { Host, CUDA };

/// A device and its index; the index is always explicit: `host:0`, `cuda:1`. `host` alone prints
/// and parses as `host:0`.
struct Device {
  DeviceKind kind = DeviceKind::Host;
  uint16_t index = 0;

  static constexpr Device host() { return {}; }
  static constexpr Device cuda(uint16_t index) { return {DeviceKind::CUDA, index}; }

  constexpr bool isHost() const { return kind == DeviceKind::Host; }
  friend constexpr bool operator==(Device, Device) = default;
  friend constexpr auto operator<=>(Device, Device) = default;
  friend llvm::hash_code hash_value(Device d) {
    return llvm::hash_combine(unsigned(d.kind), d.index);
  }
};

/// `host` for host:0, else `kind:index`.
std::string deviceName(Device device);
/// Accepts `host`, `host:N`, `cuda:N` with N below 65536. `cuda` without an index is refused: the
/// index is explicit.
std::optional<Device> parseDevice(llvm::StringRef name);

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Device device);

} // namespace rondo
