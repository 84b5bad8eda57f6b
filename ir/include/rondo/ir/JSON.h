//===- JSON.h - Traces as JSON ----------------------------------*- C++ -*-===//
//
// The JSON form holds all that the text form holds, structured for programs: docs/trace.schema.json
// is its JSON Schema. Write, read, write gives the same bytes.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/TracePair.h"

namespace rondo {

/// `schema_version` of what is written. Readers accept this version only.
inline constexpr int jsonSchemaVersion = 1;

/// One op a line; deterministic to the byte; valid UTF-8 whatever the strings in the trace hold.
void writeJSON(const TracePair &pair, llvm::raw_ostream &os);

/// Reads what writeJSON wrote, or another program in the same form. What was read is verified.
/// Errors: DiagnosticError, located by line and column where the text is no JSON and by JSON
/// pointer where it is; several at once.
llvm::Expected<TracePair> readJSON(llvm::StringRef text, llvm::StringRef file,
                                   const OpRegistry &registry);

} // namespace rondo
