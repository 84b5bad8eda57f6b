//===- ImportFXFuzz.cpp - Any bytes as an fx-aten-1 file --------------------===//
//
// Whatever the bytes: importing ends with an error or with a pair that goes through text and JSON
// unchanged.
//
//===----------------------------------------------------------------------===//

#include "FuzzPairs.h"

#include "rondo/ir/ImportFX.h"
#include "rondo/ir/JSON.h"

#include <cstdlib>

using namespace rondo;

template <typename Write> static std::string written(const TracePair &pair, Write write) {
  std::string text;
  llvm::raw_string_ostream os(text);
  write(pair, os);
  return os.str();
}

/// Stops the program unless `again`, read from `once`, is written as that.
template <typename Write>
static void check(llvm::StringRef once, llvm::Expected<TracePair> again, Write write) {
  if (again && written(*again, write) == once)
    return;
  llvm::errs() << "no fixpoint:\n" << once;
  if (!again)
    llvm::errs() << llvm::toString(again.takeError()) << '\n';
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef file(reinterpret_cast<const char *>(data), size);
  looksLikeFX(file);
  llvm::Expected<TracePair> pair = importFX(file, "fuzz.json", fuzzRegistry());
  if (!pair) {
    llvm::consumeError(pair.takeError());
    return 0;
  }
  auto asText = [](const TracePair &pair, llvm::raw_ostream &os) { print(pair, os); };
  std::string text = written(*pair, asText), json = written(*pair, writeJSON);
  check(text, parsePair(text, "printed.trace", fuzzRegistry()), asText);
  check(json, readJSON(json, "written.json", fuzzRegistry()), writeJSON);
  return 0;
}
