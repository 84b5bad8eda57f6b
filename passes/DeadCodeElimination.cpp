//===- DeadCodeElimination.cpp - Removes what nothing needs ---------------===//
//
// The backward goes first: what it no longer uses is no longer saved, and what the forward computed
// only to save it goes with it.
//
//   forward @f(%x: f32[8]) {                      forward @f(%x: f32[8]) {
//     %a: f32[8] = exp(%x)                          %a: f32[8] = exp(%x)
//     %m: f32[8] = neg(%x)                          return(%a, %a saved #0)
//     return(%a, %a saved #0, %m saved #1)        }
//   }                                       ==>   backward @b(%a: f32[8] saved #0,
//   backward @b(%a: f32[8] saved #0,                          %g: f32[8]) {
//               %m: f32[8] saved #1,                %r: f32[8] = mul(%g, %a)
//               %g: f32[8]) {                       return(%r)
//     %u: f32[8] = mul(%g, %m)                    }
//     %r: f32[8] = mul(%g, %a)
//     return(%r)
//   }
//
// An op is needed if it ends a body; if it writes a resource or its effects are unknown; if it
// writes a storage that others can reach (an argument, or what an op with unknown effects was
// given); or if one of its results is used by an op that is needed. Other writes need no rule of
// their own: after a write in place the storage is read by the new name, a result, or not at all.
// Everything else goes. One sweep from the end finds all of it.
//
// The interface of what stays is kept. Arguments of a trace are the caller's signature; only saved
// ones go. An op with bodies keeps its operands, results and body arguments, so that the `inputs`
// of a region, and what was captured for it, stay what they are; what its bodies return counts as
// needed, and ops inside that are dead go.
//
//===----------------------------------------------------------------------===//

#include "StorageWrites.h"

#include "rondo/passes/Passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

namespace {

/// Removes the dead ops of one trace.
class DeadCodeRemover {
public:
  explicit DeadCodeRemover(Trace &trace)
      : trace_(trace), roots_(trace), writes_(trace, roots_), isUsed_(trace.numValues(), false) {}

  /// Returns true if anything was removed.
  bool run() {
    sweep(Trace::topBody());
    for (auto &[body, order] : keptOrders_)
      trace_.setOps(body, std::move(order));
    for (OpId op : dead_)
      trace_.eraseOp(op);
    return !dead_.empty();
  }

  /// Valid after `run`, for values that are left.
  bool isUsed(ValueId value) const { return isUsed_[value.index()]; }

private:
  void sweep(BodyId body) {
    llvm::ArrayRef<OpId> order = trace_.ops(body);
    std::vector<OpId> kept;
    kept.reserve(order.size());
    for (OpId id : llvm::reverse(order)) {
      const Op &op = trace_.op(id);
      if (!isNeeded(op)) {
        dead_.push_back(id);
        continue;
      }
      kept.push_back(id);
      for (ValueId operand : op.operands())
        if (operand)
          isUsed_[operand.index()] = true;
      for (BodyId nested : op.bodies())
        sweep(nested);
    }
    if (kept.size() == order.size())
      return;
    std::reverse(kept.begin(), kept.end());
    keptOrders_.push_back({body, std::move(kept)});
  }

  /// Returns true if `op` must stay, given which of the ops after it are needed.
  bool isNeeded(const Op &op) {
    if (op.spec().terminator || llvm::any_of(op.results(), [&](ValueId v) { return isUsed(v); }))
      return true;
    getEffects(trace_, op.id(), effects_);
    if (effects_.isUnknown() ||
        llvm::any_of(effects_.resources, [](const ResourceEffect &r) { return r.writes; }))
      return true;
    return llvm::any_of(effects_.writes,
                        [&](unsigned i) { return writes_.isShared(op.operand(i)); });
  }

  Trace &trace_;
  StorageRoots roots_;
  StorageWrites writes_;
  std::vector<bool> isUsed_;
  std::vector<OpId> dead_;
  std::vector<std::pair<BodyId, std::vector<OpId>>> keptOrders_;
  Effects effects_; // scratch
};

class DeadCodeElimination : public PairPass {
public:
  llvm::StringRef name() const override { return "dce"; }
  PassProperties properties() const override {
    PassProperties properties;
    properties.forbids = TraceProperties::HasDels; // a `del` would be the last use of everything
    return properties;
  }

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &) override {
    bool isChanged = false;
    if (pair.hasBackward()) {
      DeadCodeRemover backward(pair.backward());
      isChanged |= backward.run();
      isChanged |= dropUnusedLinks(pair, backward);
    }
    isChanged |= DeadCodeRemover(pair.forward()).run();
    return isChanged ? PassResult::Changed : PassResult::Unchanged;
  }

private:
  /// Drops the saved links that the backward makes no use of. Returns true if there were any.
  static bool dropUnusedLinks(TracePair &pair, const DeadCodeRemover &remover) {
    const Trace &backward = pair.backward();
    llvm::SmallVector<SavedId, 8> unused;
    for (unsigned i = 0; i < backward.arguments().size(); ++i)
      if (SavedId id = backward.savedArgument(i); id && !remover.isUsed(backward.arguments()[i]))
        unused.push_back(id);
    for (SavedId id : llvm::reverse(unused))
      pair.dropSaved(id);
    return !unused.empty();
  }
};

} // namespace

std::unique_ptr<Pass> rondo::createDeadCodeEliminationPass() {
  return std::make_unique<DeadCodeElimination>();
}
