//===- CUDAGraphTransform.cpp - Cuts traces into capturable regions ---------===//
//
// Per trace, forward first: collect (one verdict per op: legality, then the executor's claim, then
// the policy), plan (RegionPartition.h), rewrite (RegionEdit.h), and record every verdict. Legality
// is not policy: no subclass can put into a region
//
//   - an op that ends the trace, or a region itself,
//   - an op whose effects are unknown, or that synchronises with the host,
//   - an op that counts from the start of a storage of which its operand may be a later part,
//   - an op that computes a scalar on the host: a graph would freeze it,
//   - an op with an operand or result on another device, CPU scalar tensors included,
//   - an op whose claim says that it cannot be captured,
//   - an op with bodies that hold any of these.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/CUDAGraphTransform.h"

#include "rondo/passes/RegionPartition.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Liveness.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace rondo;

llvm::StringRef rondo::inputPolicyName(InputPolicy policy) {
  switch (policy) {
  case InputPolicy::Auto:
    return "auto";
  case InputPolicy::Static:
    return "static";
  case InputPolicy::Copied:
    return "copied";
  case InputPolicy::Patched:
    break;
  }
  return "patched";
}

//===----------------------------------------------------------------------===//
// Policy defaults
//===----------------------------------------------------------------------===//

CUDAGraphTransform::CUDAGraphTransform(CUDAGraphOptions options)
    : options_(std::move(options)), domain_(CaptureDomain::create(options_.name)) {}

PassProperties CUDAGraphTransform::properties() const {
  PassProperties properties;
  properties.requires_ = TraceProperties::Claimed;
  properties.forbids = TraceProperties::HasDels;
  properties.sets = TraceProperties::HasRegions;
  return properties;
}

std::string CUDAGraphTransform::optionsText() const {
  const CUDAGraphOptions defaults;
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator separator(" ");
  if (options_.partition != defaults.partition)
    os << separator << "partition=dataflow";
  if (options_.minOps != defaults.minOps)
    os << separator << "min-ops=" << options_.minOps;
  if (options_.maxPeakGrowth != defaults.maxPeakGrowth) {
    os << separator << "max-peak-growth=";
    printDouble(os, options_.maxPeakGrowth);
  }
  if (options_.device)
    os << separator << "device=" << deviceName(*options_.device);
  if (options_.inputs != defaults.inputs)
    os << separator << "inputs=" << inputPolicyName(options_.inputs);
  if (!options_.deny.empty())
    os << separator << "deny=" << llvm::join(options_.deny, "+");
  if (options_.strict)
    os << separator << "strict=true";
  if (options_.name != defaults.name) {
    os << separator << "name=";
    printQuoted(os, options_.name);
  }
  os.flush();
  return text;
}

FusionVerdict CUDAGraphTransform::canFuse(const FusionQuery &query) const {
  if (llvm::is_contained(options_.deny, query.op.name()))
    return rondo::deny("named by the option 'deny'");
  return true;
}

InputPolicy CUDAGraphTransform::inputPolicy(const InputQuery &query) const {
  return query.isStatic ? InputPolicy::Static : options_.inputs;
}

FusionVerdict CUDAGraphTransform::keepRegion(const RegionQuery &query) const {
  if (query.launches >= options_.minOps)
    return true;
  return deny("the region launches too little (" + std::to_string(query.launches) + ", at least " +
              std::to_string(options_.minOps) + " wanted)");
}

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

namespace {

/// Why an op may not be in a region, and who says so.
struct Refusal {
  FusionDecider decider = FusionDecider::Legality;
  std::string reason;
};

} // namespace

/// Returns true if the op, or one in its bodies, puts work on a stream.
static bool launchesAnything(const Trace &trace, const Op &op) {
  if (op.spec().bodies == BodyKind::None)
    return op.spec().launches;
  bool launches = false;
  for (BodyId body : op.bodies())
    forEachOp(trace, body, [&](const Op &inner) {
      launches |= inner.spec().bodies == BodyKind::None && inner.spec().launches;
    });
  return launches || op.spec().bodies != BodyKind::Region;
}

static std::optional<Device> deviceOf(const Trace &trace, ValueId value) {
  return value ? trace.type(value).device() : std::nullopt;
}

