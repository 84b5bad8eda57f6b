//===- RegionEdit.cpp - Making, splitting and dissolving regions ------------===//
//
// Outlining is plan first, rewrite second. One sweep over the body finds, for every range, the
// values that come in and the values that go out; then the ops move, each range in turn, and one
// more sweep lets the rest of the body use the results.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/RegionEdit.h"

#include "rondo/ir/CoreOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Outlining
//===----------------------------------------------------------------------===//

bool rondo::canOutline(const Op &op, const StorageRoots &roots) {
  if (!op.spec().countsFromStorageStart)
    return true;
  ValueId operand = op.operand(0);
  return roots.roots(operand).size() == 1 && roots.root(operand) == operand;
}

namespace {

struct RegionPlan {
  llvm::SmallSetVector<ValueId, 8> inputs; // in order of first use
  llvm::SmallVector<ValueId, 4> results;   // in order of definition
};

class Outliner {
public:
  Outliner(Trace &trace, BodyId body, llvm::ArrayRef<RegionRange> ranges, const OpSpec &spec)
      : trace_(trace), body_(body), ranges_(ranges), spec_(spec),
        order_(trace.ops(body).begin(), trace.ops(body).end()) {}

  std::vector<OpId> run() {
    plan();
    std::vector<OpId> regions, order;
    trace_.setOps(body_, {}); // detaches every op; they are put back below
    size_t position = 0;
    for (size_t r = 0; r < ranges_.size(); ++r) {
      appendOutside(order, position, ranges_[r].begin);
      regions.push_back(rewrite(r));
      order.push_back(regions.back());
      position = ranges_[r].end;
    }
    appendOutside(order, position, order_.size());
    trace_.setOps(body_, std::move(order));
    return regions;
  }

private:
  static constexpr uint32_t outside = ~uint32_t(0);

  void plan() {
    plans_.resize(ranges_.size());
    rangeOf_.assign(trace_.numValues(), outside);
    std::vector<bool> escapes(trace_.numValues(), false);
    size_t next = 0;
    for (size_t position = 0; position < order_.size(); ++position) {
      while (next < ranges_.size() && position >= ranges_[next].end)
        ++next;
      bool inside = next < ranges_.size() && position >= ranges_[next].begin;
      uint32_t range = inside ? next : outside;
      const Op &op = trace_.op(order_[position]);
      for (ValueId operand : op.operands()) {
        if (!operand || (inside && rangeOf_[operand.index()] == range))
          continue;
        escapes[operand.index()] = true;
        if (inside)
          plans_[range].inputs.insert(operand);
      }
      for (ValueId result : op.results())
        rangeOf_[result.index()] = range;
    }
    for (size_t r = 0; r < ranges_.size(); ++r)
      for (size_t position = ranges_[r].begin; position < ranges_[r].end; ++position)
        for (ValueId result : trace_.op(order_[position]).results())
          if (escapes[result.index()])
            plans_[r].results.push_back(result);
  }

  /// The name by which `value` is known outside of regions.
  ValueId seenOutside(ValueId value) const {
    auto it = resultFor_.find(value);
    return it == resultFor_.end() ? value : it->second;
  }

  void appendOutside(std::vector<OpId> &order, size_t begin, size_t end) {
    for (size_t position = begin; position < end; ++position) {
      const Op &op = trace_.op(order_[position]);
      for (unsigned i = 0; i < op.operands().size(); ++i)
        if (op.operand(i))
          trace_.setOperand(op.id(), i, seenOutside(op.operand(i)));
      order.push_back(op.id());
    }
  }

