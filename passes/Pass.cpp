//===- Pass.cpp - A step of a pipeline --------------------------------------===//

#include "rondo/passes/Pass.h"

using namespace rondo;

Pass::~Pass() = default;

llvm::Expected<PassResult> TracePass::run(TracePair &pair, DiagnosticList &diagnostics) {
  llvm::Expected<PassResult> forward = runOnTrace(pair.forward(), Side::Forward, diagnostics);
  if (!forward || !pair.hasBackward())
    return forward;
  llvm::Expected<PassResult> backward = runOnTrace(pair.backward(), Side::Backward, diagnostics);
  if (!backward || *backward == PassResult::Changed)
    return backward;
  return forward;
}
