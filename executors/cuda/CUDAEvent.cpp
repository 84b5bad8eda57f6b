//===- CUDAEvent.cpp - Events of a GPU ------------------------------------===//

#include "CUDAEvent.h"

using namespace rondo;
using namespace rondo::cuda;

/// CUDA keeps the event until the work that it was recorded after is done.
CUDAEvent::~CUDAEvent() {
  device_->cleanUp("cudaEventDestroy", [&] { return cudaEventDestroy(event_); });
}

llvm::Expected<bool> CUDAEvent::query() {
  return device_->ask("cudaEventQuery", [&] { return cudaEventQuery(event_); });
}

llvm::Error CUDAEvent::synchronize() {
  return device_->run("cudaEventSynchronize", [&] { return cudaEventSynchronize(event_); });
}