  OpId rewrite(size_t r) {
    const RegionPlan &plan = plans_[r];
    OpInit init;
    init.spec = &spec_;
    init.numBodies = 1;
    for (ValueId input : plan.inputs)
      init.operands.push_back(seenOutside(input));
    OpId region = trace_.createOp(std::move(init));
    BodyId body = trace_.op(region).bodies().front();

    llvm::DenseMap<ValueId, ValueId> arguments;
    for (ValueId input : plan.inputs)
      arguments[input] = trace_.addArgument(body, trace_.type(input), trace_.name(input));
    std::vector<OpId> inner(order_.begin() + ranges_[r].begin, order_.begin() + ranges_[r].end);
    llvm::StringRef path = trace_.op(inner.front()).modulePath();
    for (OpId id : inner) {
      const Op &op = trace_.op(id);
      for (unsigned i = 0; i < op.operands().size(); ++i)
        if (auto it = arguments.find(op.operand(i)); it != arguments.end())
          trace_.setOperand(id, i, it->second);
      path = commonPath(path, op.modulePath());
    }
    inner.push_back(createReturn(plan.results));
    trace_.setOps(body, std::move(inner));
    trace_.setModulePath(region, path);
    for (ValueId result : plan.results)
      resultFor_[result] =
          trace_.addResult(region, trace_.type(result), trace_.name(result), trace_.tags(result));
    return region;
  }

  OpId createReturn(llvm::ArrayRef<ValueId> values) {
    OpInit init;
    init.spec = trace_.registry().lookup(core::returnOp);
    assert(init.spec && "the registry has no core ops");
    init.operands.assign(values.begin(), values.end());
    return trace_.createOp(std::move(init));
  }

  /// The longest run of whole `.`-separated parts that both paths start with.
  static llvm::StringRef commonPath(llvm::StringRef a, llvm::StringRef b) {
    size_t end = 0, i = 0;
    for (; i < a.size() && i < b.size() && a[i] == b[i]; ++i)
      if (a[i] == '.')
        end = i;
    bool wholeA = i == a.size() && (i == b.size() || b[i] == '.');
    bool wholeB = i == b.size() && (i == a.size() || a[i] == '.');
    return a.take_front(wholeA || wholeB ? i : end);
  }

  Trace &trace_;
  BodyId body_;
  llvm::ArrayRef<RegionRange> ranges_;
  const OpSpec &spec_;
  std::vector<OpId> order_;
  std::vector<RegionPlan> plans_;
  std::vector<uint32_t> rangeOf_; // per value: the range that defines it
  llvm::DenseMap<ValueId, ValueId> resultFor_;
};

} // namespace

std::vector<OpId> rondo::outlineRegions(Trace &trace, BodyId body,
                                        llvm::ArrayRef<RegionRange> ranges, const OpSpec &spec) {
  assert(spec.bodies == BodyKind::Region && "not a region op");
  for (size_t i = 0; i < ranges.size(); ++i) {
    assert(ranges[i].begin < ranges[i].end && ranges[i].end <= trace.ops(body).size());
    assert((i == 0 || ranges[i - 1].end <= ranges[i].begin) && "ranges overlap");
  }
  if (ranges.empty())
    return {};
  return Outliner(trace, body, ranges, spec).run();
}

//===----------------------------------------------------------------------===//
// Inlining
//===----------------------------------------------------------------------===//

/// Gives values of `order` whose name is taken in `body` another name.
static void uniquifyNames(Trace &trace, BodyId body, llvm::ArrayRef<OpId> order) {
  llvm::DenseMap<llvm::StringRef, unsigned> taken; // and the number to append next
  for (ValueId argument : trace.arguments(body))
    taken.try_emplace(trace.name(argument), 1);
  for (OpId op : trace.ops(body))
    for (ValueId result : trace.op(op).results())
      taken.try_emplace(trace.name(result), 1);
  for (OpId op : order)
    for (ValueId result : trace.op(op).results()) {
      llvm::StringRef base = trace.name(result);
      if (base.empty())
        continue;
      std::string name = base.str();
      while (!taken.try_emplace(trace.intern(name), 1).second)
        name = (base + "_" + llvm::Twine(taken[base]++)).str();
      trace.setName(result, name);
    }
}

