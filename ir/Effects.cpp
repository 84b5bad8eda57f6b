//===- Effects.cpp - What an op reads, writes and views ---------------------===//
//
// A leaf op's effects are those of its spec. For an op with bodies they are derived: every effect of an inner op on a
// value that (through views) comes from an argument of the body becomes an effect on the op's operand, and resources are
// united. Results view operands where a body returns a name of one of its arguments.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/Effects.h"

#include "rondo/ir/Trace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace rondo;

llvm::StringRef rondo::resourceKindName(ResourceKind kind) {
  switch (kind) {
  case ResourceKind::Generator:
    return "generator";
  case ResourceKind::Communicator:
    return "communicator";
  case ResourceKind::Host:
    return "host";
  case ResourceKind::Custom:
    return "custom";
  case ResourceKind::Unknown:
    break;
  }
  return "unknown";
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

void Effects::clear() {
  reads.clear();
  writes.clear();
  views.clear();
  resources.clear();
}

template <typename Vector> static void insertSorted(Vector &vector, unsigned value) {
  if (vector.empty() || vector.back() < value) {
    vector.push_back(value);
    return;
  }
  auto it = llvm::lower_bound(vector, value);
  if (it == vector.end() || *it != value)
    vector.insert(it, value);
}

void Effects::addRead(unsigned operand) { insertSorted(reads, operand); }
void Effects::addWrite(unsigned operand) { insertSorted(writes, operand); }

void Effects::addView(unsigned operand, unsigned result) {
  ViewEffect view{operand, result};
  if (!llvm::is_contained(views, view))
    views.push_back(view);
}

void Effects::addResource(ResourceEffect effect) {
  for (ResourceEffect &existing : resources)
    if (existing.kind == effect.kind && existing.name == effect.name) {
      existing.writes |= effect.writes;
      return;
    }
  resources.push_back(effect);
}

bool Effects::writesOperand(unsigned operand) const { return llvm::is_contained(writes, operand); }

bool Effects::isUnknown() const {
  return llvm::any_of(resources,
                      [](const ResourceEffect &r) { return r.kind == ResourceKind::Unknown; });
}

bool Effects::synchronisesHost() const {
  return llvm::any_of(resources, [](const ResourceEffect &r) { return r.kind == ResourceKind::Host; });
}

bool Effects::isRemovable() const {
  return writes.empty() &&
         llvm::none_of(resources, [](const ResourceEffect &r) { return r.writes; });
}

bool Effects::isPure() const { return writes.empty() && resources.empty(); }

llvm::SmallVector<unsigned, 1> Effects::viewedBy(unsigned result) const {
  llvm::SmallVector<unsigned, 1> operands;
  for (ViewEffect view : views)
    if (view.result == result)
      operands.push_back(view.operand);
  return operands;
}

//===----------------------------------------------------------------------===//
// Effects of an op
//===----------------------------------------------------------------------===//

static void addLeafEffects(const Trace &trace, const Op &op, Effects &effects) {
  const OpSpec &spec = op.spec();
  unsigned numOperands = op.operands().size();
  if (spec.readsOperands)
    for (unsigned i = 0; i < numOperands; ++i)
      if (op.operand(i))
        effects.reads.push_back(i);
  for (unsigned i : spec.writes)
    if (i < numOperands && op.operand(i))
      effects.addWrite(i);
  for (ViewEffect view : spec.views)
    if (view.operand < numOperands && op.operand(view.operand) && view.result < op.results().size())
      effects.views.push_back(view);
  if (spec.allResultsViewFirst && numOperands)
    for (unsigned i = 0; i < op.results().size(); ++i)
      effects.views.push_back({0, i});
  // Nothing is known of an opaque op: its results may be views of any operand.
  if (spec.opaque)
    for (unsigned i = 0; i < op.results().size(); ++i)
      for (unsigned k = 0; k < numOperands; ++k)
        if (op.operand(k) && trace.type(op.operand(k)).isTensor() && trace.type(op.result(i)).isTensor())
          effects.views.push_back({k, i});
  for (const ResourceEffect &resource : spec.resources)
    effects.addResource(resource);
  if (!spec.effects)
    return;
  llvm::SmallVector<const Type *, 4> operands, results;
  for (ValueId operand : op.operands())
    operands.push_back(operand ? &trace.type(operand) : nullptr);
  for (ValueId result : op.results())
    results.push_back(&trace.type(result));
  spec.effects(OpContext(spec, operands, op.attributes(), results), effects);
}

namespace {

/// Walks one body and expresses what it does in terms of the operands of the op that carries it.
class BodyEffects {
public:
  /// `firstOperand`: the operand that is argument 0 of the body.
  BodyEffects(const Trace &trace, BodyId body, unsigned firstOperand, Effects &effects)
      : trace_(trace), body_(body), effects_(effects) {
    for (ValueId argument : trace.arguments(body))
      operandsOf_[argument] = {firstOperand + trace.index(argument)};
  }

  void run(bool returnsAreResults) {
    Effects inner;
    for (OpId id : trace_.ops(body_)) {
      const Op &op = trace_.op(id);
      getEffects(trace_, id, inner);
      addOp(op, inner);
      if (op.spec().terminator && returnsAreResults)
        addReturn(op);
    }
  }

private:
  llvm::ArrayRef<unsigned> operandsOf(ValueId value) const {
    auto it = operandsOf_.find(value);
    return it == operandsOf_.end() ? llvm::ArrayRef<unsigned>() : llvm::ArrayRef<unsigned>(it->second);
  }

  void addOp(const Op &op, const Effects &inner) {
    for (unsigned i : inner.reads)
      for (unsigned operand : operandsOf(op.operand(i)))
        effects_.addRead(operand);
    for (unsigned i : inner.writes)
      for (unsigned operand : operandsOf(op.operand(i)))
        effects_.addWrite(operand);
    for (ViewEffect view : inner.views)
      for (unsigned operand : operandsOf(op.operand(view.operand)).vec()) {
        llvm::SmallVector<unsigned, 1> &operands = operandsOf_[op.result(view.result)];
        if (!llvm::is_contained(operands, operand))
          operands.push_back(operand);
      }
    for (const ResourceEffect &resource : inner.resources)
      effects_.addResource(resource);
  }

  void addReturn(const Op &op) {
    for (unsigned i = 0; i < op.operands().size(); ++i)
      if (op.operand(i))
        for (unsigned operand : operandsOf(op.operand(i)))
          effects_.addView(operand, i);
  }

  const Trace &trace_;
  BodyId body_;
  Effects &effects_;
  llvm::DenseMap<ValueId, llvm::SmallVector<unsigned, 1>> operandsOf_;
};

} // namespace

/// From one iteration of a loop to any number. What the step returns at i is argument i of the next
/// iteration, so an argument may name any operand from which views lead to it; and with no
/// iteration, result i is operand i.
static void closeOverIterations(Effects &effects, unsigned numCarried) {
  std::vector<llvm::SmallVector<unsigned, 2>> viewed(numCarried);
  for (ViewEffect view : effects.views)
    if (view.operand < numCarried && view.result < numCarried)
      viewed[view.result].push_back(view.operand);
  auto membersOf = [&](llvm::ArrayRef<unsigned> arguments) {
    llvm::SmallBitVector members(numCarried);
    for (unsigned argument : arguments)
      if (argument < numCarried)
        members.set(argument);
    return members;
  };
  llvm::SmallBitVector isRead = membersOf(effects.reads), isWritten = membersOf(effects.writes);

  effects.reads.clear();
  effects.writes.clear();
  effects.views.clear();
  llvm::SmallBitVector isOrigin(numCarried);
  llvm::SmallVector<unsigned, 8> origins; // of an argument: the operands that it may name
  for (unsigned i = 0; i < numCarried; ++i) {
    origins.assign(1, i);
    isOrigin.set(i);
    for (unsigned next = 0; next < origins.size(); ++next)
      for (unsigned operand : viewed[origins[next]])
        if (!isOrigin.test(operand)) {
          isOrigin.set(operand);
          origins.push_back(operand);
        }
    for (unsigned operand : origins) {
      effects.views.push_back({operand, i});
      if (isRead.test(i))
        effects.addRead(operand);
      if (isWritten.test(i))
        effects.addWrite(operand);
      isOrigin.reset(operand);
    }
  }
}

void rondo::getEffects(const Trace &trace, OpId id, Effects &effects) {
  effects.clear();
  const Op &op = trace.op(id);
  switch (op.spec().bodies) {
  case BodyKind::None:
    addLeafEffects(trace, op, effects);
    return;
  case BodyKind::Region:
    for (BodyId body : op.bodies())
      BodyEffects(trace, body, 0, effects).run(/*returnsAreResults=*/true);
    break;
  case BodyKind::If:
    effects.addRead(0);
    for (BodyId body : op.bodies())
      BodyEffects(trace, body, 1, effects).run(/*returnsAreResults=*/true);
    break;
  case BodyKind::While:
    for (BodyId body : op.bodies())
      BodyEffects(trace, body, 0, effects)
          .run(/*returnsAreResults=*/body == op.bodies().back());
    closeOverIterations(effects, op.operands().size());
    break;
  }
  // A body may be malformed: keep only what names an operand and a result that exist.
  unsigned numOperands = op.operands().size();
  llvm::erase_if(effects.reads, [&](unsigned i) { return i >= numOperands || !op.operand(i); });
  llvm::erase_if(effects.writes, [&](unsigned i) { return i >= numOperands || !op.operand(i); });
  llvm::erase_if(effects.views, [&](ViewEffect view) {
    return view.operand >= numOperands || !op.operand(view.operand) ||
           view.result >= op.results().size();
  });
}
