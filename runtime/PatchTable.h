//===- PatchTable.h - Which words of a graph come from the call -*- C++ -*-===//
//
// A graph holds the addresses of buffers, and host scalars, in the parameters of its nodes, also of
// nodes that a library made and whose layout nobody knows. They are found by building the same
// graph three times, with every buffer elsewhere and every scalar another each time, and comparing:
//
//   node 5, word at 24:   0x7f00a040   0x7f31b0d0   0x7f31c4a0
//   buffer %x             0x7f00a000   0x7f31b090   0x7f31c460     changed by the same: %x + 0x40
//
// A word that changed, and not by exactly what one address changed or to what one scalar is, is not
// understood: then nothing that its node uses is patched.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

#include <string>
#include <vector>

namespace rondo {

/// Something of a call that a graph may hold: an address, or a host scalar's bits.
struct PatchSource {
  enum Kind : uint8_t {
    Address, ///< words are at any distance from it
    Integer, ///< words are it
    Double,  ///< words are it, or a half of one is it in f32
  };
  Kind kind = Address;
  /// In each of the three graphs: unlike those of other sources in how it changes.
  std::array<uint64_t, 3> values = {};
};

inline uint64_t asWord(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

/// Three graphs of the same nodes. Borrowed.
struct PatchProbe {
  std::array<Graph *, 3> graphs;
  llvm::ArrayRef<PatchSource> sources;
  /// Nodes that somebody else changes: not looked at. Sorted.
  llvm::ArrayRef<GraphNodeId> excluded;
  /// Calls back with each source that `node` may use.
  llvm::function_ref<void(GraphNodeId node, llvm::function_ref<void(unsigned source)>)> uses;
  /// Fills and copies of more bytes have only these in the second and third graph.
  size_t maxBytes = ~size_t(0);
  /// The first graph built once more, with the same values, or null. What differs from
  /// it, in halves of words, is noise, as what a library leaves between the members of a struct, or
  /// a pointer into the host's memory: it says nothing.
  Graph *control = nullptr;
};

/// The words of a graph that come from the call, and the parameters of their nodes as an exec has
/// them. Used by one call at a time.
class PatchTable {
public:
  /// For an exec of the first graph. Errors: the device's. The second and third graph are compared
  /// with the control where there is one, else with the first.
  static llvm::Expected<PatchTable> explain(const PatchProbe &probe);

  /// Why a source cannot be patched; empty if it can.
  llvm::StringRef problem(unsigned source) const { return sources_[source].problem; }
  /// Gives `source` a problem, unless it has one.
  void refuse(unsigned source, llvm::StringRef problem) {
    if (sources_[source].problem.empty())
      sources_[source].problem = problem.str();
  }
  /// How many nodes hold it.
  size_t numNodes(unsigned source) const;

  struct Change {
    unsigned source; ///< that can be patched
    uint64_t value;  ///< now
  };
  /// Lets the nodes of `exec` hold the sources as they are now: each node is set once. Returns how
  /// many were set.
  llvm::Expected<size_t> patch(GraphExec &exec, llvm::ArrayRef<Change> changes);

private:
  enum class Form : uint8_t { Whole, LowFloat, HighFloat };
  struct Word {
    uint32_t node;   ///< in nodes_
    uint32_t offset; ///< in the node's words, in bytes
    Form form;
    uint64_t addend; ///< to an address
  };
  struct Source {
    std::vector<Word> words;
    std::string problem;
  };
  /// A node's parameters as words: a kernel's block; a destination and a source.
  struct Node {
    GraphNodeId id;
    GraphNodeParameters parameters;
    std::vector<std::byte> words;
    bool isChanged = false;

    void read(const GraphNodeParameters &from);
    GraphNodeParameters written() const;
    /// The same but for words, and for bytes that `other` has at most `maxBytes` of?
    bool isAlike(const Node &other, size_t maxBytes) const;
  };
  class Explainer;

  std::vector<Source> sources_;
  std::vector<Node> nodes_; ///< those with words
  std::vector<uint32_t> changed_;
};

} // namespace rondo