/// Dissolves `region`; returns the position of its first op in the body that held it.
static size_t dissolve(Trace &trace, OpId region) {
  const Op &op = trace.op(region);
  BodyId outer = op.body(), body = op.bodies().front();
  std::vector<OpId> inner = trace.ops(body).vec();
  const Op *ret = trace.terminator(body);
  if (ret)
    inner.pop_back();

  llvm::DenseMap<ValueId, ValueId> replacements;
  for (unsigned i = 0; i < op.operands().size(); ++i)
    replacements[trace.arguments(body)[i]] = op.operand(i);
  for (unsigned i = 0; ret && i < op.results().size(); ++i)
    replacements[op.result(i)] = ret->operand(i);

  std::vector<OpId> order = trace.ops(outer).vec();
  size_t position = llvm::find(order, region) - order.begin();
  order.erase(order.begin() + position);
  trace.setOps(outer, order); // without the region, so that its names are free
  uniquifyNames(trace, outer, inner);
  order.insert(order.begin() + position, inner.begin(), inner.end());
  trace.setOps(body, {});
  trace.setOps(outer, std::move(order));
  trace.replaceUses(outer, replacements);
  if (ret)
    trace.eraseOp(ret->id());
  trace.eraseOp(region);
  return position;
}

void rondo::inlineRegion(Trace &trace, OpId region) {
  dissolve(trace, region);
}

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

static int64_t nextRegionId(const Trace &trace) {
  int64_t next = 0;
  forEachOp(trace, [&](const Op &op) {
    if (op.spec().bodies == BodyKind::Region)
      if (const Attribute *id = op.attribute("region"))
        next = std::max(next, id->asInt().value_or(-1) + 1);
  });
  return next;
}

llvm::SmallVector<OpId, 2> rondo::splitRegion(Trace &trace, OpId region, OpId around) {
  const Op &op = trace.op(region);
  const OpSpec &spec = op.spec();
  BodyId outer = op.body();
  llvm::ArrayRef<OpId> inner = trace.ops(op.bodies().front());
  size_t count = inner.size() - (trace.terminator(op.bodies().front()) ? 1 : 0);
  size_t middle = llvm::find(inner, around) - inner.begin();
  assert(middle < count && "the op is not in the region");

  // What the parts take over; the region itself is gone after `dissolve`.
  std::vector<NamedAttribute> attributes = op.attributes().vec();
  CaptureDomainRef domain = op.domain();
  const Claim *claim = op.claim();
  llvm::DenseMap<ValueId, Attribute> policies;
  if (const Attribute *inputs = op.attribute("inputs"); inputs && inputs->asList())
    for (size_t i = 0; i < std::min(inputs->asList()->size(), op.operands().size()); ++i)
      policies[op.operand(i)] = (*inputs->asList())[i];
  int64_t freshId = nextRegionId(trace);

  size_t begin = dissolve(trace, region);
  llvm::SmallVector<RegionRange, 2> ranges;
  if (middle > 0)
    ranges.push_back({begin, begin + middle});
  if (middle + 1 < count)
    ranges.push_back({begin + middle + 1, begin + count});
  std::vector<OpId> parts = outlineRegions(trace, outer, ranges, spec);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const NamedAttribute &attribute : attributes)
      trace.setAttribute(parts[i], attribute.name, attribute.value);
    if (i > 0 && spec.findAttribute("region"))
      trace.setAttribute(parts[i], "region", freshId);
    if (!policies.empty()) {
      Attribute::List inputs;
      for (ValueId operand : trace.op(parts[i]).operands()) {
        auto it = policies.find(operand);
        inputs.push_back(it == policies.end() ? Attribute("auto") : it->second);
      }
      trace.setAttribute(parts[i], "inputs", std::move(inputs));
    }
    if (domain)
      trace.setDomain(parts[i], domain);
    if (claim)
      trace.setClaim(parts[i], *claim);
  }
  return {parts.begin(), parts.end()};
}
