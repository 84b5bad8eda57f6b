//===- Files.h - Reading traces, writing results ----------------*- C++ -*-===//

#pragma once

#include "rondo/ir/ImportFX.h"
#include "rondo/ir/TracePair.h"

#include "llvm/ADT/STLExtras.h"

namespace rondo {

enum class InputFormat : uint8_t { Auto, Text, JSON, FX };

/// Reads a pair from `path` (`-`: standard input). Errors: the file cannot be read, or
/// DiagnosticErrors of the reader. `outputs`, if given, receives what importFX says of them.
llvm::Expected<TracePair> readPair(llvm::StringRef path, InputFormat format,
                                   const OpRegistry &registry,
                                   std::vector<FXOutput> *outputs = nullptr);

/// Gives `write` a stream to `path` (`-`: standard output). A regular file appears whole or not at
/// all: what is written goes to a temporary file beside it, which takes its name at the end.
/// Errors: names the path and the reason.
llvm::Error writeFile(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace rondo
