//===- FXLowering.h - From a graph of ATen calls to a trace -----*- C++ -*-===//
//
// The second half of the importer. A GraphLowering walks the nodes of a graph and puts ops into a
// trace; for a node whose op has a mapping (FXOpMapping.h) it makes a Call, through which the
// mapping reads arguments and emits core ops. A node that has no mapping, or whose call failed,
// becomes an opaque op.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "FXGraph.h"

#include "rondo/ir/StorageRoots.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <deque>
#include <set>

namespace rondo::fx {

struct Mapping;
using AttributeInits = llvm::ArrayRef<std::pair<llvm::StringRef, Attribute>>;

/// An attention op. Besides what the core op gives, ATen's gives the seed and offset that its
/// backward draws the dropout mask from again; here the state of the generator takes their place.
struct Attention {
  Side side = Side::Forward;
  uint32_t node = 0; ///< index into Graph::nodes
  /// What it drew from, in the trace of `side`; invalid without dropout.
  ValueId state;
  int64_t offset = 0;
};

/// What a value of a graph, or an element of a tuple, has become.
struct Binding {
  ValueId value;
  Attribute literal;               ///< if there is no value: Python's None, int, float or bool
  const Attention *seed = nullptr; ///< a seed or the like that only a backward may take
};

/// What the lowerings of a forward and its backward share.
struct LoweringState {
  using AttentionKey = std::pair<Side, uint32_t>;
  /// Attention ops that stay opaque, because their seeds are used by more than their backward.
  std::set<AttentionKey> keptOpaque;
  /// Like `keptOpaque`, found during this lowering: it has to be done again.
  std::set<AttentionKey> found;
  std::deque<Attention> attentions;
  llvm::StringMap<const Mapping *> mappings; ///< by ATen name
};

/// `name` with '_' for what may not be in the name of a value or trace.
std::string sanitisedName(llvm::StringRef name);

/// Lowers one graph. The importer adds arguments, lowers the nodes, and then ends the trace.
class GraphLowering {
public:
  /// `trace` is empty. The other references must outlive the lowering.
  GraphLowering(const Graph &graph, Side side, Trace &trace, LoweringState &state);

  const Graph &graph;
  const Side side;
  Trace &trace;
  LoweringState &state;

  //===--- For the importer -----------------------------------------------===//

  ValueId addArgument(ValueIndex input, const Type &type);
  void bind(ValueIndex value, Binding binding) { bindings_[value] = std::move(binding); }
  void lowerNodes();
  /// The value of an output: invalid for None, a constant for a number.
  ValueId output(const Argument &output);
  /// Appends `generator_advance` for what was drawn from default generators.
  void advanceGenerators(JSONCursor where);
  /// Appends an op of the importer's own, with one result or none.
  OpId append(llvm::StringRef core, llvm::ArrayRef<ValueId> operands, AttributeInits attributes,
              std::optional<Type> type, JSONCursor where, llvm::StringRef resultName = {});
  /// A name not taken yet, made of `name`.
  llvm::StringRef uniqueName(llvm::StringRef name);

  //===--- For calls and mappings -----------------------------------------===//

  const Binding &binding(ValueIndex value) const { return bindings_[value]; }
  /// The value that `argument` refers to; invalid if it refers to none, or to a seed, of which it
  /// takes note.
  ValueId valueOf(const Argument &argument);
  /// From now on `argument` refers to `value`.
  void rebind(const Argument &argument, ValueId value) { bindings_[argument.ref].value = value; }
  /// `given`, or else the state of the default generator of `device`, and the offset from which to
  /// draw `count` numbers. An invalid state when there is none to be had.
  std::pair<ValueId, int64_t> draw(Device device, ValueId given, int64_t count, const Node &node);
  /// The recorded elements of a node's result, also those of tuples in it; the result itself if it
  /// is no tuple.
  llvm::ArrayRef<Result> elements(const Node &node) const;
  void bindElement(const Node &node, unsigned element, Binding binding);
  /// The name for an element of a node's result; empty if nothing takes it.
  llvm::StringRef elementName(const Node &node, unsigned element) const;
  /// May an op that stands for `node` write `value`, which it has as an argument, and make it
  /// element `element` of its result? Nothing else must need what the storage holds now: no other
  /// argument, no later node, no output; and if it is the caller's, that element must be what is
  /// to be written to it.
  bool mayWrite(ValueId value, const Node &node, unsigned element);
  /// Takes note that `written`, which is given for the mutated input `argument`, is in its memory.
  void noteWritten(ValueId argument, ValueId written) { writtenInPlace_[written] = argument; }
  /// Is `newValue` in the memory of `input` already?
  bool isWritten(ValueId input, ValueId newValue) const {
    return newValue == input || writtenInPlace_.lookup(newValue) == input;
  }
  /// The state that `attention` drew from, in this trace: an argument if it is of the forward and
  /// this the backward.
  ValueId stateOf(const Attention &attention);

  /// Of a backward: where states of the forward are found, and those that it takes beyond what the
  /// file says.
  const Trace *forwardTrace = nullptr;
  struct SavedState {
    ValueId forward, backward;
    bool isAdded;
  };
  llvm::SmallVector<SavedState, 0> savedStates;

private:
  struct Generator {
    ValueId state;
    Device device;
    std::string name; ///< empty: the state is not the default one but an argument
    int64_t used = 0;
  };
  void lowerNode(const Node &node);
  bool lowerMapped(const Node &node);
  void lowerOpaque(const Node &node);
  Attribute describe(const Argument &argument, llvm::SmallVectorImpl<ValueId> &operands);
  Generator *findGenerator(Device device, ValueId given, const Node &node);

  /// Who needs what storages hold when the lowering has come to a node. Storages are counted as
  /// often as they are named.
  struct StorageUses {
    StorageUses(const GraphLowering &lowering, const Node &node);

    const Node *node;
    StorageRoots roots;
    llvm::DenseMap<ValueId, unsigned> byNode, after;
    llvm::DenseMap<ValueId, ValueIndex> newValues; ///< of mutated inputs
  };

  std::vector<Binding> bindings_;                       // per value
  std::vector<llvm::SmallVector<Binding, 0>> elements_; // per node that gives a tuple
  std::vector<llvm::StringRef> names_;                  // per value; in `taken_`
  llvm::StringSet<> taken_;
  std::deque<Generator> generators_;
  llvm::DenseMap<ValueId, ValueId> writtenInPlace_; // new value of a mutated input: the argument
  std::optional<StorageUses> uses_;
  uint64_t numLookedAt_ = 0; // nodes, for `uses_`
};

} // namespace rondo::fx
