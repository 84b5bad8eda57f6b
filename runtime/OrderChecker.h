//===- OrderChecker.h - Are overlapping bytes ordered? ----------*- C++ -*-===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

namespace rondo {

/// Nodes of one step, all behind `first` and before `last`, touch bytes [begin, end).
struct TouchedBytes {
  GraphNodeId first, last;
  uint64_t begin, end;
  bool isWrite;
};

/// Proves that of any two steps that touch a byte, one of them writing, the first node of one waits
/// for the last of the other, by the edges of `graph`. Quadratic. Errors: one that names the nodes.
llvm::Error checkOrder(const Graph &graph, llvm::ArrayRef<TouchedBytes> touched);

} // namespace rondo
