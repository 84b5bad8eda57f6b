//===- CoreOpsCases.h - Tables of uses of the core ops ----------*- C++ -*-===//
//
// A `Use` is one use of an op and what must come of it: its result types, or the message that
// refuses it. Each family of ops has a table in CoreOps<Family>Test.cpp; CoreOpsTest.cpp checks
// that together they accept and refuse every op.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/CoreOps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rondo::test {

using List = Attribute::List;

struct Use {
  std::string says; ///< what must hold
  std::string op;
  std::vector<std::string> operands; ///< types in text form; `none` for an absent operand
  std::vector<std::pair<std::string, Attribute>> attributes;
  std::string outcome; ///< `-> f32[8] bool[8]`, or the message

  bool isAccepted() const { return outcome.substr(0, 2) == "->"; }
};

/// A registry with the core ops.
const OpRegistry &coreOps();
/// What comes of `use`, in the form of `Use::outcome`: checks arity, kinds and attribute schema,
/// infers, and runs the verify hook on what was inferred.
std::string outcomeOf(const Use &use);
/// The effects of `use` by the spec alone, as `reads 0 1, writes 0, views 0:0, generator 'default'
/// written`; `nothing` for none.
std::string effectsOf(const Use &use);
/// Expects every use of `table` to come out as it says.
void expectOutcomes(const std::vector<Use> &table);

std::vector<Use> attentionUses();
std::vector<Use> collectiveUses();
std::vector<Use> constantUses();
std::vector<Use> controlUses();
std::vector<Use> convolutionUses();
std::vector<Use> dataMovementUses();
std::vector<Use> inPlaceUses();
std::vector<Use> gradientUses();
std::vector<Use> indexUses();
std::vector<Use> lossUses();
std::vector<Use> matmulUses();
std::vector<Use> normalizationUses();
std::vector<Use> optimizerUses();
std::vector<Use> pointwiseUses();
std::vector<Use> randomUses();
std::vector<Use> reductionUses();
std::vector<Use> viewUses();

} // namespace rondo::test
