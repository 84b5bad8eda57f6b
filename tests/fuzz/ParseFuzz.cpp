//===- ParseFuzz.cpp - Any bytes as text ------------------------------------===//
//
// Whatever the bytes: parsing ends with an error or with a pair that prints to a fixpoint.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"

#include <cstdlib>

using namespace rondo;

static const OpRegistry &registry() {
  static const OpRegistry *filled = [] {
    auto *registry = new OpRegistry;
    llvm::cantFail(registerCoreOps(*registry));
    OpaqueTypeSpec page;
    page.name = "mylib.page";
    llvm::cantFail(registry->registerType(std::move(page)));
    return registry;
  }();
  return *filled;
}

static std::string printed(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(pair, os);
  return os.str();
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<TracePair> pair = parsePair(text, "fuzz.trace", registry());
  if (!pair) {
    llvm::consumeError(pair.takeError());
    return 0;
  }
  std::string once = printed(*pair);
  llvm::Expected<TracePair> again = parsePair(once, "printed.trace", registry());
  if (!again || printed(*again) != once) {
    llvm::errs() << "no fixpoint:\n" << once;
    if (!again)
      llvm::errs() << llvm::toString(again.takeError()) << '\n';
    std::abort();
  }
  return 0;
}
