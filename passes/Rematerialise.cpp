//===- Rematerialise.cpp - Computing again rather than saving -------------===//
//
//   forward @f(%x: f32[8], %w: f32[8]) {          forward @f(%x: f32[8], %w: f32[8]) {
//     %a: f32[8] recompute = mul(%x, %w)            %a: f32[8] recompute = mul(%x, %w)
//     %b: f32[8] recompute = exp(%a)                %b: f32[8] recompute = exp(%a)
//     %y: f32[8] = neg(%b)                          %y: f32[8] = neg(%b)
//     return(%y, %b saved #0, %w saved #1)          return(%y, %w saved #1, %x saved #2)
//   }                                             }
//   backward @b(%b: f32[8] saved #0,      ==>     backward @b(%w: f32[8] saved #1, %g: f32[8],
//               %w: f32[8] saved #1,                          %x: f32[8] saved #2) {
//               %g: f32[8]) {                       %h: f32[8] = mul(%g, %w)
//     %h: f32[8] = mul(%g, %w)                      %a: f32[8] = mul(%x, %w)
//     %r: f32[8] = mul(%h, %b)                      %b: f32[8] = exp(%a)
//     return(%r)                                    %r: f32[8] = mul(%h, %b)
//   }                                               return(%r)
//                                                 }
//
// First `checkpoint` ops are dissolved into tags. What one gives to the rest of the forward, or to
// the caller, is not tagged: of a chain of checkpoints the values between them stay saved, so that
// each is computed again by itself, when the backward comes to it. Then it is planned what to
// compute again (RematerialisePlan.h), and last the plan is carried out: the backward gets what
// the plan starts from, then the clones, and loses the links that they take the place of.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/Rematerialise.h"

#include "RematerialisePlan.h"
#include "StorageWrites.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/RegionEdit.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

/// By value of the top body: is it used by something else than being saved?
static std::vector<bool> findNeeded(const Trace &trace) {
  std::vector<bool> isNeeded(trace.numValues(), false);
  for (OpId id : trace.ops()) {
    const Op &op = trace.op(id);
    for (unsigned i = 0; i < op.operands().size(); ++i)
      if (op.operand(i) && !(op.spec().terminator && trace.savedReturn(i)))
        isNeeded[op.operand(i).index()] = true;
  }
  return isNeeded;
}

/// Tags what the body of `checkpoint` makes, but for storage that is needed outside. A tag of a
/// result holds for the value inside.
static void tagBody(Trace &trace, const Op &checkpoint, const StorageRoots &roots,
                    const std::vector<bool> &isNeeded) {
  BodyId body = checkpoint.bodies().front();
  const Op *ret = trace.terminator(body);
  llvm::DenseSet<ValueId> needed, tagged;
  for (unsigned i = 0; ret && i < checkpoint.results().size(); ++i) {
    ValueId result = checkpoint.result(i), value = ret->operand(i);
    if (any(trace.tags(result) & ValueTags::Recompute))
      tagged.insert(value);
    else if (isNeeded[result.index()])
      needed.insert(roots.roots(value).begin(), roots.roots(value).end());
  }
  for (OpId op : trace.ops(body))
    for (ValueId result : trace.op(op).results())
      if (tagged.count(result) ||
          llvm::none_of(roots.roots(result), [&](ValueId root) { return needed.count(root); }))
        trace.setTags(result, trace.tags(result) | ValueTags::Recompute);
}

/// Puts what `checkpoint` ops of the top body hold in their place, tagged; those that this brings
/// to the top, too. Returns true if there were any.
static bool dissolveCheckpoints(Trace &trace) {
  bool isChanged = false;
  for (;;) {
    std::vector<OpId> checkpoints;
    for (OpId op : trace.ops())
      if (trace.op(op).name() == core::checkpointOp)
        checkpoints.push_back(op);
    if (checkpoints.empty())
      return isChanged;
    isChanged = true;
    StorageRoots roots(trace);
    std::vector<bool> isNeeded = findNeeded(trace);
    for (OpId op : checkpoints)
      tagBody(trace, trace.op(op), roots, isNeeded);
    for (OpId op : checkpoints)
      inlineRegion(trace, op);
  }
}

