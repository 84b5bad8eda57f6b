//===- FXLowering.cpp - From a graph of ATen calls to a trace ---------------===//

#include "FXLowering.h"

#include "FXCall.h"
#include "FXOpMapping.h"

#include "rondo/ir/CoreOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace rondo;
using namespace rondo::fx;

static constexpr llvm::StringLiteral withStateName =
    "torch.ops.higher_order.graphsafe_run_with_rng_state";

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string rondo::fx::sanitisedName(llvm::StringRef name) {
  std::string result = name.str();
  for (char &c : result)
    if (!llvm::isAlnum(c) && c != '_' && c != '.' && c != '$')
      c = '_';
  if (result.empty() || (!llvm::isAlpha(result.front()) && result.front() != '_'))
    result.insert(result.begin(), '_');
  return result;
}

GraphLowering::GraphLowering(const Graph &graph, Side side, Trace &trace, LoweringState &state)
    : graph(graph), side(side), trace(trace), state(state), bindings_(graph.values.size()),
      elements_(graph.nodes.size()), names_(graph.values.size()) {
  // Names that need no change keep them.
  for (size_t i = 0; i < names_.size(); ++i)
    if (Trace::isValueName(graph.values[i].name))
      names_[i] = taken_.insert(graph.values[i].name).first->getKey();
  for (size_t i = 0; i < names_.size(); ++i)
    if (names_[i].empty())
      names_[i] = uniqueName(graph.values[i].name);
}

llvm::StringRef GraphLowering::uniqueName(llvm::StringRef name) {
  std::string base = sanitisedName(name), candidate = base;
  for (unsigned i = 1;; ++i) {
    auto [it, inserted] = taken_.insert(candidate);
    if (inserted)
      return it->getKey();
    candidate = base + "_" + std::to_string(i);
  }
}

