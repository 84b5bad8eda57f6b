//===- Verifier.h - Does a trace keep the rules of the IR? ------*- C++ -*-===//

#pragma once

#include "rondo/ir/TracePair.h"

namespace rondo {

/// Checks every invariant (listed at the top of Verifier.cpp) and adds one located diagnostic, with
/// notes, for each fault found. Linear in the size of the trace. May be called on any trace,
/// however broken.
void verify(const Trace &trace, DiagnosticList &diagnostics);
/// Both traces, and the links between them.
void verify(const TracePair &pair, DiagnosticList &diagnostics);

/// The same; success, or a DiagnosticError.
llvm::Error verify(const Trace &trace);
llvm::Error verify(const TracePair &pair);

} // namespace rondo
