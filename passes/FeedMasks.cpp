//===- FeedMasks.cpp - Dropout masks as arguments -------------------------===//
//
//   %y, %m = dropout(%x, %rng) {offset = 0, p = 0.1}
//
// becomes
//
//   %y = dropout_backward(%x, %m) {scale = 1.1111}     x * mask / (1 - p)
//
// with a new argument %m. A run elsewhere drew its own numbers; with its masks the rest of the
// trace can be compared with it.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/Passes.h"

#include "llvm/ADT/DenseMap.h"

using namespace rondo;

namespace {

class FeedMasksPass : public TracePass {
public:
  llvm::StringRef name() const override { return "feed-masks"; }
  PassProperties properties() const override { return {.forbids = TraceProperties::Claimed}; }

protected:
  llvm::Expected<PassResult> runOnTrace(Trace &trace, Side, DiagnosticList &) override;
};

} // namespace

/// Replaces `dropout` by a product with a new argument, which takes the place and name of its mask.
static OpId replaceDropout(Trace &trace, const Op &dropout, const OpSpec &product,
                           llvm::DenseMap<ValueId, ValueId> &replacements) {
  ValueId out = dropout.result(0), mask = dropout.result(1);
  std::string outName = trace.name(out).str(), maskName = trace.name(mask).str();
  trace.setName(out, "");
  trace.setName(mask, "");
  ValueId fed = trace.addArgument(trace.type(mask), maskName);
  double p = dropout.attribute("p")->asNumber().value_or(0);
  OpInit init;
  init.spec = &product;
  init.operands = {dropout.operand(0), fed};
  init.resultTypes = {trace.type(out)};
  init.attributes = {{"scale", Attribute(p < 1 ? 1 / (1 - p) : 0.0)}};
  init.resultNames = {trace.intern(outName)};
  OpId made = trace.createOp(std::move(init));
  trace.copyAnnotations(made, trace, dropout.id());
  replacements[mask] = fed;
  replacements[out] = trace.op(made).result();
  return made;
}

llvm::Expected<PassResult> FeedMasksPass::runOnTrace(Trace &trace, Side, DiagnosticList &) {
  const OpSpec *product = trace.registry().lookup("dropout_backward");
  llvm::DenseMap<ValueId, ValueId> replacements;
  std::vector<OpId> order, dropped;
  for (OpId id : trace.ops()) {
    const Op &op = trace.op(id);
    if (!product || op.name() != "dropout") {
      order.push_back(id);
      continue;
    }
    order.push_back(replaceDropout(trace, op, *product, replacements));
    dropped.push_back(id);
  }
  if (dropped.empty())
    return PassResult::Unchanged;
  trace.setOps(Trace::topBody(), std::move(order));
  trace.replaceUses(Trace::topBody(), replacements);
  for (OpId id : dropped)
    trace.eraseOp(id);
  return PassResult::Changed;
}

std::unique_ptr<Pass> rondo::createFeedMasksPass() {
  return std::make_unique<FeedMasksPass>();
}
