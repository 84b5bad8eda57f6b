//===- RegionEdit.h - Making, splitting and dissolving regions --*- C++ -*-===//
//
// Edits that move ops into the body of a region op and out of it. Ids of ops and values are kept:
// what an op in a region defines keeps its id, and the region's result, a new value, takes its
// place (and name) outside.
//
//   %a: f32[8] = exp(%x)                      %b: f32[8] = cuda_graph(%x) {
//   %b: f32[8] = relu(%a)          ==>        ^(%x: f32[8]):
//   return(%b)                                  %a: f32[8] = exp(%x)
//                                               %b: f32[8] = relu(%a)
//                                               return(%b)
//                                             }
//                                             return(%b)
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/StorageRoots.h"

namespace rondo {

/// One region to make: consecutive ops of a body, by their position in it.
struct RegionRange {
  size_t begin = 0, end = 0; ///< positions in `trace.ops(body)`, half open, not empty
};

/// May `op` move into a body, which sees its operands alone? Not if it counts from the start of a
/// storage of which its operand may be a later part: in the body it would count from there.
/// `roots` are those of the body that holds `op`.
bool canOutline(const Op &op, const StorageRoots &roots);

/// Wraps each range of `body` in a new op `spec` (BodyKind::Region). Ranges are sorted and do not
/// overlap; none holds the body's terminator. Operands are the values that the ops use and do not
/// define, in order of first use; results are the values that are used after the range, in order of
/// definition. One sweep over the body for all ranges. Returns the new ops, in order. The new ops
/// carry the common prefix of their ops' module paths.
std::vector<OpId> outlineRegions(Trace &trace, BodyId body, llvm::ArrayRef<RegionRange> ranges,
                                 const OpSpec &spec);

/// Puts the ops of a region back in its place and erases it. `remaps`, if given, receives what
/// became of its results.
void inlineRegion(Trace &trace, OpId region);

/// Splits `region` around the inner op `around`: a region of what came before it, the op itself, a
/// region of what came after; parts that are empty are left out. Attributes, domain and claim of
/// the region go to the parts. Returns the regions that now exist, in order.
llvm::SmallVector<OpId, 2> splitRegion(Trace &trace, OpId region, OpId around);

} // namespace rondo
