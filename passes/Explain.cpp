//===- Explain.cpp - Why is each op where it is? ----------------------------===//
//
//   forward @forward: 113 ops, 1 region
//     region 0 "blocks": 97 ops, 61 launch; 40 inputs (37 static, 3 auto), 66 results
//     not captured: 16 ops
//       15 ops: region: launches nothing, and no region has it in its middle
//         %t = permute  (blocks.0.attn)
//       1 op: legality: synchronises with the host
//         %i = item  loss.py:12:3
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/Explain.h"

#include "rondo/ir/Effects.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace rondo;

static std::string plural(size_t count, llvm::StringRef noun) {
  return (llvm::Twine(count) + " " + noun + (count == 1 ? "" : "s")).str();
}

namespace {

class TraceExplainer {
public:
  TraceExplainer(const Trace &trace, Side side, const ExplainOptions &options,
                 llvm::raw_ostream &os)
      : trace_(trace), side_(side), options_(options), os_(os) {}

  void run() {
    count();
    os_ << sideName(side_) << " @" << trace_.name() << ": " << plural(numOps_, "op") << ", "
        << plural(regions_.size(), "region") << '\n';
    if (options_.everyOp) {
      printEveryOp();
      return;
    }
    for (const Op *region : regions_)
      printRegion(*region);
    printReasons();
  }

private:
  /// An op, or an op of a region: what the transform gave a verdict on.
  template <typename Visit> void forEachJudged(Visit visit) const {
    for (OpId id : trace_.ops()) {
      const Op &op = trace_.op(id);
      if (!op.domain()) {
        visit(op);
        continue;
      }
      for (OpId inner : trace_.ops(op.bodies().front()))
        if (!trace_.op(inner).spec().terminator)
          visit(trace_.op(inner));
    }
  }

  void count() {
    for (OpId id : trace_.ops())
      if (trace_.op(id).domain())
        regions_.push_back(&trace_.op(id));
    forEachJudged([&](const Op &op) {
      if (isBookkeeping(op))
        return;
      ++numOps_;
      const FusionRecord *record = op.fusionRecord();
      if (record && record->captured)
        return;
      std::string reason = !record
                               ? "no verdict: cuda-graph has not run on it"
                               : (fusionDeciderName(record->decider) + ": " + record->reason).str();
      reasons_[reason].push_back(&op);
    });
  }

  /// `return` and `del`: nothing is asked or said about them.
  static bool isBookkeeping(const Op &op) {
    return op.spec().terminator || (!op.spec().launches && op.results().empty());
  }

  void printRegion(const Op &region) {
    size_t ops = 0, launches = 0;
    for (OpId inner : trace_.ops(region.bodies().front())) {
      if (isBookkeeping(trace_.op(inner)))
        continue;
      ++ops;
      launches += trace_.op(inner).spec().launches;
    }
    os_ << "  region ";
    if (const Attribute *id = region.attribute("region"))
      os_ << *id;
    if (!region.modulePath().empty())
      os_ << " (" << region.modulePath() << ')';
    os_ << ": " << plural(ops, "op") << ", " << launches << " launch; "
        << plural(region.operands().size(), "input");
    printPolicies(region);
    os_ << ", " << plural(region.results().size(), "result") << '\n';
  }

  void printPolicies(const Op &region) {
    const Attribute *inputs = region.attribute("inputs");
    if (!inputs || !inputs->asList() || inputs->asList()->empty())
      return;
    llvm::MapVector<llvm::StringRef, unsigned> counts;
    for (const Attribute &policy : *inputs->asList())
      if (policy.asString())
        ++counts[*policy.asString()];
    llvm::ListSeparator separator;
    os_ << " (";
    for (auto &[policy, number] : counts)
      os_ << separator << number << ' ' << policy;
    os_ << ')';
  }

  void printReasons() {
    size_t left = 0;
    for (auto &[reason, ops] : reasons_)
      left += ops.size();
    if (!left) {
      os_ << "  every op is captured\n";
      return;
    }
    os_ << "  not captured: " << plural(left, "op") << '\n';
    // Most frequent first; ties in order of appearance.
    auto sorted = reasons_.takeVector();
    llvm::stable_sort(
        sorted, [](const auto &a, const auto &b) { return a.second.size() > b.second.size(); });
    for (auto &[reason, ops] : sorted) {
      os_ << "    " << plural(ops.size(), "op") << ": " << reason << '\n';
      for (const Op *op : llvm::ArrayRef<const Op *>(ops).take_front(options_.maxOpsPerReason))
        printOpLine(*op, "      ");
      if (ops.size() > options_.maxOpsPerReason)
        os_ << "      and " << ops.size() - options_.maxOpsPerReason << " more\n";
    }
  }

  void printOpLine(const Op &op, llvm::StringRef indent) {
    os_ << indent;
    llvm::ListSeparator separator;
    for (ValueId result : op.results()) {
      llvm::StringRef name = trace_.name(result);
      os_ << separator << '%' << (name.empty() ? llvm::StringRef("_") : name);
    }
    os_ << (op.results().empty() ? "" : " = ") << op.name();
    if (!op.modulePath().empty())
      os_ << "  in " << op.modulePath();
    if (op.location() && op.location()->isKnown())
      os_ << "  at " << op.location()->str();
    os_ << '\n';
  }

  void printEveryOp() {
    forEachJudged([&](const Op &op) {
      if (isBookkeeping(op))
        return;
      const FusionRecord *record = op.fusionRecord();
      std::string verdict =
          !record ? "-"
                  : ((record->captured ? "yes " : "no  ") + fusionDeciderName(record->decider) +
                     (record->reason.empty() ? "" : ": ") + record->reason)
                        .str();
      printOpLine(op, "  ");
      os_ << "      " << verdict << '\n';
    });
  }

  const Trace &trace_;
  Side side_;
  const ExplainOptions &options_;
  llvm::raw_ostream &os_;
  size_t numOps_ = 0;
  std::vector<const Op *> regions_;
  llvm::MapVector<std::string, std::vector<const Op *>, std::map<std::string, unsigned>> reasons_;
};

} // namespace

void rondo::explain(const TracePair &pair, llvm::raw_ostream &os, const ExplainOptions &options) {
  TraceExplainer(pair.forward(), Side::Forward, options, os).run();
  if (pair.hasBackward())
    TraceExplainer(pair.backward(), Side::Backward, options, os).run();
}