//===----------------------------------------------------------------------===//
// Carrying out the plan
//===----------------------------------------------------------------------===//

using ValueMap = llvm::DenseMap<ValueId, ValueId>;

/// A detached copy in `to` of `op` of `from`, whose results have no names and no tags. Operands are
/// looked up in `values`, which gets the results.
static OpId cloneOp(const Trace &from, const Op &op, Trace &to, ValueMap &values) {
  OpInit init;
  init.spec = &op.spec();
  for (ValueId operand : op.operands())
    init.operands.push_back(operand ? values.lookup(operand) : ValueId());
  for (ValueId result : op.results())
    init.resultTypes.push_back(from.type(result));
  for (const NamedAttribute &attribute : op.attributes())
    init.attributes.push_back({attribute.name, attribute.value});
  init.numBodies = op.bodies().size();
  OpId copy = to.createOp(std::move(init));
  to.copyAnnotations(copy, from, op.id());
  for (unsigned i = 0; i < op.results().size(); ++i)
    values.try_emplace(op.result(i), to.op(copy).result(i));
  for (unsigned i = 0; i < op.bodies().size(); ++i) {
    BodyId body = op.bodies()[i], copied = to.op(copy).bodies()[i];
    for (ValueId argument : from.arguments(body))
      values[argument] =
          to.addArgument(copied, from.type(argument), from.name(argument), from.tags(argument));
    for (OpId inner : from.ops(body)) {
      OpId innerCopy = cloneOp(from, from.op(inner), to, values);
      to.append(copied, innerCopy);
      for (unsigned k = 0; k < from.op(inner).results().size(); ++k)
        to.setName(to.op(innerCopy).result(k), from.name(from.op(inner).result(k)));
    }
  }
  return copy;
}

namespace {

class Rematerialiser {
public:
  Rematerialiser(TracePair &pair, const RecomputePlan &plan)
      : pair_(pair), forward_(pair.forward()), backward_(pair.backward()), plan_(plan) {}

  void run() {
    collectNames();
    linkLeaves();
    for (OpId op : plan_.ops)
      clones_.push_back(cloneOp(forward_, forward_.op(op), backward_, values_));
    placeClones();
    dropLinks();
    nameClones();
  }

  /// Reports clones that would read what the backward has written by then.
  void verify(DiagnosticList &diagnostics) const;

private:
  void collectNames();
  std::string uniqueName(llvm::StringRef base);
  void linkLeaves();
  std::vector<uint32_t> findPlaces() const;
  void placeClones();
  void dropLinks();
  void nameClones();

  TracePair &pair_;
  Trace &forward_;
  Trace &backward_;
  const RecomputePlan &plan_;
  llvm::StringSet<> names_; ///< of the backward
  ValueMap values_;         ///< of the forward, in the backward
  std::vector<OpId> clones_;
};

} // namespace

void Rematerialiser::collectNames() {
  for (ValueId argument : backward_.arguments())
    names_.insert(backward_.name(argument));
  for (OpId op : backward_.ops())
    for (ValueId result : backward_.op(op).results())
      names_.insert(backward_.name(result));
}

std::string Rematerialiser::uniqueName(llvm::StringRef base) {
  std::string name = base.str();
  for (unsigned i = 1; !name.empty() && !names_.insert(name).second; ++i)
    name = (base + "_" + llvm::Twine(i)).str();
  return name;
}

void Rematerialiser::linkLeaves() {
  llvm::DenseSet<SavedId> dropped;
  for (const SavedLink &link : plan_.dropped)
    dropped.insert(link.id);
  for (const SavedLink &link : pair_.saved())
    if (!dropped.count(link.id))
      values_.try_emplace(link.forward, link.backward);
  for (ValueId leaf : plan_.leaves) {
    if (values_.count(leaf))
      continue;
    pair_.addSaved(leaf, uniqueName(forward_.name(leaf)));
    ValueId argument = backward_.arguments().back();
    values_[leaf] = argument;
    if (forward_.isArgument(leaf)) {
      backward_.setTags(argument, forward_.tags(leaf) & staticTags);
      backward_.setValuePath(argument, forward_.valuePath(leaf));
    }
  }
}

