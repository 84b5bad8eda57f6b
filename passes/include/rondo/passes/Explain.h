//===- Explain.h - Why is each op where it is? ------------------*- C++ -*-===//

#pragma once

#include "rondo/ir/TracePair.h"

namespace rondo {

struct ExplainOptions {
  /// Most ops listed under one reason; the rest are counted.
  unsigned maxOpsPerReason = 8;
  /// List every op with its verdict, in program order, instead of grouping.
  bool everyOp = false;
};

/// Prints, per trace, its regions (ops, launches, inputs with their policies, results) and the
/// recorded verdicts grouped by who decided and why, with module path and location. Deterministic.
void explain(const TracePair &pair, llvm::raw_ostream &os, const ExplainOptions &options = {});

} // namespace rondo