static std::optional<std::string> refuseDevice(const Trace &trace, const Op &op, Device device) {
  auto refuse = [&](llvm::ArrayRef<ValueId> values,
                    llvm::StringRef what) -> std::optional<std::string> {
    for (ValueId value : values)
      if (std::optional<Device> other = deviceOf(trace, value); other && *other != device)
        return ("has " + what + " on " + deviceName(*other) + ", not on " + deviceName(device))
            .str();
    return std::nullopt;
  };
  if (auto reason = refuse(op.operands(), "an operand"))
    return reason;
  return refuse(op.results(), "a result");
}

/// Returns true if a result is a scalar that the op computes rather than carries as a constant.
static bool computesHostScalar(const Trace &trace, const Op &op) {
  bool isConstant = op.operands().empty() && !op.spec().launches;
  return !isConstant && op.spec().bodies == BodyKind::None &&
         llvm::any_of(op.results(), [&](ValueId r) { return trace.type(r).asScalar(); });
}

static std::optional<Refusal> refuse(const Trace &trace, const Op &op, const Effects &effects,
                                     const StorageRoots &roots, Device device) {
  auto illegal = [](llvm::StringRef reason) {
    return Refusal{FusionDecider::Legality, reason.str()};
  };
  if (op.spec().terminator)
    return illegal("ends the trace");
  if (op.domain())
    return illegal("is a region already");
  if (effects.isUnknown())
    return illegal("its effects are unknown");
  if (effects.synchronisesHost())
    return illegal("synchronises with the host");
  if (!canOutline(op, roots))
    return illegal("counts from the start of a storage that its operand may not start at");
  if (computesHostScalar(trace, op))
    return illegal("computes a scalar on the host, which a graph would freeze");
  if (std::optional<std::string> reason = refuseDevice(trace, op, device))
    return illegal(*reason);
  if (!op.claim())
    return illegal("no executor claimed it");
  if (!op.claim()->capturable)
    return Refusal{FusionDecider::Executor, op.claim()->why.empty()
                                                ? "'" + op.claim()->executor + "' cannot capture it"
                                                : op.claim()->why};
  return std::nullopt;
}

/// As `refuse`, for the op and all ops in its bodies; an inner op that is to blame is named.
static std::optional<Refusal> refuseDeep(const Trace &trace, const Op &op, Effects &effects,
                                         const StorageRoots &roots, Device device) {
  std::optional<Refusal> refusal;
  for (BodyId body : op.bodies())
    forEachOp(trace, body, [&](const Op &inner) {
      if (refusal || inner.spec().terminator || op.domain())
        return;
      getEffects(trace, inner.id(), effects);
      if ((refusal = refuse(trace, inner, effects, roots, device)))
        refusal->reason = "holds '" + inner.name().str() + "', which " + refusal->reason;
    });
  getEffects(trace, op.id(), effects);
  return refusal ? refusal : refuse(trace, op, effects, roots, device);
}

/// The first device other than a host that a value of the top body is on; else the host.
static Device primaryDevice(const Trace &trace) {
  auto found = [&](llvm::ArrayRef<ValueId> values) -> std::optional<Device> {
    for (ValueId value : values)
      if (std::optional<Device> device = deviceOf(trace, value); device && !device->isHost())
        return device;
    return std::nullopt;
  };
  if (std::optional<Device> device = found(trace.arguments()))
    return *device;
  for (OpId id : trace.ops())
    if (std::optional<Device> device = found(trace.op(id).results()))
      return *device;
  return Device::host();
}

//===----------------------------------------------------------------------===//
// Collect, plan, rewrite
//===----------------------------------------------------------------------===//

namespace rondo {

/// The transform at work on one trace.
class CUDAGraphRewriter {
public:
  CUDAGraphRewriter(const CUDAGraphTransform &transform, Trace &trace, Side side, Device device,
                    const llvm::DenseSet<ValueId> &staticArguments, DiagnosticList &diagnostics)
      : transform_(transform), trace_(trace), side_(side), device_(device),
        staticArguments_(staticArguments), diagnostics_(diagnostics) {}

