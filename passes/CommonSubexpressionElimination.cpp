//===- CommonSubexpressionElimination.cpp - Computes nothing twice --------===//
//
// An op that is equal to an earlier op of the same body, in spec, operands, attributes, result
// types and tags and claim, is removed; its uses get the first one's results. A nested body is a
// scope of its own: bodies are isolated.
//
//   %a: f32[8] = exp(%x)                          %a: f32[8] = exp(%x)
//   %b: f32[8] = exp(%x)                          %c: f32[8] = mul(%a, %a)
//   %c: f32[8] = mul(%a, %b)            ==>       return(%c, %a saved #0)
//   return(%c, %a saved #0, %b saved #1)
//
// and in the backward %b becomes %a: values that are saved twice and only read there are saved
// once.
//
// Only pure ops are merged: not random ones, none with bodies, none that writes or reads anything
// but its operands. Beyond that, two equal ops stay apart
//
//   - if a storage that one of their operands names may be written between them: the key of an op
//     holds the last write to its operands' storages (StorageWrites.h);
//   - if a fresh result of one is written in place, or given to an op with unknown effects: one
//     would see what is done to the other;
//   - if fresh results of both leave the body, unless both only to be saved and read: the caller,
//     who got two tensors of its own, may write one of them.
//
//===----------------------------------------------------------------------===//

#include "StorageWrites.h"

#include "rondo/passes/Passes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

using namespace rondo;

using SavedIds = llvm::DenseSet<SavedId>;

//===----------------------------------------------------------------------===//
// Equality of ops
//===----------------------------------------------------------------------===//

/// Operands, with those of a commutative op in a fixed order.
static llvm::SmallVector<ValueId, 4> canonicalOperands(const Op &op) {
  llvm::SmallVector<ValueId, 4> operands(op.operands().begin(), op.operands().end());
  if (op.spec().commutative && operands.size() >= 2 && operands[1] < operands[0])
    std::swap(operands[0], operands[1]);
  return operands;
}

/// Attributes that differ from their default: one that is written out is the same as one that is
/// left out.
static llvm::SmallVector<const NamedAttribute *, 4> significantAttributes(const Op &op) {
  llvm::SmallVector<const NamedAttribute *, 4> attributes;
  for (const NamedAttribute &attribute : op.attributes()) {
    const AttributeSpec *spec = op.spec().findAttribute(attribute.name);
    if (!spec || spec->defaultValue.isNone() || !(spec->defaultValue == attribute.value))
      attributes.push_back(&attribute);
  }
  return attributes;
}

static llvm::hash_code hashOf(const Op &op, uint32_t lastWrite) {
  llvm::hash_code hash = llvm::hash_combine(&op.spec(), lastWrite);
  for (ValueId operand : canonicalOperands(op))
    hash = llvm::hash_combine(hash, operand);
  for (const NamedAttribute *attribute : significantAttributes(op))
    hash = llvm::hash_combine(hash, attribute->name, attribute->value);
  return hash;
}

static bool haveEqualClaims(const Op &a, const Op &b) {
  return a.claim() == b.claim() || (a.claim() && b.claim() && *a.claim() == *b.claim());
}

/// Returns true if `a` and `b` compute the same, given the same memory.
static bool areEqual(const Trace &trace, const Op &a, const Op &b) {
  auto sameValue = [&](ValueId v, ValueId w) {
    return &trace.type(v) == &trace.type(w) && trace.tags(v) == trace.tags(w);
  };
  auto sameAttribute = [](const NamedAttribute *p, const NamedAttribute *q) {
    return p->name == q->name && p->value == q->value;
  };
  auto equal = [](llvm::ArrayRef<ValueId> p, llvm::ArrayRef<ValueId> q, auto same) {
    return std::equal(p.begin(), p.end(), q.begin(), q.end(), same);
  };
  auto p = significantAttributes(a), q = significantAttributes(b);
  return &a.spec() == &b.spec() && canonicalOperands(a) == canonicalOperands(b) &&
         std::equal(p.begin(), p.end(), q.begin(), q.end(), sameAttribute) &&
         equal(a.results(), b.results(), sameValue) && haveEqualClaims(a, b);
}