/// For every clone the position in the backward of what uses it first.
std::vector<uint32_t> Rematerialiser::findPlaces() const {
  llvm::DenseMap<ValueId, unsigned> cloneOf;
  for (unsigned i = 0; i < clones_.size(); ++i)
    for (ValueId result : backward_.op(clones_[i]).results())
      cloneOf[result] = i;
  for (const SavedLink &link : plan_.dropped)
    if (auto it = cloneOf.find(values_.lookup(link.forward)); it != cloneOf.end())
      cloneOf[link.backward] = it->second;

  std::vector<uint32_t> places(clones_.size(), UINT32_MAX);
  auto use = [&](OpId op, uint32_t position) {
    for (ValueId operand : backward_.op(op).operands())
      if (auto it = cloneOf.find(operand); operand && it != cloneOf.end())
        places[it->second] = std::min(places[it->second], position);
  };
  for (uint32_t position = 0; position < backward_.ops().size(); ++position)
    use(backward_.ops()[position], position);
  for (unsigned i = clones_.size(); i-- > 0;)
    use(clones_[i], places[i]);
  return places;
}

void Rematerialiser::placeClones() {
  std::vector<uint32_t> places = findPlaces();
  std::vector<unsigned> sorted(clones_.size()); // those at one place in the forward's order
  for (unsigned i = 0; i < sorted.size(); ++i)
    sorted[i] = i;
  llvm::stable_sort(sorted, [&](unsigned a, unsigned b) { return places[a] < places[b]; });

  std::vector<OpId> order;
  unsigned next = 0;
  for (uint32_t position = 0; position < backward_.ops().size(); ++position) {
    for (; next < sorted.size() && places[sorted[next]] == position; ++next)
      order.push_back(clones_[sorted[next]]);
    order.push_back(backward_.ops()[position]);
  }
  assert(next == sorted.size() && "a clone that nothing uses");
  backward_.setOps(Trace::topBody(), std::move(order));
}

void Rematerialiser::dropLinks() {
  ValueMap replacements;
  for (const SavedLink &link : plan_.dropped)
    if (ValueId value = values_.lookup(link.forward))
      replacements[link.backward] = value;
  backward_.replaceUses(Trace::topBody(), replacements);
  for (const SavedLink &link : llvm::reverse(plan_.dropped)) {
    names_.erase(backward_.name(link.backward));
    pair_.dropSaved(link.id);
  }
}

void Rematerialiser::nameClones() {
  for (unsigned i = 0; i < clones_.size(); ++i)
    for (auto [from, to] :
         llvm::zip(forward_.op(plan_.ops[i]).results(), backward_.op(clones_[i]).results()))
      backward_.setName(to, uniqueName(forward_.name(from)));
}

