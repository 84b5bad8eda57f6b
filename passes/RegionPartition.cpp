//===- RegionPartition.cpp - Which ops form a region? -----------------------===//
//
// `Dataflow` places every op in a slot. Slot 2k holds ops outside of regions, slot 2k+1 is region
// k, and the order of slots is the order of execution; within a slot program order is kept. A
// dependence from u to v asks for slot(u) <= slot(v), and parity does the rest: after region k
// (slot 2k+1) the next slot outside is 2k+2. Views fit any slot.
//
//   %a = exp(%x)       fusible     slot 1
//   %i = item(%n)      outside     slot 0 .. 2
//   %b = relu(%a)      fusible     slot 1           [exp, relu] item [add]
//   %c = add(%b, %i)   fusible     slot 3
//
// The earliest slots (one forward sweep) give the least number of regions: a region more is opened
// only where a path of dependences leaves region k and comes back. The latest slots with that
// number (one backward sweep) bound how far an op may be delayed. A last forward sweep keeps each
// op in the slot that program order has reached, unless its latest slot is earlier: an op is
// hoisted only when a later op with no other choice forces it, so that chains of recomputation stay
// next to their use and the liveness peak near that of program order.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/RegionPartition.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace rondo;

//===----------------------------------------------------------------------===//
// Dependences
//===----------------------------------------------------------------------===//

namespace {

/// The accesses to one storage root or resource that a later access must stay behind.
struct AccessHistory {
  static constexpr uint32_t none = ~uint32_t(0);
  uint32_t lastWrite = none;
  llvm::SmallVector<uint32_t, 2> readsSince;

  void read(uint32_t position, llvm::function_ref<void(uint32_t, uint32_t)> edge) {
    if (lastWrite != none && lastWrite != position)
      edge(lastWrite, position);
    if (readsSince.empty() || readsSince.back() != position)
      readsSince.push_back(position);
  }

  void write(uint32_t position, llvm::function_ref<void(uint32_t, uint32_t)> edge) {
    for (uint32_t read : readsSince)
      if (read != position)
        edge(read, position);
    if (lastWrite != none && lastWrite != position)
      edge(lastWrite, position);
    lastWrite = position;
    readsSince.clear();
  }
};

} // namespace

/// Marks the roots that any op of `body` writes: only these need a history.
static std::vector<bool> writtenRoots(const Trace &trace, BodyId body, const StorageRoots &roots) {
  std::vector<bool> written(trace.numValues(), false);
  Effects effects;
  for (OpId id : trace.ops(body)) {
    const Op &op = trace.op(id);
    if (op.spec().writes.empty() && op.spec().bodies == BodyKind::None && !op.spec().effects)
      continue;
    getEffects(trace, id, effects);
    for (unsigned i : effects.writes)
      for (ValueId root : roots.roots(op.operand(i)))
        written[root.index()] = true;
  }
  return written;
}

void rondo::forEachDependence(const Trace &trace, BodyId body, const StorageRoots &roots,
                              llvm::function_ref<void(uint32_t, uint32_t)> edge,
                              llvm::function_ref<void(uint32_t)> barrier) {
  llvm::ArrayRef<OpId> order = trace.ops(body);
  std::vector<bool> written = writtenRoots(trace, body, roots);
  std::vector<uint32_t> definedAt(trace.numValues(), AccessHistory::none);
  llvm::DenseMap<ValueId, AccessHistory> storage;
  std::map<std::pair<ResourceKind, llvm::StringRef>, AccessHistory> resources;

  Effects effects;
  for (uint32_t position = 0; position < order.size(); ++position) {
    const Op &op = trace.op(order[position]);
    getEffects(trace, op.id(), effects);
    for (ValueId operand : op.operands()) {
      if (!operand)
        continue;
      if (uint32_t definition = definedAt[operand.index()]; definition != AccessHistory::none)
        edge(definition, position);
      // Any use, a view's too, must stay before a write that makes the name stale.
      for (ValueId root : roots.roots(operand))
        if (written[root.index()])
          storage[root].read(position, edge);
    }
    for (unsigned i : effects.writes)
      for (ValueId root : roots.roots(op.operand(i)))
        storage[root].write(position, edge);
    for (const ResourceEffect &resource : effects.resources) {
      AccessHistory &history = resources[{resource.kind, resource.name}];
      resource.writes ? history.write(position, edge) : history.read(position, edge);
    }
    for (ValueId result : op.results())
      definedAt[result.index()] = position;
    if (effects.isUnknown() || op.spec().terminator)
      barrier(position);
  }
}

//===----------------------------------------------------------------------===//
// Consecutive
//===----------------------------------------------------------------------===//

/// Appends [begin, end), shrunk until it starts and ends with a Fusible op, unless nothing is left.
static void addTrimmed(std::vector<RegionRange> &ranges, llvm::ArrayRef<FusionClass> classes,
                       size_t begin, size_t end) {
  while (begin < end && classes[begin] != FusionClass::Fusible)
    ++begin;
  while (begin < end && classes[end - 1] != FusionClass::Fusible)
    --end;
  if (begin < end)
    ranges.push_back({begin, end});
}

