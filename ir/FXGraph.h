//===- FXGraph.h - An fx-aten-1 file, read and checked ----------*- C++ -*-===//
//
// The first half of the importer: a file as plain data, with references resolved and types in
// Rondo's terms. Nothing here knows what an op means. docs/trace-format.md describes the form.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "JSONCursor.h"

#include "rondo/ir/TracePair.h"

#include <string>
#include <vector>

namespace rondo::fx {

/// Index into Graph::values.
using ValueIndex = uint32_t;

/// What an input is or a node gives, or one element of a tuple that a node gives.
struct Result {
  enum class Kind : uint8_t {
    Tensor,
    Scalar,    ///< a Python int, float or bool
    Generator, ///< the state of a random-number generator; inputs only
    None,      ///< Python's None
    Unused,    ///< an element that nothing takes and whose type was not recorded
    Tuple,
  };
  Kind kind = Kind::None;
  std::optional<Type> type;     ///< of a tensor or scalar
  Attribute value;              ///< of a scalar, as recorded; none: not recorded
  std::optional<Device> device; ///< of a generator, where recorded
  std::vector<Result> elements; ///< of a tuple; may be tuples whose elements are none

  const TensorType *asTensor() const { return type ? type->asTensor() : nullptr; }
  /// How many results there are in it that are no tuples: 1 for what is none.
  uint32_t numLeaves() const;
  void appendLeaves(std::vector<Result> &leaves) const;
  /// The same kinds and types; values do not matter.
  bool isLike(const Result &other) const;
  std::string description() const; ///< in messages
};

/// An argument of a node, or an output of a graph.
struct Argument {
  enum class Kind : uint8_t {
    Literal, ///< none, bool, int, float, string, dtype, device
    Ref,     ///< a value that is no tuple, or in `_operator.getitem` one that is
    Name,    ///< something of Python's by its name: an op, a memory format; `literal` is a string
    List,
  };
  explicit Argument(JSONCursor where) : where(where) {}

  JSONCursor where;
  Kind kind = Kind::Literal;
  Attribute literal;
  ValueIndex ref = 0;
  std::vector<Argument> list;

  bool isNone() const { return kind == Kind::Literal && literal.isNone(); }
};

struct Value {
  explicit Value(JSONCursor where) : where(where) {}

  JSONCursor where;
  std::string name; ///< as recorded; unique in its graph
  Result result;
  /// Of inputs.
  ValueTags tags = ValueTags::None;
  std::string path; ///< `module_name`
};

struct Node {
  explicit Node(JSONCursor where) : where(where) {}

  JSONCursor where;
  ValueIndex value = 0; ///< what it defines
  std::string op;       ///< `aten.add.Tensor`
  std::vector<Argument> args;
  std::vector<std::pair<std::string, Argument>> kwargs;
  std::string module; ///< `blocks.0.mlp`
  /// Of `_operator.getitem`: which leaf of `tuple` it takes; if it gives a tuple itself, the first
  /// of those in it.
  std::optional<uint32_t> element;
  /// Of `_operator.getitem`: the tuple, of another op, that it takes an element of, perhaps by way
  /// of other ones.
  ValueIndex tuple = 0;
  /// Of another node that gives a tuple: what is in it and no tuple, in order, and for each of
  /// those the first `getitem` that takes it.
  std::vector<Result> leaves;
  std::vector<std::optional<ValueIndex>> takenBy;
};

struct Graph {
  explicit Graph(JSONCursor where) : where(where) {}

  JSONCursor where;
  std::vector<Value> values; ///< the inputs, then one for each node
  uint32_t numInputs = 0;
  std::vector<Node> nodes;
  std::vector<Argument> outputs; ///< refs or none

  /// Of a forward. Every output is one of: the new value of a mutated input (the first outputs, in
  /// the order of `mutated`), the user's, or saved for the backward.
  std::vector<ValueIndex> mutated;
  std::vector<bool> isSaved; ///< per output

  /// `fwd_rng_state_3` -> 3, for generator inputs whose name starts with `prefix`.
  static std::optional<uint32_t> rngStateNumber(llvm::StringRef name, llvm::StringRef prefix);
};

struct Program {
  std::string model; ///< may be empty
  Graph forward;
  std::optional<Graph> backward;
};

/// Reads and checks a file: formats, kinds, types, references, tuple elements, the roles of
/// outputs, and that forward and backward fit. Reports all it finds; nothing if there was an error.
/// Borrows from `root`'s document.
std::optional<Program> readProgram(JSONCursor root);

/// The cleaned form of a recorded module path: `L['s'].l.0` -> `l.0`.
std::string cleanModulePath(llvm::StringRef path);

} // namespace rondo::fx
