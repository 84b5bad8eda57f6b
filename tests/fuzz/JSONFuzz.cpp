//===- JSONFuzz.cpp - Any bytes as JSON -----------------------------------===//
//
// Whatever the bytes: reading ends with an error or with a pair that is written to a fixpoint and
// goes through the text form unchanged.
//
//===----------------------------------------------------------------------===//

#include "FuzzPairs.h"

#include "rondo/ir/JSON.h"

#include <cstdlib>

using namespace rondo;

static std::string written(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeJSON(pair, os);
  return os.str();
}

/// Aborts unless `again` was read and is written as `json`.
static void expectSame(llvm::Expected<TracePair> again, const std::string &json) {
  if (again && written(*again) == json)
    return;
  llvm::errs() << "not the same:\n" << json;
  if (!again)
    llvm::errs() << llvm::toString(again.takeError()) << '\n';
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<TracePair> pair = readJSON(text, "fuzz.json", fuzzRegistry());
  if (!pair) {
    llvm::consumeError(pair.takeError());
    return 0;
  }
  std::string json = written(*pair);
  expectSame(readJSON(json, "written.json", fuzzRegistry()), json);
  expectSame(parsePair(printed(*pair), "printed.trace", fuzzRegistry()), json);
  return 0;
}
