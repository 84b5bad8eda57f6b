//===- HostEvent.cpp - Events of the host ---------------------------------===//

#include "HostEvent.h"

using namespace rondo;

llvm::Expected<bool> HostEvent::query() {
  llvm::Expected<HostWorkPoint> point = device_->captures().pointOf(record_, "query");
  if (!point)
    return point.takeError();
  return point->isComplete();
}

llvm::Error HostEvent::synchronize() {
  llvm::Expected<HostWorkPoint> point = device_->captures().pointOf(record_, "synchronize");
  if (!point)
    return point.takeError();
  point->wait();
  return llvm::Error::success();
}