void Rematerialiser::verify(DiagnosticList &diagnostics) const {
  StorageRoots forwardRoots(forward_), roots(backward_);
  StorageWrites writes(backward_, roots, ArgumentOverlap::NotWhereWritten);
  // Arguments of the backward that are one storage, and the root of each.
  llvm::DenseMap<ValueId, llvm::SmallVector<ValueId, 2>> argumentsOf;
  llvm::DenseMap<ValueId, ValueId> rootOf;
  for (const SavedLink &link : pair_.saved()) {
    rootOf[link.backward] = forwardRoots.root(link.forward);
    argumentsOf[rootOf[link.backward]].push_back(link.backward);
  }
  std::vector<uint32_t> madeAt(backward_.numValues(), 0); // one past the position; arguments: 0
  llvm::DenseMap<OpId, OpId> originals;
  for (unsigned i = 0; i < clones_.size(); ++i)
    originals[clones_[i]] = plan_.ops[i];

  for (uint32_t position = 0; position < backward_.ops().size(); ++position) {
    OpId id = backward_.ops()[position];
    const Op &op = backward_.op(id);
    for (ValueId result : op.results())
      madeAt[result.index()] = position + 1;
    if (!originals.count(id))
      continue;
    for (ValueId operand : op.operands()) {
      if (!operand)
        continue;
      llvm::SmallVector<ValueId, 2> names = {operand};
      if (auto it = rootOf.find(operand); it != rootOf.end())
        names = argumentsOf.lookup(it->second);
      if (llvm::any_of(names, [&](ValueId name) {
            return writes.lastWriteBefore(name, position) > madeAt[name.index()];
          })) {
        diagnostics.error(locationOf(forward_, originals.lookup(id)),
                          "'" + op.name() + "' op cannot be computed again for the backward: " +
                              quotedName(backward_, operand) +
                              " is written there before the result is needed");
        break;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

constexpr llvm::StringLiteral remarksNames[] = {"none", "summary", "values"};

llvm::StringRef rondo::recomputeRemarksName(RecomputeRemarks remarks) {
  return remarksNames[unsigned(remarks)];
}

PassProperties RematerializationPass::properties() const {
  PassProperties properties;
  properties.forbids =
      TraceProperties::Claimed | TraceProperties::HasRegions | TraceProperties::HasDels;
  return properties;
}

std::string RematerializationPass::optionsText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator separator(" ");
  if (options_.budget)
    os << separator << "budget=" << *options_.budget;
  if (options_.remarks != RematerialiseOptions().remarks)
    os << separator << "remarks=" << recomputeRemarksName(options_.remarks);
  return os.str();
}

/// `1 op`, `2 ops`.
static std::string counted(size_t count, llvm::StringRef noun) {
  return (llvm::Twine(count) + " " + noun + (count == 1 ? "" : "s")).str();
}

static void remark(const Trace &forward, const RematerialiseReport &report, bool namesValues,
                   DiagnosticList &diagnostics) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "recomputes " << counted(report.values.size(), "saved value") << ": the forward saves "
     << report.after.savedBytes << " bytes instead of " << report.before.savedBytes
     << "; the backward repeats " << counted(report.numOps, "op") << ", "
     << llvm::format("%.1f", 100 * report.share()) << " % of the forward's work";
  Location location{"", 0, 0, "@" + forward.name().str()};
  Diagnostic &remark = diagnostics.remark(location, os.str());
  for (const RecomputedValue &value : report.values)
    if (namesValues)
      remark.note(location, "recomputes %" + value.name +
                                (value.isTagged ? ", which is tagged" : ", for the budget"));
}

llvm::Expected<PassResult> RematerializationPass::runOnPair(TracePair &pair,
                                                            DiagnosticList &diagnostics) {
  bool isChanged = dissolveCheckpoints(pair.forward());
  report_ = {};
  if (!pair.hasBackward() || !pair.forward().terminator())
    return isChanged ? PassResult::Changed : PassResult::Unchanged;

  size_t numErrors = diagnostics.numErrors();
  RecomputePlan plan = planRecomputation(
      pair, options_.budget, [&](const Op &op) { return cost(pair.forward(), op); }, diagnostics);
  if (diagnostics.numErrors() != numErrors)
    return PassResult::Changed;
  if (options_.budget && plan.report.after.savedBytes > *options_.budget)
    diagnostics.warning(Location{"", 0, 0, "@" + pair.forward().name().str()},
                        "the forward saves " + llvm::Twine(plan.report.after.savedBytes) +
                            " bytes, above the budget of " + llvm::Twine(*options_.budget) +
                            ": nothing more can be recomputed");
  if (!plan.dropped.empty()) {
    Rematerialiser rematerialiser(pair, plan);
    rematerialiser.run();
    rematerialiser.verify(diagnostics);
    isChanged = true;
    if (options_.remarks != RecomputeRemarks::None)
      remark(pair.forward(), plan.report, options_.remarks == RecomputeRemarks::Values,
             diagnostics);
  }
  report_ = std::move(plan.report);
  return isChanged ? PassResult::Changed : PassResult::Unchanged;
}

std::unique_ptr<Pass> rondo::createRematerializationPass(RematerialiseOptions options) {
  return std::make_unique<RematerializationPass>(options);
}