RegionPlan rondo::partitionConsecutive(const Trace &trace, BodyId body,
                                       llvm::ArrayRef<FusionClass> classes) {
  RegionPlan plan;
  plan.order = trace.ops(body).vec();
  size_t begin = 0;
  for (size_t position = 0; position <= classes.size(); ++position) {
    if (position < classes.size() && classes[position] != FusionClass::Outside)
      continue;
    addTrimmed(plan.ranges, classes, begin, position);
    begin = position + 1;
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// Dataflow
//===----------------------------------------------------------------------===//

namespace {

using Slot = uint32_t;

/// The least slot of the right parity at or above `slot`.
Slot roundUp(FusionClass fusionClass, Slot slot) {
  switch (fusionClass) {
  case FusionClass::Outside:
    return slot + (slot & 1);
  case FusionClass::Fusible:
    return slot | 1;
  case FusionClass::FusibleView:
    break;
  }
  return slot;
}

/// The greatest slot of the right parity at or below `slot`.
Slot roundDown(FusionClass fusionClass, Slot slot) {
  switch (fusionClass) {
  case FusionClass::Outside:
    return slot & ~Slot(1);
  case FusionClass::Fusible:
    return slot - ((slot & 1) ^ 1);
  case FusionClass::FusibleView:
    break;
  }
  return slot;
}

class SlotScheduler {
public:
  SlotScheduler(const Trace &trace, BodyId body, llvm::ArrayRef<FusionClass> classes,
                const StorageRoots &roots)
      : classes_(classes), isBarrier_(classes.size(), false) {
    firstEdge_.assign(classes.size() + 1, 0);
    uint32_t current = 0;
    forEachDependence(
        trace, body, roots,
        [&](uint32_t earlier, uint32_t later) {
          // Edges come grouped by their later end.
          for (; current < later; ++current)
            firstEdge_[current + 1] = predecessors_.size();
          predecessors_.push_back(earlier);
        },
        [&](uint32_t position) { isBarrier_[position] = true; });
    for (; current < classes.size(); ++current)
      firstEdge_[current + 1] = predecessors_.size();
  }

  std::vector<Slot> run() {
    std::vector<Slot> slots = sweepForward([](uint32_t, Slot least, Slot) { return least; });
    Slot last = 0;
    for (size_t i = 0; i < slots.size(); ++i)
      if (classes_[i] == FusionClass::Fusible)
        last = std::max(last, slots[i] + 1);
    std::vector<Slot> latest = sweepBackward(last);
    return sweepForward([&](uint32_t position, Slot least, Slot reached) {
      return std::max(least, std::min(reached, latest[position]));
    });
  }

private:
  llvm::ArrayRef<uint32_t> predecessors(uint32_t position) const {
    return llvm::ArrayRef<uint32_t>(predecessors_)
        .slice(firstEdge_[position], firstEdge_[position + 1] - firstEdge_[position]);
  }

  /// Gives every op `choose(position, least slot that its dependences allow, slot reached so far)`,
  /// rounded up.
  template <typename Choose> std::vector<Slot> sweepForward(Choose choose) const {
    std::vector<Slot> slots(classes_.size());
    Slot reached = 0, barrier = 0;
    for (uint32_t position = 0; position < slots.size(); ++position) {
      Slot least = isBarrier_[position] ? reached : barrier;
      for (uint32_t predecessor : predecessors(position))
        least = std::max(least, slots[predecessor]);
      slots[position] = roundUp(classes_[position], choose(position, least, reached));
      reached = std::max(reached, slots[position]);
      if (isBarrier_[position])
        barrier = slots[position];
    }
    return slots;
  }

  std::vector<Slot> sweepBackward(Slot last) const {
    std::vector<Slot> slots(classes_.size(), last);
    Slot leastSoFar = last, barrier = last;
    for (uint32_t position = slots.size(); position-- > 0;) {
      Slot most = std::min(slots[position], isBarrier_[position] ? leastSoFar : barrier);
      slots[position] = roundDown(classes_[position], most);
      leastSoFar = std::min(leastSoFar, slots[position]);
      if (isBarrier_[position])
        barrier = slots[position];
      for (uint32_t predecessor : predecessors(position))
        slots[predecessor] = std::min(slots[predecessor], slots[position]);
    }
    return slots;
  }

  llvm::ArrayRef<FusionClass> classes_;
  std::vector<bool> isBarrier_;
  std::vector<uint32_t> firstEdge_, predecessors_; // compressed rows, one per op
};

} // namespace

RegionPlan rondo::partitionDataflow(const Trace &trace, BodyId body,
                                    llvm::ArrayRef<FusionClass> classes,
                                    const StorageRoots &roots) {
  llvm::ArrayRef<OpId> order = trace.ops(body);
  std::vector<Slot> slots = SlotScheduler(trace, body, classes, roots).run();

  // Counting sort by slot; stable, so program order is kept within a slot.
  Slot numSlots = slots.empty() ? 0 : *std::max_element(slots.begin(), slots.end()) + 1;
  std::vector<uint32_t> first(numSlots + 1, 0);
  for (Slot slot : slots)
    ++first[slot + 1];
  for (Slot slot = 0; slot < numSlots; ++slot)
    first[slot + 1] += first[slot];

  RegionPlan plan;
  plan.order.resize(order.size());
  std::vector<FusionClass> sorted(order.size());
  std::vector<uint32_t> next(first.begin(), first.end());
  for (size_t i = 0; i < order.size(); ++i) {
    uint32_t position = next[slots[i]]++;
    plan.order[position] = order[i];
    sorted[position] = classes[i];
  }
  for (Slot slot = 1; slot < numSlots; slot += 2)
    addTrimmed(plan.ranges, sorted, first[slot], first[slot + 1]);
  return plan;
}
