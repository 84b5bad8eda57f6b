//===- RematerialisePlan.cpp - What to compute again ----------------------===//
//
// What is saved is a set of storages. To recompute a value is to walk from it through the ops that
// made it, up to what the backward has: arguments, values that are linked, and storages that are
// saved by another name. Ops that a walk meets are cloned, each once for all walks.
//
// Tags come first: one walk from all tagged values that are saved. It stops at values that are not
// tagged, whose storages are saved from then on.
//
// For a budget, storages are then taken out of the set one by one. Each has a price: the cost of
// the ops that its walk would add, for a byte that it frees. The cheapest goes, and prices that
// this may have changed are found anew: of storages whose walk ended at it, or met an op that is
// now cloned. The sequence does not depend on the budget, which only says where it ends; so a
// greater budget never takes more work. A second sequence leaves large storages to the end, which
// the first may drop where less would do; what takes less work to fit is the plan. The lesser of
// two figures that fall does.
//
// A storage is not dropped if a clone reads it long before the backward itself does, nor if its
// walk needs a clone from a far place: it would be computed early and held, which takes the memory
// that dropping it is to free. So of a long chain some links stay saved, and each part of the
// chain is computed again when the backward comes to it.
//
// Storage that is written is followed by names. A name is stale if its storage is written after it
// was made; it cannot be saved, and what reads it can only be computed again if it is, too.
//
//===----------------------------------------------------------------------===//

#include "RematerialisePlan.h"

#include "StorageWrites.h"

#include "rondo/ir/Liveness.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <set>
#include <tuple>

using namespace rondo;

std::string rondo::quotedName(const Trace &trace, ValueId value) {
  llvm::StringRef name = trace.name(value);
  return "%" + (name.empty() ? std::to_string(value.index()) : name.str());
}

//===----------------------------------------------------------------------===//
// Which ops can be computed again
//===----------------------------------------------------------------------===//

/// Why the random numbers of `op` cannot be drawn again; empty if they can, or there are none.
static std::string randomRefusal(const Trace &trace, const Op &op) {
  if (op.spec().random) {
    bool hasState =
        llvm::any_of(op.operands(), [&](ValueId v) { return v && trace.type(v).asRNGState(); });
    // An op that was not given the state that it may have draws nothing.
    bool mayDrawNothing = llvm::any_of(op.spec().operands, [](const OperandSpec &operand) {
      return operand.kind == OperandKind::RNGState && operand.arity == Arity::Optional;
    });
    if (!hasState && !mayDrawNothing)
      return "it draws random numbers without a state";
    const Attribute *offset = op.attribute("offset");
    if (hasState && !(offset && offset->asDim()))
      return "its offset cannot be kept: it has no attribute 'offset'";
  }
  for (BodyId body : op.bodies())
    for (OpId inner : trace.ops(body))
      if (std::string refusal = randomRefusal(trace, trace.op(inner)); !refusal.empty())
        return refusal;
  return "";
}

static std::string resourceRefusal(const ResourceEffect &resource) {
  switch (resource.kind) {
  case ResourceKind::Communicator:
    return ("it is a collective of group '" + resource.name + "'").str();
  case ResourceKind::Host:
    return "it waits for the device";
  case ResourceKind::Generator:
    return ((resource.writes ? "it changes generator '" : "it reads generator '") + resource.name +
            "'")
        .str();
  case ResourceKind::Custom:
    return ("it uses resource '" + resource.name + "'").str();
  case ResourceKind::Unknown:
    break;
  }
  return "its effects are unknown";
}

/// Why `op` cannot be computed again, whatever its operands are; empty if it can.
static std::string refusalOf(const Trace &trace, const Op &op) {
  Effects effects = getEffects(trace, op.id());
  if (effects.isUnknown())
    return "its effects are unknown";
  if (!effects.writes.empty())
    return "it writes " + quotedName(trace, op.operand(effects.writes.front())) + " in place";
  if (!effects.resources.empty())
    return resourceRefusal(effects.resources.front());
  return randomRefusal(trace, op);
}

//===----------------------------------------------------------------------===//
// The planner
//===----------------------------------------------------------------------===//

/// The value of `key` becomes at most `position`.
template <typename Key>
static void lower(llvm::DenseMap<Key, uint32_t> &positions, Key key, uint32_t position) {
  auto [it, isNew] = positions.try_emplace(key, position);
  it->second = std::min(it->second, position);
}

