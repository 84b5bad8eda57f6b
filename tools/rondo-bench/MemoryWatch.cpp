//===- MemoryWatch.cpp - Memory that is taken for a while -----------------===//

#include "MemoryWatch.h"

using namespace rondo;

llvm::Expected<MemoryWatch> MemoryWatch::create(const BenchSetup &setup) {
  MemoryWatch watch(setup);
  if (llvm::Error error = setup.device->synchronize())
    return error;
  setup.device->trim();
  setup.device->resetPeak();
  watch.bytesBefore_ = setup.device->memoryUse().bytes;
  llvm::Expected<std::optional<uint64_t>> free = setup.raw.freeMemory();
  if (!free)
    return free.takeError();
  watch.freeBefore_ = watch.leastFree_ = *free;
  return watch;
}

llvm::Error MemoryWatch::sample() {
  llvm::Expected<std::optional<uint64_t>> free = setup_->raw.freeMemory();
  if (!free)
    return free.takeError();
  if (*free)
    leastFree_ = std::min(*leastFree_, **free);
  return llvm::Error::success();
}

uint64_t MemoryWatch::mostBytes() const {
  return freeBefore_ ? *freeBefore_ - *leastFree_
                     : setup_->device->memoryUse().peakBytes - bytesBefore_;
}
