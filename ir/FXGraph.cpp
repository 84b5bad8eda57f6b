//===- FXGraph.cpp - An fx-aten-1 file, read and checked --------------------===//
//
// Reads first the names of all values of a graph, then inputs, nodes and outputs in their order, so
// that a reference to something later in the file is told from one to nothing.
//
//===----------------------------------------------------------------------===//

#include "FXGraph.h"
#include "FXTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace rondo;
using namespace rondo::fx;

static constexpr llvm::StringLiteral formatName = "fx-aten-1";

std::string rondo::fx::cleanModulePath(llvm::StringRef path) {
  // Dynamo names the module it traced `L['name']`.
  if (path.take_front(3) == "L['")
    if (size_t end = path.find("']", 3); end != llvm::StringRef::npos)
      path = path.drop_front(end + 2).ltrim('.');
  return path.str();
}

std::optional<uint32_t> Graph::rngStateNumber(llvm::StringRef name, llvm::StringRef prefix) {
  uint32_t number = 0;
  if (!name.consume_front(prefix) || name.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

namespace {

/// Reads one graph.
class GraphReader {
public:
  GraphReader(JSONCursor cursor, Side side) : side_(side), cursor_(cursor), graph_(cursor) {}

  /// Nothing if there are no inputs, nodes or outputs to speak of. Errors are in the diagnostics
  /// even where a graph comes back.
  std::optional<Graph> read();

private:
  bool checkHeader();
  void declare(JSONCursor item);
  void readInput(Value &value);
  void readNode(Node &node);
  void readKeywords(Node &node);
  void readGetItem(Node &node);
  void readOutputs(JSONCursor outputs);
  void readOutputRoles(JSONCursor roles);
  void readMutated(JSONCursor names);
  void readOutputIndices(JSONCursor indices, std::vector<bool> &hasRole, bool isSaved);

  std::optional<Argument> readArgument(JSONCursor cursor, bool tupleAllowed, unsigned depth = 0);
  std::optional<Argument> readList(JSONCursor cursor, unsigned depth);
  std::optional<Argument> readTagged(JSONCursor cursor, bool tupleAllowed);
  std::optional<ValueIndex> readRef(JSONCursor cursor, bool tupleAllowed);

  static constexpr unsigned maxListDepth = 16;

  Side side_;
  JSONCursor cursor_;
  Graph graph_;
  llvm::StringMap<ValueIndex> indices_; // of all names, also of those yet to be read
  /// Values from here on have not been read yet.
  ValueIndex numRead_ = 0;
  /// Values that could not be read: what uses them says nothing further.
  std::vector<bool> isBroken_;
};

} // namespace

std::optional<Graph> GraphReader::read() {
  if (!cursor_.expectObject() || !checkHeader())
    return std::nullopt;
  std::optional<JSONCursor> inputs = cursor_.require("inputs");
  std::optional<JSONCursor> nodes = cursor_.require("nodes");
  std::optional<JSONCursor> outputs = cursor_.require("outputs");
  if (!inputs || !nodes || !outputs || !inputs->expectArray() || !nodes->expectArray() ||
      !outputs->expectArray())
    return std::nullopt;

  for (JSONCursor input : inputs->elements())
    declare(input);
  graph_.numInputs = graph_.values.size();
  for (JSONCursor node : nodes->elements()) {
    graph_.nodes.emplace_back(node).value = graph_.values.size();
    declare(node);
  }
  for (; numRead_ < graph_.numInputs; ++numRead_)
    readInput(graph_.values[numRead_]);
  for (Node &node : graph_.nodes) {
    readNode(node);
    ++numRead_;
  }
  readOutputs(*outputs);
  if (side_ == Side::Forward)
    if (std::optional<JSONCursor> roles = cursor_.require("outputs_are"))
      readOutputRoles(*roles);
  return std::move(graph_);
}

bool GraphReader::checkHeader() {
  std::optional<JSONCursor> format = cursor_.require("format");
  std::optional<llvm::StringRef> name = format ? format->expectString() : std::nullopt;
  if (!name)
    return false;
  if (*name != formatName) {
    format->error("unsupported format '" + *name + "', expected '" + formatName + "'");
    return false;
  }
  std::optional<JSONCursor> kind = cursor_.require("kind");
  std::optional<llvm::StringRef> side = kind ? kind->expectString() : std::nullopt;
  if (side && *side != sideName(side_))
    kind->error("expected the kind '" + sideName(side_) + "', got '" + *side + "'");
  return true;
}

/// The name of an input or node.
static std::optional<llvm::StringRef> readName(JSONCursor item) {
  if (!item.expectObject())
    return std::nullopt;
  std::optional<JSONCursor> cursor = item.require("name");
  if (!cursor)
    return std::nullopt;
  std::optional<llvm::StringRef> name = cursor->expectString();
  if (!name || !name->empty())
    return name;
  cursor->error("a name may not be empty");
  return std::nullopt;
}

void GraphReader::declare(JSONCursor item) {
  std::optional<llvm::StringRef> name = readName(item);
  Value &value = graph_.values.emplace_back(item);
  isBroken_.push_back(!name);
  if (!name)
    return;
  value.name = name->str();
  auto [it, inserted] = indices_.try_emplace(*name, graph_.values.size() - 1);
  if (!inserted)
    item.find("name")
        ->error("'" + *name + "' is defined twice")
        .note(graph_.values[it->second].where.location(), "first defined here");
}

void GraphReader::readInput(Value &value) {
  if (!value.where.isObject())
    return;
  if (std::optional<Result> result = readResult(value.where, Place::Input))
    value.result = std::move(*result);
  else
    isBroken_[numRead_] = true;
  if (std::optional<JSONCursor> role = value.where.find("role")) {
    static constexpr ValueTags tags[] = {ValueTags::Parameter, ValueTags::Buffer, ValueTags::None};
    if (std::optional<size_t> word = role->expectWord("a role", {"parameter", "buffer", "input"}))
      value.tags = tags[*word];
  }
  if (std::optional<JSONCursor> path = value.where.find("module_name"); path && !path->isNull())
    value.path = path->expectString().value_or("").str();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void GraphReader::readNode(Node &node) {
  if (!node.where.isObject())
    return;
  if (std::optional<JSONCursor> op = node.where.require("op"))
    if (node.op = op->expectString().value_or("x").str(); node.op.empty())
      op->error("the name of an op may not be empty");
  bool isGetItem = node.op == "_operator.getitem";
  if (std::optional<JSONCursor> args = node.where.require("args"); args && args->expectArray()) {
    for (JSONCursor arg : args->elements()) {
      if (std::optional<Argument> read = readArgument(arg, isGetItem && node.args.empty()))
        node.args.push_back(std::move(*read));
      else
        isBroken_[node.value] = true;
    }
  }
  readKeywords(node);
  if (std::optional<JSONCursor> module = node.where.find("module"); module && !module->isNull())
    node.module = cleanModulePath(module->expectString().value_or(""));

  Value &value = graph_.values[node.value];
  std::optional<JSONCursor> recorded = node.where.require("result");
  std::optional<Result> result;
  if (recorded)
    result = readResult(*recorded, Place::Node);
  if (!result) {
    isBroken_[node.value] = true;
    return;
  }
  value.result = std::move(*result);
  if (isGetItem) {
    if (!isBroken_[node.value])
      readGetItem(node);
  } else if (value.result.kind == Result::Kind::Tuple) {
    value.result.appendLeaves(node.leaves);
    node.takenBy.resize(node.leaves.size());
  }
}

void GraphReader::readKeywords(Node &node) {
  std::optional<JSONCursor> kwargs = node.where.require("kwargs");
  if (!kwargs || !kwargs->expectObject())
    return;
  for (JSONCursor kwarg : kwargs->elements()) {
    if (!Trace::isValueName(kwarg.key()))
      kwarg.error("malformed name of a keyword argument");
    if (std::optional<Argument> read = readArgument(kwarg, /*tupleAllowed=*/false))
      node.kwargs.emplace_back(kwarg.key().str(), std::move(*read));
    else
      isBroken_[node.value] = true;
  }
}

/// Checks `_operator.getitem(tuple, index)` and ties it to the element it takes.
void GraphReader::readGetItem(Node &node) {
  isBroken_[node.value] = true; // until shown otherwise
  if (node.args.size() != 2 || node.args[0].kind != Argument::Kind::Ref ||
      !node.args[1].literal.asInt() || !node.kwargs.empty()) {
    node.where.error("'_operator.getitem' expects a value and an integer");
    return;
  }
  if (isBroken_[node.args[0].ref])
    return;
  const Value &tuple = graph_.values[node.args[0].ref];
  if (tuple.result.kind != Result::Kind::Tuple) {
    node.args[0]
        .where.error("'" + tuple.name + "' is no tuple")
        .note(tuple.where.location(), "defined here");
    return;
  }
  int64_t size = tuple.result.elements.size(), index = *node.args[1].literal.asInt();
  if (index < -size || index >= size) {
    node.args[1]
        .where
        .error("'" + tuple.name + "' has " + llvm::Twine(size) + " elements, no element " +
               llvm::Twine(index))
        .note(tuple.where.location(), "defined here");
    return;
  }
  uint32_t element = index < 0 ? index + size : index;
  const Result &taken = tuple.result.elements[element], &own = graph_.values[node.value].result;
  if (!taken.isLike(own)) {
    node.where
        .error("result is recorded as " + own.description() + ", but element " + llvm::Twine(element) +
               " of '" + tuple.name + "' as " + taken.description())
        .note(tuple.where.location(), "defined here");
    return;
  }
  isBroken_[node.value] = false;
  const Node &outer = graph_.nodes[node.args[0].ref - graph_.numInputs];
  node.tuple = outer.element ? outer.tuple : node.args[0].ref;
  node.element = outer.element.value_or(0);
  for (uint32_t i = 0; i < element; ++i)
    *node.element += tuple.result.elements[i].numLeaves();
  if (own.kind == Result::Kind::Tuple)
    return;
  std::optional<ValueIndex> &takenBy =
      graph_.nodes[node.tuple - graph_.numInputs].takenBy[*node.element];
  if (!takenBy)
    takenBy = node.value;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

std::optional<Argument> GraphReader::readArgument(JSONCursor cursor, bool tupleAllowed,
                                                  unsigned depth) {
  Argument argument(cursor);
  switch (cursor.kind()) {
  case JSONKind::Null:
    return argument;
  case JSONKind::Bool:
    argument.literal = *cursor.asBool();
    return argument;
  case JSONKind::Int:
    if (std::optional<int64_t> number = cursor.expectInt()) {
      argument.literal = *number;
      return argument;
    }
    return std::nullopt;
  case JSONKind::Float:
    argument.literal = *cursor.asNumber();
    return argument;
  case JSONKind::String:
    argument.literal = *cursor.asString();
    return argument;
  case JSONKind::Array:
    return readList(cursor, depth);
  case JSONKind::Object:
    break;
  }
  return readTagged(cursor, tupleAllowed);
}

std::optional<Argument> GraphReader::readList(JSONCursor cursor, unsigned depth) {
  if (depth == maxListDepth) {
    cursor.error("lists are nested more than " + llvm::Twine(maxListDepth) + " deep");
    return std::nullopt;
  }
  Argument argument(cursor);
  argument.kind = Argument::Kind::List;
  bool ok = true;
  for (JSONCursor element : cursor.elements()) {
    if (std::optional<Argument> read = readArgument(element, /*tupleAllowed=*/false, depth + 1))
      argument.list.push_back(std::move(*read));
    else
      ok = false;
  }
  return ok ? std::optional(std::move(argument)) : std::nullopt;
}

/// `{"ref": ...}` and the other objects of one key.
std::optional<Argument> GraphReader::readTagged(JSONCursor cursor, bool tupleAllowed) {
  Argument argument(cursor);
  if (cursor.size() != 1) {
    cursor.error("expected an object with one key, got " + llvm::Twine(cursor.size()));
    return std::nullopt;
  }
  JSONCursor member = cursor[0];
  llvm::StringRef key = member.key();
  if (key == "ref") {
    std::optional<ValueIndex> ref = readRef(member, tupleAllowed);
    argument.kind = Argument::Kind::Ref;
    argument.ref = ref.value_or(0);
    return ref ? std::optional(std::move(argument)) : std::nullopt;
  }
  if (key == "dtype") {
    if (std::optional<DType> dtype = readDType(member))
      argument.literal = *dtype;
  } else if (key == "device") {
    if (std::optional<Device> device = readDevice(member))
      argument.literal = *device;
  } else if (key == "repr") {
    argument.kind = Argument::Kind::Name;
    if (std::optional<llvm::StringRef> name = member.expectString())
      argument.literal = *name;
  } else if (key == "float") {
    if (std::optional<size_t> word =
            member.expectWord("'inf', '-inf' or 'nan'", {"inf", "-inf", "nan"}))
      argument.literal = *word == 0   ? std::numeric_limits<double>::infinity()
                         : *word == 1 ? -std::numeric_limits<double>::infinity()
                                      : std::numeric_limits<double>::quiet_NaN();
  } else {
    member.error("unknown kind of argument '" + key + "'" +
                 didYouMean(key, {"ref", "dtype", "device", "repr", "float"}));
  }
  return argument.literal.isNone() ? std::nullopt : std::optional(std::move(argument));
}

/// A value that has been read. Nothing, without a message, if it was read with errors.
std::optional<ValueIndex> GraphReader::readRef(JSONCursor cursor, bool tupleAllowed) {
  std::optional<llvm::StringRef> name = cursor.expectString();
  if (!name)
    return std::nullopt;
  auto it = indices_.find(*name);
  if (it == indices_.end()) {
    cursor.error("unknown value '" + *name + "'");
    return std::nullopt;
  }
  const Value &value = graph_.values[it->second];
  if (it->second >= numRead_) {
    cursor.error("'" + *name + "' is used before it is defined")
        .note(value.where.location(), "defined here");
    return std::nullopt;
  }
  if (isBroken_[it->second])
    return std::nullopt;
  if (value.result.kind == Result::Kind::Tuple && !tupleAllowed) {
    cursor.error("'" + *name + "' is a tuple, expected an element of it")
        .note(value.where.location(), "defined here");
    return std::nullopt;
  }
  return it->second;
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void GraphReader::readOutputs(JSONCursor outputs) {
  for (JSONCursor output : outputs.elements()) {
    std::optional<Argument> read;
    if (output.isNull() || output.isObject())
      read = readArgument(output, /*tupleAllowed=*/false);
    else
      output.error("expected a value or null");
    if (read && read->kind != Argument::Kind::Ref && !read->isNone()) {
      output.error("expected a value or null");
      read = std::nullopt;
    }
    graph_.outputs.push_back(read ? std::move(*read) : Argument(output));
  }
}

void GraphReader::readOutputRoles(JSONCursor roles) {
  if (!roles.expectObject({"mutated_inputs", "user", "saved_for_backward"}))
    return;
  if (std::optional<JSONCursor> names = roles.require("mutated_inputs"))
    readMutated(*names);
  size_t numOutputs = graph_.outputs.size(), numMutated = graph_.mutated.size();
  graph_.isSaved.resize(numOutputs);
  if (numMutated > numOutputs) {
    roles.find("mutated_inputs")
        ->error("there are fewer outputs (" + llvm::Twine(numOutputs) + ") than mutated inputs");
    return;
  }
  std::vector<bool> hasRole(numOutputs);
  std::fill_n(hasRole.begin(), numMutated, true);
  if (std::optional<JSONCursor> user = roles.require("user"))
    readOutputIndices(*user, hasRole, /*isSaved=*/false);
  if (std::optional<JSONCursor> saved = roles.require("saved_for_backward"))
    readOutputIndices(*saved, hasRole, /*isSaved=*/true);
  for (size_t i = 0; i < numOutputs; ++i) {
    JSONCursor where = graph_.outputs[i].where;
    if (!hasRole[i])
      where.error("output has no role in 'outputs_are'");
    else if ((i < numMutated || graph_.isSaved[i]) && where.isNull())
      where.error(i < numMutated ? "a mutated input needs a new value" : "null cannot be saved");
  }
}

void GraphReader::readMutated(JSONCursor names) {
  if (!names.expectArray())
    return;
  for (JSONCursor cursor : names.elements()) {
    std::optional<llvm::StringRef> name = cursor.expectString();
    if (!name)
      continue;
    auto it = indices_.find(*name);
    if (it == indices_.end() || it->second >= graph_.numInputs)
      cursor.error("'" + *name + "' is no input");
    else if (graph_.values[it->second].result.kind != Result::Kind::Tensor &&
             !isBroken_[it->second])
      cursor.error("'" + *name + "' is no tensor")
          .note(graph_.values[it->second].where.location(), "defined here");
    else if (llvm::is_contained(graph_.mutated, it->second))
      cursor.error("'" + *name + "' is named twice");
    else
      graph_.mutated.push_back(it->second);
  }
}

void GraphReader::readOutputIndices(JSONCursor indices, std::vector<bool> &hasRole, bool isSaved) {
  if (!indices.expectArray())
    return;
  for (JSONCursor cursor : indices.elements()) {
    std::optional<uint64_t> index = cursor.expectUnsigned();
    if (!index)
      continue;
    if (*index >= hasRole.size()) {
      cursor.error("there is no output " + llvm::Twine(*index) + " among " +
                   llvm::Twine(hasRole.size()));
    } else if (hasRole[*index]) {
      cursor.error("output " + llvm::Twine(*index) + " has a role already");
    } else {
      hasRole[*index] = true;
      graph_.isSaved[*index] = isSaved;
    }
  }
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Checks that what the forward saves is what the backward takes.
static void checkSaved(const Graph &forward, const Graph &backward) {
  unsigned next = 0;
  for (size_t i = 0; i < forward.outputs.size(); ++i) {
    if (!forward.isSaved[i])
      continue;
    const Argument &output = forward.outputs[i];
    if (next == backward.numInputs) {
      output.where.error("saved for a backward that has only " + llvm::Twine(next) + " inputs");
      return;
    }
    const Value &saved = forward.values[output.ref], &input = backward.values[next++];
    if (saved.result.kind == input.result.kind && saved.result.type == input.result.type)
      continue;
    auto describe = [](const Result &result) {
      return result.type ? result.type->str() : std::string("a generator");
    };
    input.where
        .error("input '" + input.name + "' is " + describe(input.result) +
               ", but the forward saves " + describe(saved.result) + " for it")
        .note(output.where.location(), "'" + saved.name + "' saved here");
  }
  for (; next < backward.numInputs; ++next) {
    const Value &input = backward.values[next];
    if (input.result.kind != Result::Kind::Generator)
      continue;
    std::optional<uint32_t> number = Graph::rngStateNumber(input.name, "bwd_rng_state_");
    std::string name = number ? "fwd_rng_state_" + std::to_string(*number) : "";
    bool found =
        llvm::any_of(llvm::ArrayRef<Value>(forward.values).take_front(forward.numInputs),
                     [&](const Value &value) {
                       return value.name == name && value.result.kind == Result::Kind::Generator;
                     });
    if (!found)
      input.where.error(number ? "the forward has no generator input '" + name + "'"
                               : "a generator input is named 'bwd_rng_state_N'");
  }
}

/// Checks that there is one gradient, or null, for each input that is no generator.
static void checkGradients(const Graph &forward, const Graph &backward) {
  size_t expected = 0;
  for (uint32_t i = 0; i < forward.numInputs; ++i)
    expected += forward.values[i].result.kind != Result::Kind::Generator;
  if (backward.outputs.size() != expected)
    backward.where.find("outputs")->error("has " + llvm::Twine(backward.outputs.size()) +
                                          " gradients for " + llvm::Twine(expected) +
                                          " inputs of the forward");
}

std::optional<Program> rondo::fx::readProgram(JSONCursor root) {
  if (!root.expectObject())
    return std::nullopt;
  std::optional<JSONCursor> forwardCursor = root.require("forward");
  std::optional<Graph> forward, backward;
  if (forwardCursor)
    forward = GraphReader(*forwardCursor, Side::Forward).read();
  std::optional<JSONCursor> backwardCursor = root.find("backward");
  bool hasBackward = backwardCursor && !backwardCursor->isNull();
  if (hasBackward)
    backward = GraphReader(*backwardCursor, Side::Backward).read();
  std::string model;
  if (std::optional<JSONCursor> cursor = root.find("model"); cursor && !cursor->isNull())
    model = cursor->expectString().value_or("").str();

  if (root.diagnostics().hasErrors() || !forward)
    return std::nullopt;
  if (backward) {
    checkSaved(*forward, *backward);
    checkGradients(*forward, *backward);
  } else if (auto it = llvm::find(forward->isSaved, true); it != forward->isSaved.end()) {
    forward->outputs[it - forward->isSaved.begin()].where.error(
        "saved for a backward, but there is none");
  }
  if (root.diagnostics().hasErrors())
    return std::nullopt;
  return Program{std::move(model), std::move(*forward), std::move(backward)};
}
