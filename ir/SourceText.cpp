//===- SourceText.cpp - A text file that diagnostics point into -------------===//

#include "SourceText.h"

using namespace rondo;

/// True for the second and further bytes of a UTF-8 sequence.
static bool isContinuation(char c) {
  return (uint8_t(c) & 0xC0) == 0x80;
}

std::string SourceText::snippet(uint32_t line, uint32_t column) const {
  if (lineStarts_.empty()) {
    lineStarts_.push_back(0);
    for (size_t at = text_.find('\n'); at != llvm::StringRef::npos; at = text_.find('\n', at + 1))
      lineStarts_.push_back(at + 1);
  }
  if (line == 0 || column == 0 || line > lineStarts_.size())
    return {};
  llvm::StringRef content = text_.drop_front(lineStarts_[line - 1]);
  content = content.take_front(content.find('\n'));
  if (!content.empty() && content.back() == '\r')
    content = content.drop_back();
  size_t caret = column - 1;
  if (caret > content.size())
    return {};

  // At most this many bytes on either side of the caret.
  constexpr size_t reach = 80;
  constexpr llvm::StringLiteral dots = "...";
  size_t begin = caret > reach ? caret - reach : 0;
  size_t end = std::min(content.size(), caret + reach);
  while (begin < caret && isContinuation(content[begin]))
    ++begin;
  while (end < content.size() && end > caret && isContinuation(content[end]))
    --end;

  std::string shown, pad;
  if (begin > 0) {
    shown += dots;
    pad.append(dots.size(), ' ');
  }
  for (size_t i = begin; i < end; ++i) {
    char c = content[i];
    bool isControl = (uint8_t(c) < 0x20 && c != '\t') || c == 0x7F;
    shown += isControl ? '?' : c;
    if (i < caret && !isContinuation(c))
      pad += c == '\t' ? '\t' : ' ';
  }
  if (end < content.size())
    shown += dots;
  return shown + "\n" + pad + "^";
}

void SourceText::addSnippets(Diagnostic &diagnostic) const {
  if (diagnostic.snippet.empty() && diagnostic.location.file == file_)
    diagnostic.snippet = snippet(diagnostic.location.line, diagnostic.location.column);
  for (Diagnostic &note : diagnostic.notes)
    addSnippets(note);
}
