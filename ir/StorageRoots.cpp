//===- StorageRoots.cpp - Which values name the same storage? ---------------===//

#include "rondo/ir/StorageRoots.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

StorageRoots::StorageRoots(const Trace &trace) : trace_(&trace) {
  single_.resize(trace.numValues());
  for (uint32_t i = 0; i < single_.size(); ++i)
    single_[i] = ValueId(i);

  addBody(Trace::topBody());
}

/// Returns true if no result of such an op can be a view.
static bool givesFreshStorageOnly(const OpSpec &spec) {
  return spec.views.empty() && !spec.allResultsViewFirst && !spec.effects && !spec.opaque &&
         spec.bodies == BodyKind::None;
}

void StorageRoots::addBody(BodyId body) {
  Effects effects;
  for (OpId id : trace_->ops(body)) {
    const Op &op = trace_->op(id);
    if (givesFreshStorageOnly(op.spec()))
      continue;
    for (BodyId nested : op.bodies())
      addBody(nested);
    getEffects(*trace_, id, effects);
    for (ViewEffect view : effects.views)
      addView(op.operand(view.operand), op.result(view.result));
    for (BodyId nested : op.bodies())
      addSharedResults(op, nested);
  }
}

/// Results of `op` for which `body` returns names of one storage that it made share a root.
void StorageRoots::addSharedResults(const Op &op, BodyId body) {
  const Op *ret = trace_->terminator(body);
  bool isCondition = op.spec().bodies == BodyKind::While && body != op.bodies().back();
  if (!ret || isCondition)
    return;
  llvm::SmallDenseMap<ValueId, ValueId, 8> resultOf; // by root inside, the first result
  for (unsigned i = 0; i < std::min(ret->operands().size(), op.results().size()); ++i) {
    if (!ret->operand(i))
      continue;
    for (ValueId inner : roots(ret->operand(i))) {
      auto [first, isNew] = resultOf.try_emplace(inner, op.result(i));
      // What came in as an argument is known from the op's effects.
      if (!isNew && !trace_->isArgument(inner))
        addView(first->second, op.result(i));
    }
  }
}

void StorageRoots::addView(ValueId viewed, ValueId view) {
  bool isFirst = single_[view.index()] == view && !multipleOf_.count(view);
  if (isFirst && !multipleOf_.count(viewed)) {
    single_[view.index()] = single_[viewed.index()];
    return;
  }
  llvm::SmallVector<ValueId, 4> merged;
  if (!isFirst)
    merged.append(roots(view).begin(), roots(view).end());
  merged.append(roots(viewed).begin(), roots(viewed).end());
  llvm::sort(merged);
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  if (merged.size() == 1) {
    single_[view.index()] = merged.front();
    return;
  }
  auto [it, inserted] = multipleOf_.try_emplace(view, multiple_.size());
  if (inserted)
    multiple_.emplace_back();
  multiple_[it->second].assign(merged.begin(), merged.end());
}

llvm::ArrayRef<ValueId> StorageRoots::roots(ValueId value) const {
  if (!multipleOf_.empty())
    if (auto it = multipleOf_.find(value); it != multipleOf_.end())
      return multiple_[it->second];
  return single_[value.index()];
}

bool StorageRoots::mayAlias(ValueId a, ValueId b) const {
  return llvm::any_of(roots(a), [&](ValueId root) { return llvm::is_contained(roots(b), root); });
}

ValueTags StorageRoots::tags(ValueId value) const {
  ValueTags tags = trace_->tags(value);
  for (ValueId root : roots(value))
    tags = tags | trace_->tags(root);
  return tags;
}

bool StorageRoots::isStatic(ValueId value) const {
  if (any(trace_->tags(value) & staticTags))
    return true;
  return llvm::all_of(roots(value),
                      [&](ValueId root) { return any(trace_->tags(root) & staticTags); });
}

Dim rondo::viewOffset(const Trace &trace, OpId id, unsigned result) {
  const Op &op = trace.op(id);
  const OpSpec &spec = op.spec();
  assert(spec.bodies == BodyKind::None && !spec.opaque && "nothing says where the result starts");
#ifndef NDEBUG
  Effects effects;
  getEffects(trace, id, effects);
  assert(!effects.viewedBy(result).empty() && "offset of a result that is no view");
#endif
  if (!spec.viewOffset)
    return 0;
  llvm::SmallVector<const Type *, 4> operands, results;
  for (ValueId operand : op.operands())
    operands.push_back(operand ? &trace.type(operand) : nullptr);
  for (ValueId value : op.results())
    results.push_back(&trace.type(value));
  return spec.viewOffset(OpContext(spec, operands, op.attributes(), results), result);
}
