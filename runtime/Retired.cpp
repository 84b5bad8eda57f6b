//===- Retired.cpp - What programs let go of ------------------------------===//

#include "Retired.h"

#include "ProgramImpl.h"

using namespace rondo;

void rondo::retire(std::shared_ptr<Retired> retired) {
  for (const DeviceRef &device : retired->devices)
    if (device && device->putOff([retired] { retire(retired); }))
      return;
  for (const BlockRef &block : retired->awaited)
    llvm::consumeError(block->lastUse().synchronize()); // calls report it
}

std::shared_ptr<Retired> rondo::retiredAtEnd(std::unique_ptr<Retired> retired) {
  return std::shared_ptr<Retired>(retired.release(),
                                  [](Retired *ended) { retire(std::shared_ptr<Retired>(ended)); });
}
