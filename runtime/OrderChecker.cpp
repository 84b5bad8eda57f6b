//===- OrderChecker.cpp - Are overlapping bytes ordered? ------------------===//

#include "OrderChecker.h"

#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/BitVector.h"

using namespace rondo;

/// For each node the nodes that it waits for, itself included.
static std::vector<llvm::BitVector> ancestors(const Graph &graph) {
  std::vector<llvm::BitVector> sets(graph.numNodes(), llvm::BitVector(graph.numNodes()));
  for (uint32_t node = 0; node < graph.numNodes(); ++node) {
    sets[node].set(node);
    // A dependency was added before what depends on it.
    for (GraphNodeId dependency : graph.dependencies(GraphNodeId(node)))
      sets[node] |= sets[dependency.index()];
  }
  return sets;
}

llvm::Error rondo::checkOrder(const Graph &graph, llvm::ArrayRef<TouchedBytes> touched) {
  std::vector<llvm::BitVector> sets = ancestors(graph);
  for (size_t i = 0; i < touched.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const TouchedBytes &a = touched[k], &b = touched[i];
      if (a.first == b.first || !(a.isWrite || b.isWrite) || a.end <= b.begin || b.end <= a.begin)
        continue;
      if (sets[b.first.index()].test(a.last.index()) || sets[a.first.index()].test(b.last.index()))
        continue;
      std::string text;
      llvm::raw_string_ostream(text)
          << "nodes " << a.last << " and " << b.first << " touch the same bytes in no order";
      return makeError(text);
    }
  }
  return llvm::Error::success();
}
