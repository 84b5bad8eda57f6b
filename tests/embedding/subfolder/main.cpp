// A program of another project: succeeds when rondo's core ops can be registered, and only once.

#include "rondo/ir/CoreOps.h"

int main() {
  rondo::OpRegistry registry;
  if (llvm::Error error = rondo::registerCoreOps(registry)) {
    llvm::consumeError(std::move(error));
    return 1;
  }
  llvm::Error again = rondo::registerCoreOps(registry);
  const bool rejected = static_cast<bool>(again);
  llvm::consumeError(std::move(again));
  return rejected && registry.lookup("return") ? 0 : 1;
}