namespace {

using Names = llvm::SmallSetVector<ValueId, 2>;

/// What it takes to compute some values again.
struct Walk {
  bool isFeasible = true;
  uint32_t place = 0; ///< position in the backward of the first use
  double work = 0;
  llvm::SmallVector<OpId, 4> ops;          ///< that nothing computed again so far
  llvm::SmallVector<ValueId, 4> leaves;    ///< values that the backward has, or will
  llvm::SmallSetVector<ValueId, 2> stored; ///< roots that are saved for it
};

/// How far a walk goes.
enum class Reach : uint8_t {
  Tagged,    ///< through tagged values; others are saved, and what is refused is an error
  Automatic, ///< through all; what is refused is saved
};

/// A position that nothing has.
constexpr uint32_t never = UINT32_MAX;

/// In what order storages are dropped.
enum class DropOrder : uint8_t { ByPrice, LargeLast };

class Planner {
public:
  Planner(const TracePair &pair, llvm::function_ref<double(const Op &)> cost,
          DiagnosticList &diagnostics);

  RecomputePlan run(std::optional<int64_t> budget, DropOrder order) {
    plan_.report.before = point();
    recomputeTagged();
    plan_.report.curve.push_back(point());
    if (budget && !diagnostics_.hasErrors())
      recomputeFor(*budget, order);
    plan_.report.after = point();
    finish();
    return std::move(plan_);
  }

private:
  RecomputePoint point() const { return {savedBytes_, work_}; }
  bool isUsed(const SavedLink &link) const { return firstUse_[link.backward.index()] != never; }
  bool isTagged(ValueId value) const {
    return any(roots_.tags(value) & ValueTags::Recompute) && !trace_.isArgument(value) &&
           !trace_.type(value).asRNGState();
  }
  bool isView(ValueId value) const { return trace_.op(trace_.definingOp(value)).spec().isView(); }
  bool isStored(ValueId value, ValueId without = {}) const {
    return llvm::all_of(roots_.roots(value), [&](ValueId root) {
      return root != without && (trace_.isArgument(root) || stored_.count(root));
    });
  }
  bool isStale(ValueId value) const;
  bool hasInBackward(ValueId value, ValueId without);

  // Storages that are saved.
  void store(ValueId root);
  int64_t bytesOf(ValueId root) const;

  // Walks.
  Walk walk(llvm::ArrayRef<ValueId> wanted, ValueId without, Reach reach, uint32_t place);
  bool mustSave(ValueId value, Reach reach);
  const std::string &refusal(OpId op);
  double costOf(OpId op);
  void apply(const Walk &walk);
  void placeTagged(llvm::ArrayRef<SavedLink> wanted);
  /// Too far apart to compute something once for both.
  bool areFar(uint32_t a, uint32_t b) const { return std::max(a, b) - std::min(a, b) > window_; }
  void reportRefused(const Op &op, ValueId value);
  void reportStale(const Op *reader, ValueId value);

  // Tags.
  void recomputeTagged();

  // The budget.
  struct Candidate {
    Walk walk;
    int64_t freed = 0;
    double price = 0;
  };
  void recomputeFor(int64_t budget, DropOrder order);
  void rejectSymbols();
  bool mayDrop(ValueId root) const;
  void appraise(ValueId root);
  void withdraw(ValueId root);
  void drop(ValueId root);

  void finish();

  const Trace &trace_;
  const Trace &backward_;
  llvm::function_ref<double(const Op &)> cost_;
  DiagnosticList &diagnostics_;
  const StorageRoots roots_;
  const StorageWrites writes_;
  const llvm::SmallVector<SavedLink, 0> links_;
  RecomputePlan plan_;

