//===- ParseFuzz.cpp - Any bytes as text ------------------------------------===//
//
// Whatever the bytes: parsing ends with an error or with a pair that prints to a fixpoint.
//
//===----------------------------------------------------------------------===//

#include "FuzzPairs.h"

#include <cstdlib>

using namespace rondo;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<TracePair> pair = parsePair(text, "fuzz.trace", fuzzRegistry());
  if (!pair) {
    llvm::consumeError(pair.takeError());
    return 0;
  }
  std::string once = printed(*pair);
  llvm::Expected<TracePair> again = parsePair(once, "printed.trace", fuzzRegistry());
  if (!again || printed(*again) != once) {
    llvm::errs() << "no fixpoint:\n" << once;
    if (!again)
      llvm::errs() << llvm::toString(again.takeError()) << '\n';
    std::abort();
  }
  return 0;
}