//===----------------------------------------------------------------------===//
// One trace
//===----------------------------------------------------------------------===//

namespace {

/// How a storage leaves its body.
enum Exposure : uint8_t {
  Hidden = 0,
  SavedOnly = 1, ///< saved for the backward, which only reads it
  Given = 2,     ///< to the caller, to an outer body, or to a backward that may write or return it
};

/// Merges the equal ops of one trace.
class OpMerger {
public:
  /// `onlyRead`: links whose value the backward only reads; empty for a backward.
  OpMerger(Trace &trace, const SavedIds &onlyRead)
      : trace_(trace), roots_(trace), writes_(trace, roots_), exposure_(trace.numValues(), Hidden),
        mergedInto_(trace.numValues()), lastWrite_(trace.numOps(), 0) {
    expose(Trace::topBody(), onlyRead);
  }

  /// Returns true if anything was merged.
  bool run() {
    mergeIn(Trace::topBody());
    for (OpId op : merged_)
      trace_.eraseOp(op);
    return !merged_.empty();
  }

private:
  /// Ops with one hash; of those that are equal, only the first.
  using Leaders = llvm::SmallVector<OpId, 1>;

  void expose(BodyId body, const SavedIds &onlyRead) {
    for (OpId id : trace_.ops(body)) {
      const Op &op = trace_.op(id);
      for (BodyId nested : op.bodies())
        expose(nested, onlyRead);
      if (!op.spec().terminator)
        continue;
      for (unsigned i = 0; i < op.operands().size(); ++i) {
        if (!op.operand(i))
          continue;
        SavedId link = body == Trace::topBody() ? trace_.savedReturn(i) : SavedId();
        for (ValueId root : roots_.roots(op.operand(i)))
          exposure_[root.index()] |= link && onlyRead.count(link) ? SavedOnly : Given;
      }
    }
  }

  bool isFresh(ValueId result) const { return llvm::is_contained(roots_.roots(result), result); }

  /// Returns true if `op` may be merged with an equal one at all.
  bool isCandidate(const Op &op) {
    const OpSpec &spec = op.spec();
    if (op.results().empty() || spec.random || spec.opaque || spec.terminator ||
        spec.bodies != BodyKind::None)
      return false;
    getEffects(trace_, op.id(), effects_);
    return effects_.isPure() && llvm::none_of(op.results(), [&](ValueId result) {
             return isFresh(result) && writes_.isWritten(result);
           });
  }

  uint32_t lastWriteToOperands(const Op &op, uint32_t position) const {
    uint32_t last = 0;
    for (ValueId operand : op.operands())
      if (operand)
        last = std::max(last, writes_.lastWriteBefore(operand, position));
    return last;
  }

  /// Returns true if one storage may stand for both, where fresh results of both leave the body.
  bool mayShareStorage(const Op &first, const Op &second) const {
    for (unsigned i = 0; i < first.results().size(); ++i) {
      if (!isFresh(first.result(i)))
        continue;
      uint8_t a = exposure_[first.result(i).index()], b = exposure_[second.result(i).index()];
      if (a && b && ((a | b) & Given))
        return false;
    }
    return true;
  }

  /// Returns the first op that `op` may be merged into; records it as such if there is none.
  const Op *findLeader(const Op &op, llvm::DenseMap<size_t, Leaders> &leaders, uint32_t position) {
    if (!isCandidate(op))
      return nullptr;
    lastWrite_[op.id().index()] = lastWriteToOperands(op, position);
    // Two values of size_t are DenseMap's own.
    size_t hash = size_t(hashOf(op, lastWrite_[op.id().index()])) >> 2;
    Leaders &candidates = leaders[hash];
    for (OpId id : candidates)
      if (lastWrite_[id.index()] == lastWrite_[op.id().index()] &&
          areEqual(trace_, trace_.op(id), op))
        return mayShareStorage(trace_.op(id), op) ? &trace_.op(id) : nullptr;
    candidates.push_back(op.id());
    return nullptr;
  }

