//===- VerifierPair.cpp - Saved links between two traces --------------------===//

#include "rondo/ir/Verifier.h"

#include "VerifierImpl.h"

using namespace rondo;
using namespace rondo::verifier;

namespace {

/// The links of a pair: sources are operands of the forward's `return`, targets arguments of the
/// backward.
class PairVerifier {
public:
  PairVerifier(const TracePair &pair, DiagnosticList &diagnostics)
      : forward_(pair.forward()), backward_(pair.hasBackward() ? &pair.backward() : nullptr),
        return_(findTerminator(forward_, Trace::topBody())), diagnostics_(diagnostics),
        report_(forward_, diagnostics) {}

  void run() {
    rejectSavedArguments();
    collectSources();
    if (!backward_)
      return;
    rejectSavedReturns();
    verifyTargets();
    for (unsigned operand = 0; operand < targetOf_.size(); ++operand)
      if (SavedId id = forward_.savedReturn(operand);
          id && !targetOf_[operand] && sourceOf_.lookup(id) == operand)
        reportSource(operand, " is saved as ", id, ", which is no argument of the backward");
  }

private:
  void rejectSavedArguments();
  void rejectSavedReturns();
  void collectSources();
  void verifyTargets();
  void verifyTypes(unsigned operand, ValueId argument, Reporter &report);

  template <typename... Parts> Diagnostic *reportSource(unsigned operand, const Parts &...parts) {
    return report_.error(*return_, OperandOf{*return_, operand}, parts...);
  }

  const Trace &forward_;
  const Trace *backward_;
  const Op *return_;
  DiagnosticList &diagnostics_;
  Reporter report_;
  llvm::DenseMap<SavedId, unsigned> sourceOf_;
  /// Per operand of the forward's `return`: does an argument of the backward have its id?
  llvm::SmallVector<bool, 16> targetOf_;
};

} // namespace

void PairVerifier::rejectSavedArguments() {
  for (unsigned i = 0; i < forward_.arguments().size(); ++i) {
    if (SavedId id = forward_.savedArgument(i))
      report_.errorInBody(nullptr, "argument #", i, " (", Named{forward_.arguments()[i]},
                          ") of the forward is marked as saved ", id,
                          "; only the backward has saved arguments");
  }
}

void PairVerifier::rejectSavedReturns() {
  const Op *ret = findTerminator(*backward_, Trace::topBody());
  Reporter report(*backward_, diagnostics_);
  for (unsigned i = 0; ret && i < ret->operands().size(); ++i)
    if (SavedId id = backward_->savedReturn(i))
      report.error(*ret, "'", ret->name(), "' op operand #", i,
                   " of the backward is marked as saved ", id, "; only the forward saves");
}

void PairVerifier::collectSources() {
  if (!return_)
    return;
  targetOf_.resize(return_->operands().size());
  for (unsigned i = 0; i < return_->operands().size(); ++i) {
    SavedId id = forward_.savedReturn(i);
    if (!id)
      continue;
    if (!backward_)
      reportSource(i, " is saved as ", id, ", but the pair has no backward");
    else if (auto [source, isNew] = sourceOf_.try_emplace(id, i); !isNew)
      reportSource(i, " is saved as ", id, ", as operand #", source->second, " is");
  }
}

void PairVerifier::verifyTargets() {
  Reporter report(*backward_, diagnostics_);
  llvm::DenseMap<SavedId, unsigned> targets;
  for (unsigned i = 0; i < backward_->arguments().size(); ++i) {
    SavedId id = backward_->savedArgument(i);
    if (!id)
      continue;
    ValueId argument = backward_->arguments()[i];
    auto source = sourceOf_.find(id);
    if (auto [target, isNew] = targets.try_emplace(id, i); !isNew) {
      report.errorInBody(nullptr, "argument #", i, " (", Named{argument}, ") is saved ", id,
                         ", as argument #", target->second, " is");
    } else if (source == sourceOf_.end()) {
      report.errorInBody(nullptr, "argument #", i, " (", Named{argument}, ") is saved ", id,
                         ", which the forward does not return");
    } else {
      targetOf_[source->second] = true;
      verifyTypes(source->second, argument, report);
    }
  }
}

void PairVerifier::verifyTypes(unsigned operand, ValueId argument, Reporter &report) {
  const Type &wanted = backward_->type(argument);
  const Type *given = findType(forward_, return_->operand(operand));
  SavedId id = forward_.savedReturn(operand);
  if (given ? *given == wanted : return_->operand(operand).isValid())
    return; // equal, or reported where it is undefined
  Diagnostic *error = given ? reportSource(operand, " is saved as ", id, " with type ", *given,
                                           ", but the argument of the backward has type ", wanted)
                            : report_.error(*return_, "'", return_->name(), "' op operand #",
                                            operand, " is saved as ", id, " but is absent");
  report.noteInTrace(error, Named{argument}, " is the argument");
}

void rondo::verify(const TracePair &pair, DiagnosticList &diagnostics) {
  verify(pair.forward(), diagnostics);
  if (pair.hasBackward())
    verify(pair.backward(), diagnostics);
  PairVerifier(pair, diagnostics).run();
  if (!diagnostics.hasErrors() && pair.hasBackward())
    verifySavedDraws(pair, diagnostics);
}

llvm::Error rondo::verify(const TracePair &pair) {
  DiagnosticList diagnostics;
  verify(pair, diagnostics);
  return diagnostics.takeError();
}
