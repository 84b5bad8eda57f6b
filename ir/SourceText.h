//===- SourceText.h - A text file that diagnostics point into ---*- C++ -*-===//

#pragma once

#include "rondo/ir/Diagnostic.h"

namespace rondo {

/// A text and the name of its file. Finds lines for carets; lines are looked up only once something
/// went wrong. Borrows the text.
class SourceText {
public:
  SourceText(llvm::StringRef text, llvm::StringRef file) : text_(text), file_(file.str()) {}

  llvm::StringRef text() const { return text_; }
  Location location(uint32_t line, uint32_t column) const { return {file_, line, column, {}}; }
  /// The line and under it a caret; a long line is cut around the column. Empty if the text has no
  /// such place.
  std::string snippet(uint32_t line, uint32_t column) const;
  /// Gives a snippet to `diagnostic` and its notes where they lie in this file and have none.
  void addSnippets(Diagnostic &diagnostic) const;

private:
  llvm::StringRef text_;
  std::string file_;
  mutable std::vector<size_t> lineStarts_; ///< filled on first use
};

} // namespace rondo