  void replaceOperands(const Op &op) {
    for (unsigned i = 0; i < op.operands().size(); ++i)
      if (ValueId operand = op.operand(i); operand && mergedInto_[operand.index()])
        trace_.setOperand(op.id(), i, mergedInto_[operand.index()]);
  }

  void merge(const Op &op, const Op &leader) {
    for (unsigned i = 0; i < op.results().size(); ++i) {
      mergedInto_[op.result(i).index()] = leader.result(i);
      exposure_[leader.result(i).index()] |= exposure_[op.result(i).index()];
    }
    merged_.push_back(op.id());
  }

  void mergeIn(BodyId body) {
    llvm::DenseMap<size_t, Leaders> leaders;
    std::vector<OpId> kept;
    llvm::ArrayRef<OpId> order = trace_.ops(body);
    kept.reserve(order.size());
    for (uint32_t position = 0; position < order.size(); ++position) {
      const Op &op = trace_.op(order[position]);
      replaceOperands(op);
      for (BodyId nested : op.bodies())
        mergeIn(nested);
      if (const Op *leader = findLeader(op, leaders, position))
        merge(op, *leader);
      else
        kept.push_back(op.id());
    }
    if (kept.size() != order.size())
      trace_.setOps(body, std::move(kept));
  }

  Trace &trace_;
  StorageRoots roots_;
  StorageWrites writes_;
  std::vector<uint8_t> exposure_;   // by root: Exposure flags
  std::vector<ValueId> mergedInto_; // by value
  std::vector<uint32_t> lastWrite_; // by op: the last write to what it was given
  std::vector<OpId> merged_;
  Effects effects_; // scratch
};

} // namespace

//===----------------------------------------------------------------------===//
// Saved links
//===----------------------------------------------------------------------===//

/// The links whose value the backward reads and views, but neither writes nor returns.
static SavedIds findOnlyRead(const TracePair &pair) {
  SavedIds ids;
  if (!pair.hasBackward())
    return ids;
  const Trace &backward = pair.backward();
  StorageRoots roots(backward);
  StorageWrites writes(backward, roots);
  for (unsigned i = 0; i < backward.arguments().size(); ++i) {
    ValueId argument = backward.arguments()[i];
    if (SavedId id = backward.savedArgument(i);
        id && !writes.isWritten(argument) && !writes.isReturned(argument))
      ids.insert(id);
  }
  return ids;
}

/// Links of one value that is only read become one. Returns true if there were any.
static bool mergeLinks(TracePair &pair, const SavedIds &onlyRead) {
  llvm::DenseMap<ValueId, ValueId> firstArgument, replacements;
  llvm::SmallVector<SavedId, 8> merged;
  for (const SavedLink &link : pair.saved()) {
    if (!onlyRead.count(link.id))
      continue;
    auto [first, isFirst] = firstArgument.try_emplace(link.forward, link.backward);
    if (isFirst || pair.backward().tags(first->second) != pair.backward().tags(link.backward))
      continue;
    replacements[link.backward] = first->second;
    merged.push_back(link.id);
  }
  if (merged.empty())
    return false;
  pair.backward().replaceUses(Trace::topBody(), replacements);
  for (SavedId id : llvm::reverse(merged))
    pair.dropSaved(id);
  return true;
}

namespace {

class CommonSubexpressionElimination : public PairPass {
public:
  llvm::StringRef name() const override { return "cse"; }
  PassProperties properties() const override {
    PassProperties properties;
    properties.forbids = TraceProperties::HasDels; // a merged value would be used after its `del`
    return properties;
  }

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &) override {
    SavedIds onlyRead = findOnlyRead(pair);
    bool isChanged = OpMerger(pair.forward(), onlyRead).run();
    if (pair.hasBackward()) {
      isChanged |= mergeLinks(pair, onlyRead);
      isChanged |= OpMerger(pair.backward(), {}).run();
    }
    return isChanged ? PassResult::Changed : PassResult::Unchanged;
  }
};

} // namespace

std::unique_ptr<Pass> rondo::createCommonSubexpressionEliminationPass() {
  return std::make_unique<CommonSubexpressionElimination>();
}
