//===- VerifierStorage.cpp - Stale names and `del` --------------------------===//
//
// The sweep keeps a clock that each writing op advances. A name is stale if one of its roots was
// written after the name was made:
//
//   %v: f32[4] = slice(%x) {...}      // made at 0, root %x
//   %y: f32[8] = add_(%x, %b)         // %x written at 1; %y made at 1, root %x
//   %z: f32[4] = relu(%v)             // error: 0 < 1
//
// Only writes that an op is known to do count: what an opaque op may do to its operands does not
// make their names stale, else no unknown op could be loaded.
//
//===----------------------------------------------------------------------===//

#include "VerifierImpl.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::verifier;

static constexpr uint32_t setBit = 1u << 31;
/// A value that may name more storages than this (a long chain of `if`s) counts as naming the first
/// of them, so that the sweep stays linear.
static constexpr size_t maxRoots = 64;

StorageVerifier::StorageVerifier(const Trace &trace, Reporter &report)
    : trace_(trace), report_(report), values_(trace.numValues()) {
  for (uint32_t i = 0; i < values_.size(); ++i)
    values_[i] = {i, 0, 0};
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

llvm::ArrayRef<uint32_t> StorageVerifier::roots(uint32_t value) const {
  const uint32_t &root = values_[value].root;
  if (!(root & setBit))
    return root;
  const RootSet &set = sets_[root & ~setBit];
  return llvm::ArrayRef<uint32_t>(pool_).slice(set.begin, set.size);
}

/// `roots` is sorted, without duplicates, and not empty.
void StorageVerifier::setRoots(uint32_t value, llvm::ArrayRef<uint32_t> roots) {
  if (roots.size() == 1) {
    values_[value].root = roots.front();
    return;
  }
  values_[value].root = setBit | uint32_t(sets_.size());
  roots = roots.take_front(maxRoots);
  sets_.push_back({uint32_t(pool_.size()), uint32_t(roots.size())});
  pool_.insert(pool_.end(), roots.begin(), roots.end());
}

/// Adds the roots of `viewed` to those of `view`, which is its own root as long as it has no other.
void StorageVerifier::addView(ValueId view, ValueId viewed) {
  if (!isUsable(viewed))
    return;
  uint32_t &root = values_[view.index()].root;
  uint32_t other = values_[viewed.index()].root;
  if (root == view.index() || root == other) {
    root = other;
    return;
  }
  llvm::SmallVector<uint32_t, 8> merged;
  std::set_union(roots(view.index()).begin(), roots(view.index()).end(),
                 roots(viewed.index()).begin(), roots(viewed.index()).end(),
                 std::back_inserter(merged));
  setRoots(view.index(), merged);
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

void StorageVerifier::defineArgument(ValueId argument, ValueId operand) {
  values_[argument.index()].madeAt = now_;
  addView(argument, operand);
}

void StorageVerifier::use(const Op &op, unsigned i) {
  ValueId value = op.operand(i);
  for (uint32_t root : roots(value.index())) {
    if (values_[root].lastWrite > values_[value.index()].madeAt) {
      reportStale(op, i, root);
      break;
    }
  }
  if (deletedBy_.empty() || !deletedBy_[value.index()])
    return;
  Diagnostic *error = report_.error(op, OperandOf{op, i}, " is used after it was deleted");
  report_.note(error, trace_.op(deletedBy_[value.index()]), Named{value}, " is deleted here");
}

void StorageVerifier::reportStale(const Op &op, unsigned i, uint32_t root) {
  const Write &write = writes_[root];
  const Op &writer = trace_.op(write.writer);
  Diagnostic *error =
      report_.error(op, OperandOf{op, i}, " is a stale name: its storage was written since");
  report_.note(error, writer, "storage written here, through ", Named{write.through});
  const Op *renaming = write.newest ? findOp(trace_, trace_.definingOp(write.newest)) : nullptr;
  if (renaming && renaming->body() == op.body())
    report_.note(error, *renaming, "the newest name of the storage is ", Named{write.newest});
  else
    report_.note(error, writer, "the storage has no newer name in this body");
}

void StorageVerifier::erase(const Op &del, unsigned i) {
  ValueId value = del.operand(i);
  if (deletedBy_.empty())
    deletedBy_.resize(values_.size());
  OpId &deletedBy = deletedBy_[value.index()];
  if (deletedBy) {
    Diagnostic *error = report_.error(del, OperandOf{del, i}, " is deleted twice");
    report_.note(error, trace_.op(deletedBy), Named{value}, " is deleted here");
  } else if (trace_.isArgument(value) && del.body() != Trace::topBody()) {
    report_.error(del, OperandOf{del, i}, " is an argument of a nested body; its owner is outside");
  }
  deletedBy = del.id();
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

void StorageVerifier::define(const Op &op, bool isSound) {
  const OpSpec &spec = op.spec();
  llvm::ArrayRef<unsigned> writes = spec.writes;
  llvm::ArrayRef<ViewEffect> views = spec.views;
  if (spec.effects && isSound) {
    getEffects(trace_, op.id(), effects_);
    writes = effects_.writes;
    views = effects_.views;
  }
  if (!writes.empty())
    ++now_;
  for (unsigned i : writes)
    if (i < op.operands().size() && isUsable(op.operand(i)))
      write(op, i, views);
  for (ValueId result : op.results())
    values_[result.index()].madeAt = now_;
  for (ViewEffect view : views)
    if (view.operand < op.operands().size() && view.result < op.results().size())
      addView(op.result(view.result), op.operand(view.operand));
  if (spec.allResultsViewFirst && !op.operands().empty())
    for (ValueId result : op.results())
      addView(result, op.operand(0));
}

/// Returns true if two indices are known to name one element.
static bool isExpanded(const Type &type) {
  const TensorType *tensor = type.asTensor();
  if (!tensor || tensor->strides.size() != tensor->shape.size())
    return false;
  bool hasZeroStride = false;
  for (unsigned i = 0; i < tensor->rank(); ++i) {
    if (tensor->shape[i].isConstant(0))
      return false;
    hasZeroStride |= tensor->strides[i].isConstant(0) && !tensor->shape[i].isConstant(1);
  }
  return hasZeroStride;
}

void StorageVerifier::write(const Op &op, unsigned i, llvm::ArrayRef<ViewEffect> views) {
  ValueId written = op.operand(i);
  if (isExpanded(trace_.type(written))) {
    report_.noteDefinition(report_.error(op, OperandOf{op, i}, " is written but has type ",
                                         trace_.type(written),
                                         ", in which several indices share an element"),
                           written);
  }
  Write record{op.id(), written, ValueId()};
  for (ViewEffect view : views)
    if (view.operand == i && view.result < op.results().size())
      record.newest = op.result(view.result);
  if (!record.newest && op.spec().allResultsViewFirst && i == 0 && !op.results().empty())
    record.newest = op.result(0);

  if (writes_.empty())
    writes_.resize(values_.size());
  for (uint32_t root : roots(written.index())) {
    values_[root].lastWrite = now_;
    writes_[root] = record;
  }
}

/// What `body` returns at `i`; invalid if nothing usable.
ValueId StorageVerifier::returned(BodyId body, unsigned i) const {
  const Op *ret = findTerminator(trace_, body);
  if (!ret || i >= ret->operands().size() || !isUsable(ret->operand(i)))
    return {};
  return ret->operand(i);
}

void StorageVerifier::defineFromBodies(const Op &op, uint32_t before) {
  for (ValueId result : op.results())
    values_[result.index()].madeAt = now_;
  if (op.spec().bodies == BodyKind::While && op.bodies().size() == 2) {
    verifyCarried(op, before);
    defineFromLoop(op);
  } else {
    for (BodyId body : op.bodies())
      for (unsigned i = 0; i < op.results().size(); ++i)
        addView(op.result(i), returned(body, i));
  }
  // What was written inside and is returned has its newest name out here.
  if (now_ != before) {
    for (ValueId result : llvm::reverse(op.results()))
      for (uint32_t root : roots(result.index()))
        if (values_[root].lastWrite > before)
          writes_[root].newest = result;
  }
}

bool StorageVerifier::isWrittenSince(ValueId value, uint32_t before) const {
  return llvm::any_of(roots(value.index()),
                      [&](uint32_t root) { return values_[root].lastWrite > before; });
}

/// In the second iteration, arguments that the step returned one storage for are two names of it,
/// which the sweep over the first iteration did not see.
void StorageVerifier::verifyCarried(const Op &op, uint32_t before) {
  if (now_ == before)
    return;
  BodyId step = op.bodies()[1];
  llvm::ArrayRef<ValueId> arguments = trace_.arguments(step);
  llvm::SmallVector<std::pair<uint32_t, unsigned>, 8> carried; // root, argument
  for (unsigned i = 0; i < arguments.size(); ++i)
    if (ValueId value = returned(step, i))
      for (uint32_t root : roots(value.index()))
        carried.push_back({root, i});
  llvm::sort(carried);
  for (size_t k = 1; k < carried.size(); ++k) {
    auto [root, i] = carried[k - 1];
    ValueId first = arguments[i], second = arguments[carried[k].second];
    bool areNewlyOne =
        root == carried[k].first && values_[first.index()].root != values_[second.index()].root;
    if (!areNewlyOne || !(isWrittenSince(first, before) || isWrittenSince(second, before)))
      continue;
    const Op &ret = *findTerminator(trace_, step);
    Diagnostic *error = report_.error(
        ret, OperandOf{ret, carried[k].second}, " names the storage of operand #", i, "; '",
        op.name(), "' op writes what it carries as ", Named{first}, " or ", Named{second});
    report_.note(error, op, "the op is here");
  }
}

/// A result of a loop is the operand, if the loop runs no iteration, or what the step returned
/// last; that may view what was carried under another index in an earlier iteration. Values that
/// may change places this way get all each other's roots.
void StorageVerifier::defineFromLoop(const Op &op) {
  llvm::EquivalenceClasses<uint32_t> classes;
  auto addCarried = [&](ValueId value, std::optional<uint32_t> &first) {
    if (!isUsable(value))
      return;
    for (uint32_t root : roots(value.index())) {
      classes.unionSets(first.value_or(root), root);
      if (!first)
        first = root;
    }
  };
  llvm::SmallVector<std::optional<uint32_t>, 8> firstRoots(op.results().size());
  for (unsigned i = 0; i < op.results().size(); ++i) {
    if (i < op.operands().size())
      addCarried(op.operand(i), firstRoots[i]);
    addCarried(returned(op.bodies()[1], i), firstRoots[i]);
  }

  llvm::DenseMap<uint32_t, uint32_t> rootOfClass;
  for (unsigned i = 0; i < op.results().size(); ++i) {
    if (!firstRoots[i])
      continue;
    uint32_t result = op.result(i).index(), leader = classes.getLeaderValue(*firstRoots[i]);
    auto [known, isNew] = rootOfClass.try_emplace(leader, 0);
    if (isNew) {
      llvm::SmallVector<uint32_t, 8> members(classes.findLeader(leader), classes.member_end());
      llvm::sort(members);
      setRoots(result, members);
      known->second = values_[result].root;
    }
    values_[result].root = known->second;
  }
}