  /// Returns true if anything changed.
  bool run() {
    StorageRoots roots(trace_);
    collect(roots);
    if (diagnostics_.hasErrors())
      return false;
    RegionPlan plan = makePlan(roots);
    dropSmallRegions(plan);
    recordTrimmedViews(plan);
    if (transform_.options().strict)
      reportLeftOut();
    if (diagnostics_.hasErrors())
      return false;
    return rewrite(plan, roots);
  }

private:
  struct Decision {
    FusionClass fusionClass = FusionClass::Outside;
    bool must = false;
    FusionRecord record;
  };

  Decision &decisionOf(OpId op) { return decisions_[positionOf_[op.index()]]; }

  void collect(const StorageRoots &roots) {
    llvm::ArrayRef<OpId> order = trace_.ops();
    decisions_.resize(order.size());
    positionOf_.assign(trace_.numOps(), 0);
    Effects effects;
    for (size_t position = 0; position < order.size(); ++position) {
      const Op &op = trace_.op(order[position]);
      positionOf_[op.id().index()] = position;
      decisions_[position] = decide(op, roots, effects);
      for (unsigned i : effects.writes)
        llvm::append_range(writtenRoots_[op.id()], roots.roots(op.operand(i)));
      if (op.domain())
        if (const Attribute *id = op.attribute("region"))
          nextRegionId_ = std::max(nextRegionId_, id->asInt().value_or(-1) + 1);
    }
  }

  Decision decide(const Op &op, const StorageRoots &roots, Effects &effects) {
    Decision decision;
    std::optional<Refusal> refusal = refuseDeep(trace_, op, effects, roots, device_);
    // A region that is there already and the end of the trace are nobody's choice.
    if (op.claim() && !op.domain()) {
      FusionVerdict verdict = transform_.canFuse({trace_, op, *op.claim(), effects, roots, side_});
      decision.must = verdict.answer() == FusionVerdict::Answer::Must;
      decision.record = {!verdict.isDenied(), FusionDecider::Policy, verdict.reason()};
      if (verdict.isDenied() && verdict.reason().empty())
        decision.record.reason = "canFuse said no";
    }
    if (refusal) {
      if (decision.must)
        diagnostics_.error(locationOf(trace_, op.id()),
                           "'" + op.name() + "' op must be in a region, but " + refusal->reason);
      decision.record = {false, refusal->decider, std::move(refusal->reason)};
    }
    if (decision.record.captured)
      decision.fusionClass =
          launchesAnything(trace_, op) ? FusionClass::Fusible : FusionClass::FusibleView;
    return decision;
  }

  RegionPlan makePlan(const StorageRoots &roots) {
    llvm::SmallVector<FusionClass, 0> classes;
    for (const Decision &decision : decisions_)
      classes.push_back(decision.fusionClass);
    const BodyId body = Trace::topBody();
    if (transform_.options().partition == Partition::Consecutive)
      return partitionConsecutive(trace_, body, classes);

    RegionPlan plan = partitionDataflow(trace_, body, classes, roots);
    if (llvm::equal(plan.order, trace_.ops()))
      return plan;
    int64_t before = livenessPeak(trace_, trace_.ops(), roots).bytes;
    int64_t after = livenessPeak(trace_, plan.order, roots).bytes;
    if (double(after) <= double(before) * (1 + transform_.options().maxPeakGrowth))
      return plan;
    diagnostics_.warning(Location{"", 0, 0, "@" + trace_.name().str()},
                         "moving ops would raise the liveness peak from " + llvm::Twine(before) +
                             " to " + llvm::Twine(after) +
                             " bytes, beyond max-peak-growth; partitioned in program order");
    return partitionConsecutive(trace_, body, classes);
  }

  void dropSmallRegions(RegionPlan &plan) {
    llvm::erase_if(plan.ranges, [&](RegionRange range) {
      auto ops = llvm::ArrayRef<OpId>(plan.order).slice(range.begin, range.end - range.begin);
      RegionQuery query{trace_, ops, 0, side_};
      bool must = false;
      for (OpId op : ops) {
        query.launches += decisionOf(op).fusionClass == FusionClass::Fusible;
        must |= decisionOf(op).must;
      }
      FusionVerdict verdict = transform_.keepRegion(query);
      if (!verdict.isDenied() || must)
        return false;
      for (OpId op : ops)
        decisionOf(op).record = {false, FusionDecider::Region,
                                 verdict.reason().empty() ? "keepRegion said no"
                                                          : verdict.reason()};
      return true;
    });
  }

