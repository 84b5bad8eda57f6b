//===- HostEvent.h - Events of the host -------------------------*- C++ -*-===//

#pragma once

#include "HostDeviceImpl.h"

namespace rondo {

class HostEvent : public Event {
public:
  explicit HostEvent(std::shared_ptr<HostDevice> device) : device_(std::move(device)) {}

  llvm::Expected<bool> query() override;
  llvm::Error synchronize() override;

  HostDevice &device() { return *device_; }
  /// Guarded by the device's captures.
  HostEventRecord &lastRecord() { return record_; }

private:
  std::shared_ptr<HostDevice> device_;
  HostEventRecord record_;
};

} // namespace rondo
