//===- GroupOrder.h - Making groups of ops consecutive ----------*- C++ -*-===//
//
//   %a = exp(%x)                      %c = neg(%x)
//   %b = sin(%a)                      %a = exp(%x)
//   %c = neg(%x)       {a, d} ==>     %d = add(%a, %c)
//   %d = add(%a, %c)                  %b = sin(%a)
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/RegionEdit.h"
#include "rondo/ir/StorageRoots.h"

namespace rondo {

/// An order of the ops of one body in which groups stand together. Starts as program order; the
/// body itself is not changed. Keeps no reference to the trace.
class GroupOrder {
public:
  GroupOrder(const Trace &trace, BodyId body, const StorageRoots &roots);

  /// Makes `ops` consecutive, in program order. They must be in the body, each once, and in no
  /// group so far. False, and nothing changed, if a path of dependences (data or effects) leaves
  /// the group and comes back, or an op that may not be moved stands between or in it. Linear in
  /// the distance of its first and last op.
  bool add(llvm::ArrayRef<OpId> ops);

  struct Group {
    RegionRange range; ///< positions in `order()`
    unsigned index;    ///< counts the groups that were added
  };
  std::vector<OpId> order() const;
  /// By position.
  std::vector<Group> groups() const;

private:
  using Node = uint32_t; ///< position in program order
  enum class Mark : uint8_t { None, Member, After };

  size_t unitEnd(size_t place) const;
  bool dependsOn(Node node, Mark mark) const;
  bool markWindow(size_t first, size_t last);
  void rearrange(size_t first, size_t last, llvm::ArrayRef<Node> members);

  static constexpr unsigned noGroup = ~0u;

  std::vector<OpId> ops_;
  llvm::DenseMap<OpId, Node> nodes_;
  std::vector<uint32_t> firstEdge_; ///< where the predecessors of a node begin
  std::vector<Node> predecessors_;
  std::vector<bool> isBarrier_;
  std::vector<Node> order_;
  std::vector<uint32_t> place_; ///< by node: where it is in `order_`
  std::vector<unsigned> group_; ///< by node
  std::vector<Mark> marks_;     ///< by node; scratch
  unsigned numGroups_ = 0;
};

} // namespace rondo
