//===- ErrorText.cpp - The text of an error within another ----------------===//

#include "rondo/executors/ErrorText.h"

#include "rondo/ir/Diagnostic.h"

using namespace rondo;

std::string rondo::errorText(llvm::Error error) {
  std::string text;
  auto add = [&](const std::string &part) { text += (text.empty() ? "" : "; ") + part; };
  llvm::handleAllErrors(
      std::move(error),
      [&](const DiagnosticError &info) {
        for (const Diagnostic &diagnostic : info.diagnostics())
          add(diagnostic.message);
      },
      [&](const llvm::ErrorInfoBase &info) { add(info.message()); });
  return text;
}
