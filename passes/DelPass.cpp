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

using namespace rondo;

namespace {

/// Places the `del`s of one trace. Uses, and the values that die at an op, are kept in tables by
/// id: a list per op, linked through its values.
class DelPlacer {
public:
  DelPlacer(Trace &trace, const OpSpec &delSpec)
      : trace_(trace), delSpec_(delSpec), lastUse_(trace.numValues()),
        nextDying_(trace.numValues()), dying_(trace.numOps()) {
    forEachOp(trace, [&](const Op &op) {
      for (ValueId operand : op.operands())
        if (operand)
          lastUse_[operand.index()] = op.id();
    });
  }

  /// Returns true if a `del` was placed.
  bool run() { return placeIn(Trace::topBody()); }

private:
  struct ValueList {
    ValueId first, last;
  };

  /// The op after which the name of `value`, a result of `definition`, ends; invalid if it does not
  /// end in its body, or ends already.
  OpId deathOf(ValueId value, const Op &definition) const {
    OpId use = lastUse_[value.index()];
    const Op &last = use ? trace_.op(use) : definition;
    return last.spec().terminator || &last.spec() == &delSpec_ ? OpId() : last.id();
  }

  /// Lists the values of `body` by the op at which they die. Returns the number of such ops.
  size_t collect(BodyId body) {
    size_t numOps = 0;
    for (OpId id : trace_.ops(body)) {
      const Op &op = trace_.op(id);
      for (ValueId result : op.results()) {
        OpId death = deathOf(result, op);
        if (!death)
          continue;
        ValueList &list = dying_[death.index()];
        numOps += !list.first;
        (list.first ? nextDying_[list.last.index()] : list.first) = result;
        list.last = result;
      }
    }
    return numOps;
  }

  OpId createDel(const ValueList &list) {
    OpInit init;
    init.spec = &delSpec_;
    for (ValueId value = list.first; value; value = nextDying_[value.index()])
      init.operands.push_back(value);
    return trace_.createOp(std::move(init));
  }

  bool placeIn(BodyId body) {
    bool isChanged = false;
    for (OpId id : trace_.ops(body))
      for (BodyId nested : trace_.op(id).bodies())
        isChanged |= placeIn(nested);

    size_t numDels = collect(body);
    if (numDels == 0)
      return isChanged;
    std::vector<OpId> order;
    order.reserve(trace_.ops(body).size() + numDels);
    for (OpId id : trace_.ops(body)) {
      order.push_back(id);
      if (const ValueList &list = dying_[id.index()]; list.first)
        order.push_back(createDel(list));
    }
    trace_.setOps(body, std::move(order));
    return true;
  }

  Trace &trace_;
  const OpSpec &delSpec_;
  std::vector<OpId> lastUse_;      // by value
  std::vector<ValueId> nextDying_; // by value
  std::vector<ValueList> dying_;   // by op
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
