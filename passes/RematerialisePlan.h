//===- RematerialisePlan.h - What to compute again --------------*- C++ -*-===//
//
// Chooses, without changing anything, which values of the forward are computed again in the
// backward, from what.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/passes/Rematerialise.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace rondo {

/// All values and ops are of the forward unless it is said otherwise.
struct RecomputePlan {
  std::vector<OpId> ops;          ///< to be computed again, in program order
  std::vector<ValueId> leaves;    ///< that they start from: saved, or to be; in order of use
  std::vector<SavedLink> dropped; ///< links that the ops take the place of
  RematerialiseReport report;
};

/// Plans for a pair that verifies, has a backward, and has no `del`s. Errors go to `diagnostics`:
/// see RematerializationPass; then the plan is of no use. `cost` is pure.
RecomputePlan planRecomputation(const TracePair &pair, std::optional<int64_t> budget,
                                llvm::function_ref<double(const Op &)> cost,
                                DiagnosticList &diagnostics);

/// `%name`, or its number if it has none.
std::string quotedName(const Trace &trace, ValueId value);

} // namespace rondo
