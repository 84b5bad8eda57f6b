//===- CUDAEvent.h - Events of a GPU ----------------------------*- C++ -*-===//

#pragma once

#include "CUDADeviceImpl.h"

namespace rondo::cuda {

class CUDAEvent : public Event {
public:
  /// Takes `event` over.
  CUDAEvent(std::shared_ptr<CUDADevice> device, cudaEvent_t event)
      : device_(std::move(device)), event_(event) {}
  ~CUDAEvent() override;

  llvm::Expected<bool> query() override;
  llvm::Error synchronize() override;

  CUDADevice &device() { return *device_; }
  cudaEvent_t handle() const { return event_; }

private:
  std::shared_ptr<CUDADevice> device_;
  cudaEvent_t event_;
};

} // namespace rondo::cuda