  std::vector<uint32_t> position_;           ///< by op of the top body
  std::vector<uint32_t> firstUse_;           ///< by value of the backward: position, or never
  llvm::DenseSet<ValueId> linked_;           ///< values that have a link that stays
  llvm::DenseSet<ValueId> given_;            ///< roots that the caller gets
  llvm::DenseSet<ValueId> fixed_;            ///< roots that no budget drops
  llvm::DenseSet<ValueId> stored_;           ///< roots that are saved
  llvm::DenseMap<ValueId, Names> names_;     ///< by stored root: names that the backward uses
  llvm::DenseMap<OpId, uint32_t> cloned_;    ///< ops, and where in the backward
  llvm::DenseMap<ValueId, uint32_t> usedAt_; ///< by root: where the backward itself uses it first
  llvm::DenseMap<ValueId, uint32_t> readAt_; ///< by root: where clones do
  const uint32_t window_;
  llvm::DenseMap<OpId, std::string> refusals_;
  llvm::DenseMap<OpId, double> costs_;
  int64_t savedBytes_ = 0;
  double work_ = 0;

  llvm::DenseMap<ValueId, Candidate> candidates_;
  /// Large ones last, by price, of equal ones the first made.
  std::set<std::tuple<bool, double, ValueId>> queue_;
  int64_t largeBytes_ = INT64_MAX; ///< storages above it are large
  /// Candidates whose price depends on a root being stored, on an op not being cloned.
  llvm::DenseMap<ValueId, llvm::SmallSetVector<ValueId, 4>> leadsTo_;
  llvm::DenseMap<OpId, llvm::SmallSetVector<ValueId, 4>> passes_;
};

} // namespace

Planner::Planner(const TracePair &pair, llvm::function_ref<double(const Op &)> cost,
                 DiagnosticList &diagnostics)
    : trace_(pair.forward()), backward_(pair.backward()), cost_(cost), diagnostics_(diagnostics),
      roots_(trace_), writes_(trace_, roots_, ArgumentOverlap::NotWhereWritten),
      links_(pair.saved()), position_(trace_.numOps(), 0), firstUse_(backward_.numValues(), never),
      window_(std::max<uint32_t>(16, backward_.ops().size() / 16)) {
  for (uint32_t i = 0; i < trace_.ops().size(); ++i) {
    position_[trace_.ops()[i].index()] = i;
    plan_.report.forwardWork += costOf(trace_.ops()[i]);
  }
  for (uint32_t i = 0; i < backward_.ops().size(); ++i)
    for (ValueId operand : backward_.op(backward_.ops()[i]).operands())
      if (operand)
        firstUse_[operand.index()] = std::min(firstUse_[operand.index()], i);
  if (const Op *ret = trace_.terminator())
    for (unsigned i = 0; i < ret->operands().size(); ++i)
      if (ret->operand(i) && !trace_.savedReturn(i))
        given_.insert(roots_.roots(ret->operand(i)).begin(), roots_.roots(ret->operand(i)).end());

  StorageRoots backwardRoots(backward_);
  StorageWrites backwardWrites(backward_, backwardRoots, ArgumentOverlap::NotWhereWritten);
  for (const SavedLink &link : links_) {
    llvm::ArrayRef<ValueId> roots = roots_.roots(link.forward);
    linked_.insert(link.forward);
    for (ValueId root : roots) {
      store(root);
      if (isUsed(link)) {
        names_[root].insert(link.forward);
        lower(usedAt_, root, firstUse_[link.backward.index()]);
      }
      if (roots.size() > 1 || backwardWrites.isWritten(link.backward))
        fixed_.insert(root);
    }
  }
}

/// Its storage was written after the name was made, so that it cannot be saved.
bool Planner::isStale(ValueId value) const {
  if (trace_.isArgument(value))
    return writes_.lastWriteBefore(value, UINT32_MAX) != 0;
  return writes_.isWrittenAfter(value, position_[trace_.definingOp(value).index()]);
}

/// Can the backward have `value` without computing anything? `without` counts as not stored.
bool Planner::hasInBackward(ValueId value, ValueId without) {
  if (trace_.isArgument(value))
    return true;
  if (!isStored(value, without) || isStale(value))
    return false;
  // A view of what is stored is made again, but for one that is there; and that an op which cannot
  // run again wrote to what is stored is no reason not to refuse it.
  return linked_.count(value) || (!isView(value) && refusal(trace_.definingOp(value)).empty());
}

//===----------------------------------------------------------------------===//
// Storages that are saved
//===----------------------------------------------------------------------===//

/// Bytes that saving the storage takes.
int64_t Planner::bytesOf(ValueId root) const {
  if (trace_.isArgument(root) || given_.count(root))
    return 0;
  return storageBytes(trace_.type(root)).value_or(0);
}

