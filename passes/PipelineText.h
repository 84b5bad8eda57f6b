//===- PipelineText.h - Places and characters of a pipeline text *- C++ -*-===//

#pragma once

#include "rondo/ir/Diagnostic.h"

namespace rondo {

/// What the text of a pipeline is called in diagnostics.
inline constexpr llvm::StringLiteral pipelineFile = "<pipeline>";

/// The place of the byte at `offset`, which may be the end.
Location pipelineLocation(llvm::StringRef text, size_t offset);
/// The line that holds `offset`, cut around it if it is long, and under it a caret.
std::string pipelineSnippet(llvm::StringRef text, size_t offset);

/// May stand in the name of a pass or of an option.
bool isPipelineNameChar(char c);
/// May stand in a value without quotes.
bool isPipelineValueChar(char c);

} // namespace rondo
