//===- Text.h - The text form of traces -------------------------*- C++ -*-===//
//
// What the printer prints the parser reads: print, parse, print gives the same bytes. The grammar
// is in docs/trace-format.md.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/TracePair.h"

namespace rondo {

struct PrintOptions {
  /// Claims, fusion records and module paths: what passes recorded about an op. Parsing gives the
  /// same trace only if on.
  bool annotations = true;
};

/// Deterministic to the byte. Values without a name are numbered in program order.
void print(const Trace &trace, llvm::raw_ostream &os, const PrintOptions &options = {});
void print(const TracePair &pair, llvm::raw_ostream &os, const PrintOptions &options = {});
/// One op on one line, bodies left out (`{...}`). For diagnostics.
void printOp(const Trace &trace, OpId op, llvm::raw_ostream &os);

/// Reads a `pair` or a lone `trace`, which becomes a pair without backward. `file` is for
/// diagnostics only. Ops that `registry` does not know become opaque. What was read is verified.
/// Errors: DiagnosticError with carets, several at once. Capture domains are made afresh. Never
/// crashes, whatever the text.
llvm::Expected<TracePair> parsePair(llvm::StringRef text, llvm::StringRef file,
                                    const OpRegistry &registry);
/// As parsePair, for text that holds exactly one trace (`trace @name ...`).
llvm::Expected<Trace> parseTrace(llvm::StringRef text, llvm::StringRef file,
                                 const OpRegistry &registry);

/// Reads a type as Type::print writes it; opaque types are looked up in `registry`.
llvm::Expected<Type> parseType(llvm::StringRef text, const OpRegistry &registry);

} // namespace rondo
