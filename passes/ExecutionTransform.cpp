//===- ExecutionTransform.cpp - Who executes each op? -----------------------===//
//
// Asks the claim sources, in order of priority, first for groups and then op by op; what is claimed
// by one is not offered to the next as part of a group. Claims are written at once, so that a
// source sees in the trace what those before it took. When every op has an answer, the groups are
// made consecutive and become `fused` ops. With a source "fuser" that claims {exp, add}:
//
//   %a: f32[8] = exp(%x)             %c: f32[8] = neg(%x) claim("host")
//   %c: f32[8] = neg(%x)             %d: f32[8] = fused(%x, %c) claim("fuser") {
//   %d: f32[8] = add(%a, %c)   ==>   ^(%x: f32[8], %c: f32[8]):
//   return(%d)                         %a: f32[8] = exp(%x) claim("fuser")
//                                      %d: f32[8] = add(%a, %c) claim("fuser")
//                                      return(%d)
//                                    }
//                                    return(%d)
//
// An op with bodies (`if`, `while`, `checkpoint`, `fused`) is offered like any other, and so are
// the ops in its bodies. Ops in a region that is claimed as a whole run with it: they may stay
// without a claim of their own. Terminators, `del` and `cuda_graph` are not offered: they execute
// nothing by themselves.
//
//===----------------------------------------------------------------------===//

#include "GroupOrder.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/passes/Passes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace rondo;

namespace {

using Sources = llvm::ArrayRef<const ClaimSource *>;

/// Claims the ops of one trace.
class Claimer {
public:
  Claimer(Trace &trace, Sources sources, DiagnosticList &diagnostics)
      : trace_(trace), sources_(sources), diagnostics_(diagnostics) {}

  /// Returns true if the trace changed. Adds an error for every op that nobody claims.
  bool run() {
    collect(Trace::topBody());
    if (unclaimed_.empty())
      return false;
    size_t numOffered = unclaimed_.size();
    for (const ClaimSource *source : sources_) {
      claimGroups(*source);
      claimOps(*source);
    }
    bool isComplete = reportUnclaimed();
    bool isChanged = unclaimed_.size() < numOffered;
    if (isComplete)
      fuseGroups();
    return isChanged;
  }

private:
  struct Unclaimed {
    OpId op;
    std::vector<std::string> answers; ///< why not, of each source asked so far
  };

  struct BodyPlan {
    BodyId body;
    std::optional<GroupOrder> order; ///< made when the first group comes
    std::vector<Claim> groupClaims;  ///< by index of the group
  };

  bool needsClaim(const Op &op) const {
    return !op.spec().terminator && &op.spec() != delSpec_ && &op.spec() != cudaGraphSpec_;
  }

  void collect(BodyId body) {
    bodies_.push_back({body, std::nullopt, {}});
    for (OpId id : trace_.ops(body)) {
      const Op &op = trace_.op(id);
      if (!op.claim() && needsClaim(op))
        unclaimed_.push_back({id, {}});
      for (BodyId nested : op.bodies())
        collect(nested);
    }
  }

  //===--- Groups ---------------------------------------------------------===//

  void claimGroups(const ClaimSource &source) {
    if (!fusedSpec_)
      return;
    std::vector<GroupClaim> groups;
    for (BodyPlan &plan : bodies_) {
      groups.clear();
      source.claimGroups(trace_, plan.body, groups);
      for (const GroupClaim &group : groups)
        claimGroup(source, plan, group);
    }
  }

  /// Claims the ops of `group` unless that is not legal.
  void claimGroup(const ClaimSource &source, BodyPlan &plan, const GroupClaim &group) {
    if (!group.answer.accepted || !isOfUnclaimedOps(plan.body, group.ops))
      return;
    // One op needs no `fused` around it.
    if (group.ops.size() > 1) {
      if (!roots_)
        roots_.emplace(trace_);
      if (!llvm::all_of(group.ops, [&](OpId op) { return canOutline(trace_.op(op), *roots_); }))
        return;
      if (!plan.order)
        plan.order.emplace(trace_, plan.body, *roots_);
      if (!plan.order->add(group.ops))
        return;
      plan.groupClaims.push_back(makeClaim(source, group.answer));
      grouped_.insert(group.ops.begin(), group.ops.end());
    }
    Claim claim = makeClaim(source, group.answer);
    if (group.ops.size() > 1)
      claim.workspaceBytes = 0; // that of the `fused` op
    for (OpId op : group.ops)
      trace_.setClaim(op, claim);
  }

  /// Returns true if `ops` are at least one, live in `body`, are listed once, and are all free to
  /// be claimed.
  bool isOfUnclaimedOps(BodyId body, llvm::ArrayRef<OpId> ops) const {
    llvm::SmallDenseSet<OpId, 8> seen;
    return !ops.empty() && llvm::all_of(ops, [&](OpId id) {
      if (!id || id.index() >= trace_.numOps() || trace_.isErased(id) || !seen.insert(id).second)
        return false;
      const Op &op = trace_.op(id);
      return op.body() == body && !op.claim() && needsClaim(op);
    });
  }