void Planner::store(ValueId root) {
  if (!trace_.isArgument(root) && stored_.insert(root).second)
    savedBytes_ += bytesOf(root);
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

const std::string &Planner::refusal(OpId op) {
  auto [known, isNew] = refusals_.try_emplace(op);
  if (isNew)
    known->second = refusalOf(trace_, trace_.op(op));
  return known->second;
}

double Planner::costOf(OpId op) {
  auto [known, isNew] = costs_.try_emplace(op, 0);
  if (isNew)
    known->second = cost_(trace_.op(op));
  return known->second;
}

/// Must `value`, which the backward does not have, be saved rather than computed again?
bool Planner::mustSave(ValueId value, Reach reach) {
  const Op &op = trace_.op(trace_.definingOp(value));
  if (trace_.type(value).asRNGState() || !refusal(op.id()).empty())
    return true;
  if (reach == Reach::Tagged)
    return !isTagged(value) && !op.spec().isView() && !op.operands().empty();
  return llvm::any_of(op.operands(), [&](ValueId operand) {
    return operand && (isStale(operand) || llvm::any_of(roots_.roots(operand), [&](ValueId root) {
                         return fixed_.count(root);
                       }));
  });
}

/// Walks from `wanted`, first used at `place`, to what the backward has. The storage rooted at
/// `without` counts as not saved.
Walk Planner::walk(llvm::ArrayRef<ValueId> wanted, ValueId without, Reach reach, uint32_t place) {
  Walk result;
  result.place = place;
  llvm::DenseSet<ValueId> seen;
  llvm::DenseSet<OpId> met;
  llvm::SmallVector<std::pair<ValueId, const Op *>, 16> worklist; // and what reads it
  for (ValueId value : llvm::reverse(wanted))
    worklist.push_back({value, nullptr});
  while (!worklist.empty() && result.isFeasible) {
    auto [value, reader] = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    bool isHad = hasInBackward(value, without);
    if (!isHad)
      if (auto clone = cloned_.find(trace_.definingOp(value)); clone != cloned_.end()) {
        result.isFeasible &= !areFar(clone->second, place);
        continue;
      }
    if (isHad || mustSave(value, reach)) {
      bool isRefused = !isHad && reach == Reach::Tagged && isTagged(value);
      if (isRefused) {
        reportRefused(trace_.op(trace_.definingOp(value)), value);
      } else if (isStale(value)) {
        if (reach == Reach::Tagged)
          reportStale(reader, value);
        result.isFeasible = reach == Reach::Tagged;
      }
      result.leaves.push_back(value);
      for (ValueId root : roots_.roots(value)) {
        result.isFeasible &= root != without;
        if (!trace_.isArgument(root) && !stored_.count(root))
          result.stored.insert(root);
      }
      continue;
    }
    OpId op = trace_.definingOp(value);
    if (!met.insert(op).second)
      continue;
    result.ops.push_back(op);
    result.work += costOf(op);
    for (ValueId operand : llvm::reverse(trace_.op(op).operands()))
      if (operand)
        worklist.push_back({operand, &trace_.op(op)});
  }
  return result;
}

/// What `walk` computes is computed again from now on.
void Planner::apply(const Walk &walk) {
  for (OpId op : walk.ops)
    lower(cloned_, op, walk.place);
  work_ += walk.work;
  for (ValueId root : walk.stored)
    store(root);
  for (ValueId leaf : walk.leaves)
    for (ValueId root : roots_.roots(leaf)) {
      names_[root].insert(leaf);
      lower(readAt_, root, walk.place);
    }
}

void Planner::reportRefused(const Op &op, ValueId value) {
  diagnostics_.error(locationOf(trace_, op.id()),
                     "'" + op.name() + "' op cannot be computed again, but " +
                         quotedName(trace_, value) +
                         " is to be recomputed for the backward: " + refusal(op.id()));
}

/// `value`, which `reader` reads, is not what it was then.
void Planner::reportStale(const Op *reader, ValueId value) {
  const Op &op = reader ? *reader : trace_.op(trace_.definingOp(value));
  Diagnostic &error =
      diagnostics_.error(locationOf(trace_, op.id()),
                         "'" + op.name() + "' op cannot be computed again for the backward: " +
                             quotedName(trace_, value) + " is written after it");
  for (OpId id : trace_.ops()) {
    Effects effects = getEffects(trace_, id);
    for (unsigned i : effects.writes)
      if (position_[id.index()] > position_[op.id().index()] &&
          roots_.mayAlias(trace_.op(id).operand(i), value)) {
        error.note(locationOf(trace_, id), "written here");
        return;
      }
  }
}

//===----------------------------------------------------------------------===//
// Tags
//===----------------------------------------------------------------------===//

void Planner::recomputeTagged() {
  llvm::SmallVector<ValueId, 16> wanted;
  llvm::SmallVector<SavedLink, 16> tagged;
  for (const SavedLink &link : links_) {
    if (!isTagged(link.forward))
      continue;
    linked_.erase(link.forward);
    tagged.push_back(link);
    if (isUsed(link))
      wanted.push_back(link.forward);
  }
  if (tagged.empty())
    return;
  stored_.clear();
  names_.clear();
  savedBytes_ = 0;
  for (const SavedLink &link : links_)
    if (linked_.count(link.forward))
      for (ValueId root : roots_.roots(link.forward)) {
        store(root);
        if (isUsed(link))
          names_[root].insert(link.forward);
      }
  apply(walk(wanted, ValueId(), Reach::Tagged, never));
  placeTagged(tagged);
}

/// Finds where clones and what they read are used first.
void Planner::placeTagged(llvm::ArrayRef<SavedLink> wanted) {
  for (const SavedLink &link : wanted)
    if (auto clone = cloned_.find(trace_.definingOp(link.forward)); clone != cloned_.end())
      clone->second = std::min(clone->second, firstUse_[link.backward.index()]);
  for (OpId id : llvm::reverse(trace_.ops())) {
    auto clone = cloned_.find(id);
    if (clone == cloned_.end())
      continue;
    for (ValueId operand : trace_.op(id).operands()) {
      if (!operand)
        continue;
      if (auto producer = cloned_.find(trace_.definingOp(operand)); producer != cloned_.end())
        producer->second = std::min(producer->second, clone->second);
      for (ValueId root : roots_.roots(operand))
        lower(readAt_, root, clone->second);
    }
  }
}

//===----------------------------------------------------------------------===//
// The budget
//===----------------------------------------------------------------------===//

void Planner::rejectSymbols() {
  llvm::SmallVector<ValueId, 16> roots(stored_.begin(), stored_.end());
  llvm::sort(roots);
  for (ValueId root : roots)
    if (!storageBytes(trace_.type(root)))
      diagnostics_.error(locationOf(trace_, trace_.definingOp(root)),
                         "a budget needs sizes, but " + quotedName(trace_, root) +
                             ", which is saved, has type " + trace_.type(root).str() +
                             "; specialise before");
}

bool Planner::mayDrop(ValueId root) const {
  if (!stored_.count(root) || bytesOf(root) == 0 || fixed_.count(root))
    return false;
  auto used = usedAt_.find(root), read = readAt_.find(root);
  return used == usedAt_.end() || read == readAt_.end() || read->second >= used->second ||
         !areFar(used->second, read->second);
}

/// Finds what dropping `root` takes, and puts it into the queue if that frees anything.
void Planner::appraise(ValueId root) {
  withdraw(root);
  if (!mayDrop(root))
    return;
  auto names = names_.find(root);
  Candidate candidate;
  if (names != names_.end()) {
    auto used = usedAt_.find(root), read = readAt_.find(root);
    uint32_t place = std::min(used == usedAt_.end() ? never : used->second,
                              read == readAt_.end() ? never : read->second);
    candidate.walk = walk(names->second.getArrayRef(), root, Reach::Automatic, place);
  }
  candidate.freed = bytesOf(root);
  for (ValueId stored : candidate.walk.stored)
    candidate.freed -= bytesOf(stored);
  // Also of one that is not feasible now: what it depends on may change.
  for (ValueId leaf : candidate.walk.leaves)
    for (ValueId leafRoot : roots_.roots(leaf))
      leadsTo_[leafRoot].insert(root);
  for (OpId op : candidate.walk.ops)
    passes_[op].insert(root);
  if (!candidate.walk.isFeasible || candidate.freed <= 0)
    return;
  candidate.price = candidate.walk.work / double(candidate.freed);
  queue_.insert({bytesOf(root) > largeBytes_, candidate.price, root});
  candidates_[root] = std::move(candidate);
}

void Planner::withdraw(ValueId root) {
  auto it = candidates_.find(root);
  if (it == candidates_.end())
    return;
  queue_.erase({bytesOf(root) > largeBytes_, it->second.price, root});
  candidates_.erase(it);
}

/// Recomputes what is stored in `root`, and appraises anew what that may have changed.
void Planner::drop(ValueId root) {
  Walk walk = std::move(candidates_.find(root)->second.walk);
  withdraw(root);
  stored_.erase(root);
  savedBytes_ -= bytesOf(root);
  for (ValueId name : names_.lookup(root))
    linked_.erase(name);
  names_.erase(root);
  apply(walk);

  std::set<ValueId> changed;
  auto take = [&](const llvm::SmallSetVector<ValueId, 4> &roots) {
    changed.insert(roots.begin(), roots.end());
  };
  take(leadsTo_.lookup(root));
  for (OpId op : walk.ops)
    take(passes_.lookup(op));
  for (ValueId stored : walk.stored)
    take(leadsTo_.lookup(stored));
  for (ValueId leaf : walk.leaves)
    changed.insert(roots_.roots(leaf).begin(), roots_.roots(leaf).end());
  for (ValueId other : changed)
    appraise(other);
}

void Planner::recomputeFor(int64_t budget, DropOrder order) {
  rejectSymbols();
  // An op with unknown effects may write whatever the backward computes from.
  if (llvm::any_of(backward_.ops(), [&](OpId op) { return getEffects(backward_, op).isUnknown(); }))
    return;
  if (order == DropOrder::LargeLast)
    largeBytes_ = savedBytes_ / 8;
  if (savedBytes_ > budget)
    for (ValueId root : llvm::SmallVector<ValueId, 16>(stored_.begin(), stored_.end()))
      appraise(root);
  while (savedBytes_ > budget && !queue_.empty()) {
    drop(std::get<ValueId>(*queue_.begin()));
    plan_.report.curve.push_back(point());
  }
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

void Planner::finish() {
  for (const SavedLink &link : links_) {
    if (trace_.isArgument(link.forward) || (linked_.count(link.forward) && isStored(link.forward)))
      continue;
    plan_.dropped.push_back(link);
    plan_.report.values.push_back({trace_.name(link.forward).str(), isTagged(link.forward)});
  }
  // An op that was met early on may have become unnecessary: its result was saved for another.
  llvm::DenseSet<ValueId> needed;
  for (const SavedLink &link : plan_.dropped)
    if (isUsed(link))
      needed.insert(link.forward);
  llvm::SmallSetVector<ValueId, 16> leaves;
  for (OpId id : llvm::reverse(trace_.ops())) {
    const Op &op = trace_.op(id);
    if (llvm::none_of(op.results(), [&](ValueId v) { return needed.count(v); }))
      continue;
    plan_.ops.push_back(id);
    for (ValueId operand : llvm::reverse(op.operands()))
      if (operand &&
          (hasInBackward(operand, ValueId()) || !cloned_.count(trace_.definingOp(operand))))
        leaves.insert(operand);
      else if (operand)
        needed.insert(operand);
  }
  std::reverse(plan_.ops.begin(), plan_.ops.end());
  plan_.leaves.assign(leaves.rbegin(), leaves.rend());
  plan_.report.numOps = plan_.ops.size();
}

RecomputePlan rondo::planRecomputation(const TracePair &pair, std::optional<int64_t> budget,
                                       llvm::function_ref<double(const Op &)> cost,
                                       DiagnosticList &diagnostics) {
  size_t numErrors = diagnostics.numErrors();
  RecomputePlan plan = Planner(pair, cost, diagnostics).run(budget, DropOrder::ByPrice);
  if (!budget || plan.report.curve.size() == 1 || diagnostics.numErrors() != numErrors)
    return plan;
  RecomputePlan other = Planner(pair, cost, diagnostics).run(budget, DropOrder::LargeLast);
  auto rank = [&](const RecomputePlan &of) { // beyond the budget, then work
    return std::pair(std::max(of.report.after.savedBytes - *budget, int64_t(0)),
                     of.report.after.work);
  };
  return rank(other) < rank(plan) ? std::move(other) : std::move(plan);
}
