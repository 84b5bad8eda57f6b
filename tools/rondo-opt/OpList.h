//===- OpList.h - Lists of ops and passes -----------------------*- C++ -*-===//

#pragma once

#include "rondo/ir/OpRegistry.h"
#include "rondo/passes/PassRegistry.h"

namespace rondo {

/// One op a line: `add(a, b?) {scalar?: number, alpha: number = 1} -> result`, then its summary.
void listOps(const OpRegistry &registry, llvm::raw_ostream &os);
/// The same as a Markdown table; docs/trace-format.md holds it.
void listOpsAsMarkdown(const OpRegistry &registry, llvm::raw_ostream &os);
/// Passes, their options with defaults, and summaries.
void listPasses(const PassRegistry &registry, llvm::raw_ostream &os);

} // namespace rondo
