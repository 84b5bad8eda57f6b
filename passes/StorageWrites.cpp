//===- StorageWrites.cpp - When may a storage be written? -----------------===//

#include "StorageWrites.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

/// Returns true if `op` can be seen to write nothing without asking for its effects.
static bool writesNothing(const OpSpec &spec) {
  return spec.writes.empty() && spec.resources.empty() && !spec.effects &&
         spec.bodies == BodyKind::None;
}

StorageWrites::StorageWrites(const Trace &trace, const StorageRoots &roots, ArgumentOverlap overlap)
    : trace_(trace), roots_(roots), overlap_(overlap), flags_(trace.numValues(), 0) {
  addBody(Trace::topBody());
}

void StorageWrites::flag(ValueId value, uint8_t flags) {
  for (ValueId root : roots_.roots(value))
    flags_[root.index()] |= flags;
}

bool StorageWrites::hasFlag(ValueId value, Flag flag) const {
  return llvm::any_of(roots_.roots(value),
                      [&](ValueId root) { return flags_[root.index()] & flag; });
}

void StorageWrites::addWrites(const Op &op, uint32_t position,
                              std::vector<std::pair<ValueId, uint32_t>> &pending) {
  Effects effects = getEffects(trace_, op.id());
  if (effects.isUnknown()) {
    for (ValueId operand : op.operands())
      if (operand)
        flag(operand, Shared | Written);
    for (ValueId result : op.results())
      flag(result, Shared | Written);
    pending.push_back({ValueId(), position});
  }
  for (unsigned i : effects.writes) {
    flag(op.operand(i), Written);
    for (ValueId root : roots_.roots(op.operand(i)))
      pending.push_back({root, position});
  }
}

static void addPosition(llvm::SmallVectorImpl<uint32_t> &positions, uint32_t position) {
  if (positions.empty() || positions.back() != position)
    positions.push_back(position);
}

void StorageWrites::addBody(BodyId body) {
  for (ValueId argument : trace_.arguments(body))
    if (!trace_.type(argument).asScalar())
      flag(argument, Shared);

  std::vector<std::pair<ValueId, uint32_t>> pending; // an invalid root: everything shared
  llvm::ArrayRef<OpId> order = trace_.ops(body);
  for (uint32_t position = 0; position < order.size(); ++position) {
    const Op &op = trace_.op(order[position]);
    for (BodyId nested : op.bodies())
      addBody(nested);
    if (!writesNothing(op.spec()))
      addWrites(op, position, pending);
    if (op.spec().terminator)
      for (ValueId operand : op.operands())
        if (operand)
          flag(operand, Returned);
  }
  // Only now is it known what is shared.
  for (auto [root, position] : pending) {
    bool isShared =
        !root || (overlap_ == ArgumentOverlap::Assumed && (flags_[root.index()] & Shared));
    addPosition(isShared ? sharedWrites_[body] : ownWrites_[root], position);
  }
}

std::pair<llvm::ArrayRef<uint32_t>, llvm::ArrayRef<uint32_t>>
StorageWrites::positions(ValueId root) const {
  llvm::ArrayRef<uint32_t> own, shared;
  uint8_t flags = flags_[root.index()];
  if (flags & Written)
    if (auto it = ownWrites_.find(root); it != ownWrites_.end())
      own = it->second;
  if (flags & Shared)
    if (auto it = sharedWrites_.find(trace_.owner(root)); it != sharedWrites_.end())
      shared = it->second;
  return {own, shared};
}

/// One past the last of `writes` before `position`; 0 if there is none.
static uint32_t lastBefore(llvm::ArrayRef<uint32_t> writes, uint32_t position) {
  size_t before = llvm::lower_bound(writes, position) - writes.begin();
  return before > 0 ? writes[before - 1] + 1 : 0;
}

uint32_t StorageWrites::lastWriteBefore(ValueId value, uint32_t position) const {
  uint32_t last = 0;
  for (ValueId root : roots_.roots(value)) {
    auto [own, shared] = positions(root);
    last = std::max({last, lastBefore(own, position), lastBefore(shared, position)});
  }
  return last;
}

bool StorageWrites::isWrittenAfter(ValueId value, uint32_t position) const {
  return lastWriteBefore(value, UINT32_MAX) > position + 1;
}
