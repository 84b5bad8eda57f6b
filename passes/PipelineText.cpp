//===- PipelineText.cpp - Places and characters of a pipeline text ----------===//

#include "PipelineText.h"

#include "rondo/ir/Attribute.h"
#include "rondo/passes/Pass.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace rondo;

/// Offset of the first byte of the line that holds `offset`.
static size_t lineStart(llvm::StringRef text, size_t offset) {
  return text.take_front(offset).rfind('\n') + 1; // npos + 1 is 0
}

Location rondo::pipelineLocation(llvm::StringRef text, size_t offset) {
  uint32_t line = text.take_front(offset).count('\n') + 1;
  uint32_t column = offset - lineStart(text, offset) + 1;
  return {pipelineFile.str(), line, column, {}};
}

std::string rondo::pipelineSnippet(llvm::StringRef text, size_t offset) {
  size_t start = lineStart(text, offset);
  llvm::StringRef line = text.drop_front(start).take_until([](char c) { return c == '\n'; });
  size_t caret = std::min(offset - start, line.size());

  // At most this many bytes on either side of the caret.
  constexpr size_t reach = 60;
  size_t begin = caret > reach ? caret - reach : 0;
  size_t end = std::min(line.size(), caret + reach);
  std::string shown = begin > 0 ? "..." : "", pad(shown.size(), ' ');
  for (size_t i = begin; i < end; ++i) {
    bool isPrintable = llvm::isPrint(line[i]) || line[i] == '\t';
    shown += isPrintable ? line[i] : '?';
    if (i < caret)
      pad += line[i] == '\t' ? '\t' : ' ';
  }
  if (end < line.size())
    shown += "...";
  return shown + "\n" + pad + "^";
}

bool rondo::isPipelineNameChar(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.';
}

bool rondo::isPipelineValueChar(char c) {
  return isPipelineNameChar(c) || c == '+' || c == ':' || c == '/';
}

std::string rondo::quotePipelineValue(llvm::StringRef text) {
  if (!text.empty() && llvm::all_of(text, isPipelineValueChar))
    return text.str();
  std::string quoted;
  llvm::raw_string_ostream os(quoted);
  printQuoted(os, text);
  return os.str();
}
