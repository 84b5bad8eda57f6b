//===- FuzzPairs.h - What fuzzers read and print pairs with -----*- C++ -*-===//

#pragma once

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"

namespace rondo {

/// Core ops and one opaque type.
inline const OpRegistry &fuzzRegistry() {
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

inline std::string printed(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(pair, os);
  return os.str();
}

} // namespace rondo
