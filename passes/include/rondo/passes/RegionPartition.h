//===- RegionPartition.h - Which ops form a region? -------------*- C++ -*-===//
//
// The plan of CUDAGraphTransform, apart from policy and rewriting: from one verdict per op to an
// order of the ops and ranges of it. Both algorithms are linear in ops and operands.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/RegionEdit.h"
#include "rondo/ir/StorageRoots.h"

namespace rondo {

/// What an op may be to a partition.
enum class FusionClass : uint8_t {
  Outside,    ///< not in any region
  Fusible,    ///< launches something and may be in a region
  FusibleView ///< launches nothing and may be in a region, but a region never starts or ends with
              ///< it
};

struct RegionPlan {
  std::vector<OpId> order; ///< all ops of the body, a permutation that data and effects allow
  std::vector<RegionRange> ranges; ///< positions in `order`; each starts and ends with a Fusible op
};

/// Program order kept: the maximal runs of ops that are not Outside, trimmed to start and end with
/// a Fusible one.
RegionPlan partitionConsecutive(const Trace &trace, BodyId body,
                                llvm::ArrayRef<FusionClass> classes);

/// Ops may move where data and effects allow. The number of ranges is the least possible: the
/// greatest number of times that a path of dependences enters Fusible ops from Outside ones. Among
/// the orders with that number, each op stays as near to program order as its successors allow,
/// which keeps values from being made long before they are used.
RegionPlan partitionDataflow(const Trace &trace, BodyId body, llvm::ArrayRef<FusionClass> classes,
                             const StorageRoots &roots);

/// Calls `edge(earlier, later)` for pairs of positions in `trace.ops(body)` such that the first op
/// must stay before the second: data, storage effects (read after write, write after read, write
/// after write, by storage root) and resources. The transitive closure of the edges is the whole
/// order that must be kept. An op with unknown effects is ordered against all others:
/// `barrier(position)` is called for it, with no edges on its account.
void forEachDependence(const Trace &trace, BodyId body, const StorageRoots &roots,
                       llvm::function_ref<void(uint32_t earlier, uint32_t later)> edge,
                       llvm::function_ref<void(uint32_t position)> barrier);

} // namespace rondo
