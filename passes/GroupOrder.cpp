//===- GroupOrder.cpp - Making groups of ops consecutive --------------------===//
//
// Only what stands between the first and the last op of a new group has to move. Of that, what
// depends on the group goes behind it, the rest before it; an earlier group moves as a whole. If
// something that depends on the group is needed by it, there is no such order: the order so far is
// one that all dependences and groups allow, so a path that leaves the group and comes back lies
// within this window.
//
//===----------------------------------------------------------------------===//

#include "GroupOrder.h"

#include "rondo/passes/RegionPartition.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace rondo;

GroupOrder::GroupOrder(const Trace &trace, BodyId body, const StorageRoots &roots)
    : ops_(trace.ops(body).vec()) {
  size_t size = ops_.size();
  isBarrier_.assign(size, false);
  group_.assign(size, noGroup);
  marks_.assign(size, Mark::None);
  order_.resize(size);
  std::iota(order_.begin(), order_.end(), 0);
  place_ = order_;
  for (Node node = 0; node < size; ++node)
    nodes_[ops_[node]] = node;

  std::vector<std::pair<Node, Node>> edges; // later, earlier
  forEachDependence(
      trace, body, roots,
      [&](uint32_t earlier, uint32_t later) {
        edges.push_back({later, earlier});
      },
      [&](uint32_t position) { isBarrier_[position] = true; });
  llvm::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  firstEdge_.assign(size + 1, 0);
  for (auto [later, earlier] : edges) {
    ++firstEdge_[later + 1];
    predecessors_.push_back(earlier);
  }
  std::partial_sum(firstEdge_.begin(), firstEdge_.end(), firstEdge_.begin());
}

/// One past the last place of the group that begins at `place`, or of the single op there.
size_t GroupOrder::unitEnd(size_t place) const {
  unsigned group = group_[order_[place]];
  size_t end = place + 1;
  while (group != noGroup && end < order_.size() && group_[order_[end]] == group)
    ++end;
  return end;
}

bool GroupOrder::dependsOn(Node node, Mark mark) const {
  for (uint32_t edge = firstEdge_[node]; edge < firstEdge_[node + 1]; ++edge)
    if (marks_[predecessors_[edge]] == mark)
      return true;
  return false;
}

/// Marks what has to go behind the members in the window [first, last]. False if a member depends
/// on that, or nothing may move.
bool GroupOrder::markWindow(size_t first, size_t last) {
  for (size_t begin = first, end; begin <= last; begin = end) {
    end = unitEnd(begin);
    llvm::ArrayRef<Node> unit(&order_[begin], end - begin);
    if (llvm::any_of(unit, [&](Node node) { return isBarrier_[node]; }))
      return false;
    if (marks_[unit.front()] == Mark::Member) {
      if (dependsOn(unit.front(), Mark::After))
        return false;
      continue;
    }
    if (llvm::any_of(unit, [&](Node node) {
          return dependsOn(node, Mark::Member) || dependsOn(node, Mark::After);
        }))
      for (Node node : unit)
        marks_[node] = Mark::After;
  }
  return true;
}

void GroupOrder::rearrange(size_t first, size_t last, llvm::ArrayRef<Node> members) {
  std::vector<Node> window(order_.begin() + first, order_.begin() + last + 1);
  size_t place = first;
  auto put = [&](Node node) {
    order_[place] = node;
    place_[node] = place++;
  };
  for (Node node : window)
    if (marks_[node] == Mark::None)
      put(node);
  llvm::for_each(members, put);
  for (Node node : window)
    if (marks_[node] == Mark::After)
      put(node);
}

bool GroupOrder::add(llvm::ArrayRef<OpId> ops) {
  assert(!ops.empty() && "an empty group");
  llvm::SmallVector<Node, 8> members;
  size_t first = ops_.size(), last = 0;
  for (OpId op : ops) {
    Node node = nodes_.lookup(op);
    assert(ops_[node] == op && group_[node] == noGroup && "not in the body, or in a group");
    members.push_back(node);
    marks_[node] = Mark::Member;
    first = std::min<size_t>(first, place_[node]);
    last = std::max<size_t>(last, place_[node]);
  }
  llvm::sort(members);

  bool isPossible = markWindow(first, last);
  if (isPossible) {
    rearrange(first, last, members);
    for (Node node : members)
      group_[node] = numGroups_;
    ++numGroups_;
  }
  for (size_t place = first; place <= last; ++place)
    marks_[order_[place]] = Mark::None;
  return isPossible;
}

std::vector<OpId> GroupOrder::order() const {
  std::vector<OpId> order;
  order.reserve(order_.size());
  for (Node node : order_)
    order.push_back(ops_[node]);
  return order;
}

std::vector<GroupOrder::Group> GroupOrder::groups() const {
  std::vector<Group> groups;
  for (size_t begin = 0, end; begin < order_.size(); begin = end) {
    end = unitEnd(begin);
    if (unsigned group = group_[order_[begin]]; group != noGroup)
      groups.push_back({{begin, end}, group});
  }
  return groups;
}
