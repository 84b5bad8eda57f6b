//===- DelPass.cpp - Ends every name after its last use -------------------===//
//
// A `del` stands right after the op that is the last to use a value, or that defines it if nothing
// uses it. Values that die at one op share a `del`, in order of definition. With a region:
//
//   %s: f32[] = cuda_graph(%x) {                  %s: f32[] = cuda_graph(%x) {
//   ^(%x: f32[8]):                                ^(%x: f32[8]):
//     %e: f32[8] = exp(%x)                          %e: f32[8] = exp(%x)
//     %s: f32[] = sum(%e)                           %s: f32[] = sum(%e)
//     return(%s)                           ==>      del(%e)
//   }                                               return(%s)
//   %i: f64 = item(%s)                            }
//   return(%i)                                    %i: f64 = item(%s)
//                                                 del(%s)
//                                                 return(%i)
//
// `del` ends a name; a storage dies with its last name. So no name is deleted that is not the
// body's own: what its terminator gives goes on outside, arguments of a nested body are owned
// outside, and arguments of the trace by the caller (saved ones by the saved state). A name that
// went stale by a write in place is deleted like any other.
//
// A value whose last use is a `del` is dead already, which is why a second run changes nothing.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/Passes.h"

#include "rondo/ir/CoreOps.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace rondo;

namespace {

/// Places the `del`s of one trace: a sweep from the end of every body, in which the first use met
/// is the last.
class DelPlacer {
public:
  DelPlacer(Trace &trace, const OpSpec &delSpec)
      : trace_(trace), delSpec_(delSpec), isUsed_(trace.numValues(), false),
        position_(trace.numOps(), 0) {}

  /// Returns true if a `del` was placed.
  bool run() { return placeIn(Trace::topBody()); }

private:
  bool placeIn(BodyId body) {
    llvm::ArrayRef<OpId> before = trace_.ops(body);
    for (uint32_t position = 0; position < before.size(); ++position)
      position_[before[position].index()] = position;

    bool isChanged = false;
    std::vector<OpId> order; // from the end
    order.reserve(2 * before.size());
    for (OpId id : llvm::reverse(before)) {
      for (BodyId nested : trace_.op(id).bodies())
        isChanged |= placeIn(nested);
      llvm::SmallVector<ValueId, 4> dying = namesThatEndAt(trace_.op(id));
      if (!dying.empty())
        order.push_back(createDel(dying));
      order.push_back(id);
    }
    if (order.size() == before.size())
      return isChanged;
    std::reverse(order.begin(), order.end());
    trace_.setOps(body, std::move(order));
    return true;
  }

  /// The body's own names that `op` is the last to use or, if nothing uses them, defines; in order
  /// of definition. To be called for one op after the other, from the end.
  llvm::SmallVector<ValueId, 4> namesThatEndAt(const Op &op) {
    llvm::SmallVector<ValueId, 4> names;
    // What a terminator gives goes on elsewhere; what a `del` names has ended.
    bool isEnd = op.spec().terminator || &op.spec() == &delSpec_;
    for (ValueId operand : op.operands()) {
      if (!operand || isUsed_[operand.index()])
        continue;
      isUsed_[operand.index()] = true;
      if (!isEnd && !trace_.isArgument(operand))
        names.push_back(operand);
    }
    for (ValueId result : op.results())
      if (!isEnd && !isUsed_[result.index()])
        names.push_back(result);
    if (names.size() > 1)
      llvm::sort(names, [&](ValueId a, ValueId b) { return placeOf(a) < placeOf(b); });
    return names;
  }

  /// Where a result is defined: the op's position, then the result's.
  std::pair<uint32_t, unsigned> placeOf(ValueId result) const {
    return {position_[trace_.definingOp(result).index()], trace_.index(result)};
  }

  OpId createDel(llvm::ArrayRef<ValueId> names) {
    OpInit init;
    init.spec = &delSpec_;
    init.operands.assign(names.begin(), names.end());
    return trace_.createOp(std::move(init));
  }

  Trace &trace_;
  const OpSpec &delSpec_;
  std::vector<bool> isUsed_;       // by value: by an op that the sweep has seen
  std::vector<uint32_t> position_; // by op, in its body
};

class DelPass : public TracePass {
public:
  llvm::StringRef name() const override { return "del"; }
  PassProperties properties() const override {
    PassProperties properties;
    properties.sets = TraceProperties::HasDels;
    return properties;
  }

protected:
  llvm::Expected<PassResult> runOnTrace(Trace &trace, Side, DiagnosticList &) override {
    const OpSpec *spec = trace.registry().lookup(core::delOp);
    if (!spec)
      return makeError("pass 'del' needs the op 'del', which the registry of trace '" +
                       trace.name() + "' does not have");
    return DelPlacer(trace, *spec).run() ? PassResult::Changed : PassResult::Unchanged;
  }
};

} // namespace

std::unique_ptr<Pass> rondo::createDelPass() {
  return std::make_unique<DelPass>();
}