  /// A fusible view that ended up in no region says so.
  void recordTrimmedViews(const RegionPlan &plan) {
    size_t next = 0;
    for (size_t position = 0; position < plan.order.size(); ++position) {
      while (next < plan.ranges.size() && position >= plan.ranges[next].end)
        ++next;
      bool inside = next < plan.ranges.size() && position >= plan.ranges[next].begin;
      Decision &decision = decisionOf(plan.order[position]);
      if (!inside && decision.record.captured)
        decision.record = {false, FusionDecider::Region,
                           "launches nothing, and no region has it in its middle"};
    }
  }

  void reportLeftOut() {
    for (size_t position = 0; position < decisions_.size(); ++position) {
      const Decision &decision = decisions_[position];
      const Op &op = trace_.op(trace_.ops()[position]);
      if (decision.record.captured || decision.record.decider == FusionDecider::Policy ||
          decision.fusionClass == FusionClass::FusibleView || op.spec().terminator || op.domain())
        continue;
      diagnostics_.error(locationOf(trace_, op.id()),
                         "'" + op.name() + "' op is not captured: " + decision.record.reason);
    }
  }

  bool rewrite(const RegionPlan &plan, const StorageRoots &roots) {
    bool changed = !plan.ranges.empty() || !llvm::equal(plan.order, trace_.ops());
    for (size_t position = 0; position < decisions_.size(); ++position)
      changed |= record(trace_.ops()[position], decisions_[position].record);
    if (!llvm::equal(plan.order, trace_.ops()))
      trace_.setOps(Trace::topBody(), plan.order);
    if (plan.ranges.empty())
      return changed;

    const OpSpec *spec = trace_.registry().lookup(core::cudaGraphOp);
    llvm::DenseSet<ValueId> givenToUser = rootsGivenToUser(roots);
    std::vector<OpId> regions = outlineRegions(trace_, Trace::topBody(), plan.ranges, *spec);
    int64_t nextId = nextRegionId_;
    for (OpId region : regions) {
      trace_.setDomain(region, transform_.domain_);
      trace_.setAttribute(region, "region", nextId++);
      trace_.setClaim(region, Claim{"runtime", true, "", 0});
    }
    for (OpId region : regions)
      trace_.setAttribute(region, "inputs", inputPolicies(region, roots, givenToUser));
    return true;
  }

  /// Returns true if the record is news.
  bool record(OpId op, const FusionRecord &record) {
    if (trace_.op(op).spec().terminator || trace_.op(op).domain())
      return false;
    if (const FusionRecord *old = trace_.op(op).fusionRecord(); old && *old == record)
      return false;
    trace_.setFusionRecord(op, record);
    return true;
  }

  /// Storage that leaves the trace other than by being saved: its address is the caller's to
  /// choose.
  llvm::DenseSet<ValueId> rootsGivenToUser(const StorageRoots &roots) const {
    llvm::DenseSet<ValueId> given;
    const Op *ret = trace_.terminator();
    for (unsigned i = 0; ret && i < ret->operands().size(); ++i)
      if (ret->operand(i) && !trace_.savedReturn(i))
        for (ValueId root : roots.roots(ret->operand(i)))
          given.insert(root);
    return given;
  }

  /// The name that `value`, if a region gives it, has inside the region. Roots were found before
  /// the regions were made, by these names.
  ValueId nameBefore(ValueId value) const {
    OpId definition = trace_.definingOp(value);
    while (definition && trace_.op(definition).domain()) {
      value =
          trace_.terminator(trace_.op(definition).bodies().front())->operand(trace_.index(value));
      definition = trace_.definingOp(value);
    }
    return value;
  }

  /// `value` by its name before the regions were made.
  bool isStatic(ValueId value, const StorageRoots &roots,
                const llvm::DenseSet<ValueId> &givenToUser) const {
    if (roots.isStatic(value))
      return true;
    return llvm::all_of(roots.roots(value), [&](ValueId root) {
      if (any(trace_.tags(root) & staticTags) || staticArguments_.count(root))
        return true;
      // What a region makes sits at a fixed place of the arena, unless the caller gets it.
      OpId definition = trace_.definingOp(root);
      return definition && trace_.op(definition).body() != Trace::topBody() &&
             !givenToUser.count(root);
    });
  }