llvm::StringRef GraphLowering::elementName(const Node &node, unsigned element) const {
  if (graph.values[node.value].result.kind != Result::Kind::Tuple)
    return names_[node.value];
  std::optional<ValueIndex> takenBy = node.takenBy[element];
  return takenBy ? names_[*takenBy] : llvm::StringRef();
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

ValueId GraphLowering::addArgument(ValueIndex input, const Type &type) {
  const Value &value = graph.values[input];
  ValueId argument = trace.addArgument(type, names_[input], value.tags);
  trace.setValuePath(argument, value.path);
  bindings_[input].value = argument;
  return argument;
}

llvm::ArrayRef<Result> GraphLowering::elements(const Node &node) const {
  const Result &result = graph.values[node.value].result;
  return result.kind == Result::Kind::Tuple ? llvm::ArrayRef<Result>(node.leaves)
                                            : llvm::ArrayRef<Result>(result);
}

void GraphLowering::bindElement(const Node &node, unsigned element, Binding binding) {
  if (graph.values[node.value].result.kind != Result::Kind::Tuple) {
    bind(node.value, std::move(binding));
    return;
  }
  llvm::SmallVector<Binding, 0> &elements = elements_[node.value - graph.numInputs];
  if (elements.size() <= element)
    elements.resize(element + 1);
  elements[element] = std::move(binding);
}

ValueId GraphLowering::valueOf(const Argument &argument) {
  if (argument.kind != Argument::Kind::Ref)
    return {};
  const Binding &binding = bindings_[argument.ref];
  if (binding.seed)
    state.found.insert({binding.seed->side, binding.seed->node});
  return binding.value;
}

ValueId GraphLowering::output(const Argument &output) {
  if (output.isNone())
    return {};
  const Binding &binding = bindings_[output.ref];
  if (binding.value || binding.seed || binding.literal.isNone())
    return valueOf(output);
  const Type &type = *graph.values[output.ref].result.type;
  OpId op = append("constant", {}, {{"value", binding.literal}}, type, output.where);
  return trace.op(op).result();
}

//===----------------------------------------------------------------------===//
// Storage that may be written
//===----------------------------------------------------------------------===//

/// So many nodes are looked at at most, so that files with very many updates stay quick to read.
/// Beyond it updates are made to copies.
static constexpr uint64_t maxLookedAt = 1 << 26;

template <typename Fn> static void forEachRef(const Argument &argument, Fn &&fn) {
  if (argument.kind == Argument::Kind::Ref)
    fn(argument.ref);
  for (const Argument &element : argument.list)
    forEachRef(element, fn);
}
template <typename Fn> static void forEachRef(const Node &node, Fn &&fn) {
  for (const Argument &argument : node.args)
    forEachRef(argument, fn);
  for (const auto &kwarg : node.kwargs)
    forEachRef(kwarg.second, fn);
}

GraphLowering::StorageUses::StorageUses(const GraphLowering &lowering, const Node &node)
    : node(&node), roots(lowering.trace) {
  auto addRoots = [&](const Binding &binding, llvm::DenseMap<ValueId, unsigned> &counts) {
    if (binding.value)
      for (ValueId root : roots.roots(binding.value))
        ++counts[root];
  };
  auto addRef = [&](llvm::DenseMap<ValueId, unsigned> &counts) {
    return [&](ValueIndex ref) { addRoots(lowering.bindings_[ref], counts); };
  };
  const Graph &graph = lowering.graph;
  forEachRef(node, addRef(byNode));
  for (const Node &later :
       llvm::ArrayRef<Node>(graph.nodes).drop_front(node.value - graph.numInputs + 1)) {
    if (!later.element)
      forEachRef(later, addRef(after));
    else
      for (const Binding &binding : lowering.elements_[later.tuple - graph.numInputs])
        addRoots(binding, after);
  }
  for (const Argument &output : graph.outputs)
    forEachRef(output, addRef(after));
  for (size_t i = 0; i < graph.mutated.size(); ++i)
    if (graph.outputs[i].kind == Argument::Kind::Ref)
      newValues[lowering.bindings_[graph.mutated[i]].value] = graph.outputs[i].ref;
}

bool GraphLowering::mayWrite(ValueId value, const Node &node, unsigned element) {
  if (!uses_ || uses_->node != &node) {
    numLookedAt_ += graph.nodes.size();
    if (numLookedAt_ > maxLookedAt)
      return false;
    uses_.emplace(*this, node);
  }
  llvm::ArrayRef<ValueId> roots = uses_->roots.roots(value);
  const TensorType *recorded = elements(node)[element].asTensor();
  if (roots.size() != 1 || !recorded || trace.tensorType(value) != *recorded ||
      uses_->byNode.lookup(roots.front()) != 1 || uses_->after.lookup(roots.front()) != 0)
    return false;
  if (!trace.isArgument(roots.front()))
    return true;
  auto newValue = uses_->newValues.find(value);
  return newValue != uses_->newValues.end() && node.takenBy[element] == newValue->second;
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

GraphLowering::Generator *GraphLowering::findGenerator(Device device, ValueId given,
                                                       const Node &node) {
  for (Generator &generator : generators_)
    if (given ? generator.state == given : generator.device == device && !generator.name.empty())
      return &generator;
  if (given) {
    generators_.push_back({given, device, "", 0});
    return &generators_.back();
  }
  const OpSpec *read = trace.registry().lookup("generator_read");
  if (!read || !trace.registry().lookup("generator_advance"))
    return nullptr;
  bool isFirst = llvm::all_of(generators_, [](const Generator &g) { return g.name.empty(); });
  std::string name = isFirst ? "default" : "default." + deviceName(device);
  OpId op = append("generator_read", {}, {{"generator", name}, {"device", device}},
                   Type(RNGStateType{device}), node.where, uniqueName("rng_state"));
  generators_.push_back({trace.op(op).result(), device, name, 0});
  return &generators_.back();
}

std::pair<ValueId, int64_t> GraphLowering::draw(Device device, ValueId given, int64_t count,
                                                const Node &node) {
  Generator *generator = findGenerator(device, given, node);
  if (!generator)
    return {};
  int64_t offset = generator->used;
  if (llvm::AddOverflow(offset, count, generator->used)) {
    generator->used = offset;
    return {};
  }
  return {generator->state, offset};
}

void GraphLowering::advanceGenerators(JSONCursor where) {
  for (const Generator &generator : generators_) {
    if (generator.name.empty())
      continue;
    append("generator_advance", {},
           {{"generator", generator.name}, {"device", generator.device}, {"count", generator.used}},
           std::nullopt, where);
  }
}

ValueId GraphLowering::stateOf(const Attention &attention) {
  if (attention.side == side || !attention.state)
    return attention.state;
  for (const SavedState &saved : savedStates)
    if (saved.forward == attention.state)
      return saved.backward;
  llvm::StringRef name = forwardTrace->name(attention.state);
  ValueId argument = trace.addArgument(forwardTrace->type(attention.state), uniqueName(name));
  savedStates.push_back({attention.state, argument, /*isAdded=*/true});
  return argument;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

OpId GraphLowering::append(llvm::StringRef core, llvm::ArrayRef<ValueId> operands,
                           AttributeInits attributes, std::optional<Type> type, JSONCursor where,
                           llvm::StringRef resultName) {
  OpInit init;
  init.spec = trace.registry().lookup(core);
  if (!init.spec)
    init.spec = trace.opaqueSpec(core);
  init.operands.assign(operands.begin(), operands.end());
  for (const auto &[name, value] : attributes) {
    const AttributeSpec *known = init.spec->findAttribute(name);
    if (!known || !(known->defaultValue == value))
      init.attributes.emplace_back(name, value);
  }
  if (type)
    init.resultTypes.push_back(std::move(*type));
  init.resultNames.push_back(resultName);
  OpId op = trace.createOp(std::move(init));
  trace.append(Trace::topBody(), op);
  trace.setLocation(op, where.location(), /*isExplicit=*/false);
  return op;
}

void GraphLowering::lowerNodes() {
  for (const Node &node : graph.nodes)
    lowerNode(node);
}

void GraphLowering::lowerNode(const Node &node) {
  if (node.element) {
    const auto &elements = elements_[node.tuple - graph.numInputs];
    bool isTuple = graph.values[node.value].result.kind == Result::Kind::Tuple;
    if (!isTuple && *node.element < elements.size())
      bindings_[node.value] = elements[*node.element];
  } else if (!lowerMapped(node)) {
    lowerOpaque(node);
  }
}

bool GraphLowering::lowerMapped(const Node &node) {
  llvm::StringRef op = node.op;
  llvm::ArrayRef<Argument> args = node.args;
  llvm::ArrayRef<std::pair<std::string, Argument>> kwargs = node.kwargs;
  std::vector<std::pair<std::string, Argument>> kwargsOfInner;
  ValueId given;
  // `graphsafe_run_with_rng_state(op, args..., rng_state=state)` is that op, drawing from `state`.
  if (op == withStateName) {
    if (args.empty() || args[0].kind != Argument::Kind::Name)
      return false;
    op = *args[0].literal.asString();
    args = args.drop_front();
    for (const auto &kwarg : kwargs) {
      if (kwarg.first == "rng_state")
        given = valueOf(kwarg.second);
      else
        kwargsOfInner.push_back(kwarg);
    }
    kwargs = kwargsOfInner;
    if (!given || !trace.type(given).asRNGState())
      return false;
  }
  const Mapping *mapping = state.mappings.lookup(op);
  if (!mapping)
    return false;
  Call call(*this, node, mapping->parameters, args, kwargs, given);
  if (!call.failed())
    mapping->lower(call, mapping->core);
  if (call.failed())
    call.undo();
  return !call.failed();
}

//===----------------------------------------------------------------------===//
// Opaque ops
//===----------------------------------------------------------------------===//

/// An argument as an attribute. A value in it becomes an operand and is written `"%3"`, by the
/// position of that operand.
Attribute GraphLowering::describe(const Argument &argument,
                                  llvm::SmallVectorImpl<ValueId> &operands) {
  switch (argument.kind) {
  case Argument::Kind::Literal:
  case Argument::Kind::Name:
    return argument.literal;
  case Argument::Kind::Ref:
    if (ValueId value = valueOf(argument)) {
      operands.push_back(value);
      return "%" + std::to_string(operands.size() - 1);
    }
    return bindings_[argument.ref].literal;
  case Argument::Kind::List:
    break;
  }
  Attribute::List list;
  for (const Argument &element : argument.list)
    list.push_back(describe(element, operands));
  return list;
}

void GraphLowering::lowerOpaque(const Node &node) {
  OpInit init;
  std::string opName = node.op;
  while (trace.registry().lookup(opName)) // a name that means another op
    opName.insert(0, "fx.");
  init.spec = trace.opaqueSpec(opName);
  std::deque<std::string> attributeNames;
  llvm::StringSet<> taken;
  auto add = [&](llvm::StringRef name, Attribute value) {
    std::string unique = name.str();
    while (!taken.insert(unique).second)
      unique += '_';
    init.attributes.emplace_back(attributeNames.emplace_back(std::move(unique)), std::move(value));
  };
  // An argument that is an operand needs no attribute: those before it say which one it is.
  for (size_t i = 0; i < node.args.size(); ++i) {
    Attribute value = describe(node.args[i], init.operands);
    bool isOperand = node.args[i].kind == Argument::Kind::Ref && value.asString();
    if (!isOperand)
      add("arg" + std::to_string(i), std::move(value));
  }
  for (const auto &[name, argument] : node.kwargs)
    add(name, describe(argument, init.operands));

  llvm::ArrayRef<Result> recorded = elements(node);
  Attribute::List given;
  for (unsigned i = 0; i < recorded.size(); ++i) {
    if (!recorded[i].type)
      continue;
    given.push_back(int64_t(i));
    init.resultTypes.push_back(*recorded[i].type);
    init.resultNames.push_back(elementName(node, i));
  }
  if (given.size() != recorded.size() && !given.empty())
    add("elements", std::move(given));

  OpId op = trace.createOp(std::move(init));
  trace.append(Trace::topBody(), op);
  trace.setModulePath(op, node.module);
  trace.setLocation(op, node.where.location(), /*isExplicit=*/false);
  unsigned result = 0;
  for (unsigned i = 0; i < recorded.size(); ++i) {
    Binding binding;
    if (recorded[i].type)
      binding.value = trace.op(op).result(result++);
    bindElement(node, i, std::move(binding));
  }
}