  void fuseGroups() {
    for (BodyPlan &plan : bodies_) {
      if (plan.groupClaims.empty())
        continue;
      std::vector<GroupOrder::Group> groups = plan.order->groups();
      std::vector<RegionRange> ranges;
      llvm::transform(groups, std::back_inserter(ranges),
                      [](const GroupOrder::Group &group) { return group.range; });
      trace_.setOps(plan.body, plan.order->order());
      std::vector<OpId> fused = outlineRegions(trace_, plan.body, ranges, *fusedSpec_);
      for (size_t i = 0; i < fused.size(); ++i)
        trace_.setClaim(fused[i], plan.groupClaims[groups[i].index]);
    }
  }

  //===--- Single ops -----------------------------------------------------===//

  static Claim makeClaim(const ClaimSource &source, const ClaimAnswer &answer) {
    return {source.name().str(), answer.capturable, answer.why, answer.workspaceBytes};
  }

  void claimOps(const ClaimSource &source) {
    llvm::erase_if(unclaimed_, [&](Unclaimed &unclaimed) {
      if (trace_.op(unclaimed.op).claim())
        return true; // as part of a group
      ClaimAnswer answer = source.claim(trace_, unclaimed.op);
      if (answer.accepted)
        trace_.setClaim(unclaimed.op, makeClaim(source, answer));
      else
        unclaimed.answers.push_back(std::move(answer.why));
      return answer.accepted;
    });
  }

  /// Returns true if `op` is part of something that is claimed as a whole.
  bool runsWithItsRegion(OpId op) const {
    for (OpId parent = trace_.parentOp(trace_.op(op).body()); parent;
         parent = trace_.parentOp(trace_.op(parent).body())) {
      const Op &region = trace_.op(parent);
      if (grouped_.contains(parent) || (region.claim() && region.spec().bodies == BodyKind::Region))
        return true;
    }
    return false;
  }

  /// Returns true if there was nothing to report.
  bool reportUnclaimed() {
    bool isComplete = true;
    for (const Unclaimed &unclaimed : unclaimed_) {
      if (runsWithItsRegion(unclaimed.op))
        continue;
      isComplete = false;
      Diagnostic &error =
          diagnostics_.error(locationOf(trace_, unclaimed.op),
                             "no claim source accepts '" + trace_.op(unclaimed.op).name() + "' op");
      for (size_t i = 0; i < sources_.size(); ++i) {
        const std::string &answer = unclaimed.answers[i];
        error.note({}, "'" + sources_[i]->name() + "' " +
                           (answer.empty() ? "gives no reason" : "answers: " + answer));
      }
      if (sources_.empty())
        error.note({}, "there are no claim sources");
    }
    return isComplete;
  }

  Trace &trace_;
  Sources sources_;
  DiagnosticList &diagnostics_;
  const OpSpec *const fusedSpec_ = trace_.registry().lookup(core::fusedOp);
  const OpSpec *const delSpec_ = trace_.registry().lookup(core::delOp);
  const OpSpec *const cudaGraphSpec_ = trace_.registry().lookup(core::cudaGraphOp);
  std::vector<BodyPlan> bodies_;
  std::vector<Unclaimed> unclaimed_; ///< in program order
  std::optional<StorageRoots> roots_;
  llvm::DenseSet<OpId> grouped_;
};

class ExecutionTransform : public PairPass {
public:
  explicit ExecutionTransform(std::vector<const ClaimSource *> sources)
      : sources_(std::move(sources)) {
    assert(!llvm::is_contained(sources_, nullptr) && "no source");
  }

  llvm::StringRef name() const override { return "execution"; }
  PassProperties properties() const override {
    return {.forbids = TraceProperties::HasDels, .sets = TraceProperties::Claimed};
  }
  std::string optionsText() const override {
    std::string names;
    for (const ClaimSource *source : sources_)
      names += (names.empty() ? "" : "+") + source->name().str();
    return "executors=" + quotePipelineValue(names);
  }

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &) override {
    DiagnosticList errors;
    bool isChanged = Claimer(pair.forward(), sources_, errors).run();
    if (pair.hasBackward())
      isChanged |= Claimer(pair.backward(), sources_, errors).run();
    if (errors.hasErrors())
      return errors.takeError();
    return isChanged ? PassResult::Changed : PassResult::Unchanged;
  }

private:
  std::vector<const ClaimSource *> sources_;
};

} // namespace

std::unique_ptr<Pass> rondo::createExecutionTransform(std::vector<const ClaimSource *> sources) {
  return std::make_unique<ExecutionTransform>(std::move(sources));
}