  Attribute::List inputPolicies(OpId region, const StorageRoots &roots,
                                const llvm::DenseSet<ValueId> &givenToUser) const {
    const Op &op = trace_.op(region);
    RegionUses uses = findUses(op.bodies().front());
    Attribute::List policies;
    for (unsigned i = 0; i < op.operands().size(); ++i) {
      ValueId value = op.operand(i), before = nameBefore(value);
      bool isWritten = llvm::any_of(roots.roots(before),
                                    [&](ValueId root) { return uses.writtenRoots.count(root); });
      InputQuery query{trace_,
                       value,
                       trace_.type(value),
                       roots.tags(before),
                       isStatic(before, roots, givenToUser),
                       isWritten,
                       uses.consumers[i],
                       side_};
      policies.push_back(Attribute(inputPolicyName(transform_.inputPolicy(query))));
    }
    return policies;
  }

  /// What the ops of one region do with its arguments.
  struct RegionUses {
    llvm::SmallVector<unsigned, 0> consumers; // ops that use it, per argument
    llvm::SmallDenseSet<ValueId, 4> writtenRoots;
  };

  RegionUses findUses(BodyId body) const {
    RegionUses uses;
    uses.consumers.assign(trace_.arguments(body).size(), 0);
    for (OpId id : trace_.ops(body)) {
      const Op &op = trace_.op(id);
      if (auto it = writtenRoots_.find(id); it != writtenRoots_.end())
        uses.writtenRoots.insert(it->second.begin(), it->second.end());
      if (op.spec().terminator)
        continue;
      for (unsigned i = 0; i < op.operands().size(); ++i) {
        ValueId operand = op.operand(i);
        bool isRepeated = llvm::is_contained(op.operands().take_front(i), operand);
        if (operand && trace_.isArgument(operand) && !isRepeated)
          ++uses.consumers[trace_.index(operand)];
      }
    }
    return uses;
  }

  const CUDAGraphTransform &transform_;
  Trace &trace_;
  Side side_;
  Device device_;
  const llvm::DenseSet<ValueId> &staticArguments_;
  DiagnosticList &diagnostics_;
  std::vector<Decision> decisions_;  // by position in program order
  std::vector<uint32_t> positionOf_; // by op
  /// Storage that an op writes in place; only ops that write some are there.
  llvm::DenseMap<OpId, llvm::SmallVector<ValueId, 1>> writtenRoots_;
  int64_t nextRegionId_ = 0; // above those of regions that are there already
};

} // namespace rondo

/// The backward's arguments whose address does not move: saved parameters, buffers, static values,
/// and what a region of the forward makes.
static llvm::DenseSet<ValueId> staticBackwardArguments(const TracePair &pair) {
  llvm::DenseSet<ValueId> arguments;
  StorageRoots roots(pair.forward());
  for (const SavedLink &link : pair.saved()) {
    bool isStatic = llvm::all_of(roots.roots(link.forward), [&](ValueId root) {
      OpId definition = pair.forward().definingOp(root);
      return any(pair.forward().tags(root) & staticTags) ||
             (definition && pair.forward().op(definition).domain());
    });
    if (isStatic || roots.isStatic(link.forward))
      arguments.insert(link.backward);
  }
  return arguments;
}

llvm::Expected<PassResult> CUDAGraphTransform::runOnPair(TracePair &pair,
                                                         DiagnosticList &diagnostics) {
  Device device = options_.device.value_or(primaryDevice(pair.forward()));
  bool changed =
      CUDAGraphRewriter(*this, pair.forward(), Side::Forward, device, {}, diagnostics).run();
  if (pair.hasBackward() && !diagnostics.hasErrors()) {
    llvm::DenseSet<ValueId> staticArguments = staticBackwardArguments(pair);
    changed |= CUDAGraphRewriter(*this, pair.backward(), Side::Backward, device, staticArguments,
                                 diagnostics)
                   .run();
  }
  if (llvm::Error error = diagnostics.takeError())
    return error;
  return changed ? PassResult::Changed : PassResult::Unchanged;
}
