//===- FXCall.cpp - One ATen call on its way to core ops --------------------===//

#include "FXCall.h"

#include "rondo/ir/TraceBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace rondo;
using namespace rondo::fx;

Call::Call(GraphLowering &lowering, const Node &node, llvm::StringRef parameters,
           llvm::ArrayRef<Argument> args, llvm::ArrayRef<std::pair<std::string, Argument>> kwargs,
           ValueId state)
    : lowering_(lowering), node_(node), state_(state), noArgument_(node.where) {
  noArgument_.kind = Argument::Kind::Name;
  llvm::SmallVector<llvm::StringRef, 12> names;
  llvm::SplitString(parameters, names);
  for (llvm::StringRef name : names)
    parameters_.push_back({name, nullptr, false});
  failed_ = args.size() > parameters_.size();
  args = args.take_front(parameters_.size());
  for (size_t i = 0; i < args.size(); ++i)
    parameters_[i].argument = &args[i];
  for (const auto &[name, argument] : kwargs) {
    auto it = llvm::find_if(parameters_, [&, key = llvm::StringRef(name)](const Parameter &p) {
      return p.name == key;
    });
    if (it == parameters_.end() || it->argument)
      failed_ = true;
    else
      it->argument = &argument;
  }
}

void Call::refuse(const llvm::Twine &message) {
  node_.where.error(llvm::Twine("'") + node_.op + "' " + message);
  fail();
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

const Attribute *Call::literal(const Argument &argument) const {
  if (argument.kind == Argument::Kind::Literal)
    return &argument.literal;
  if (argument.kind != Argument::Kind::Ref)
    return nullptr;
  const Binding &binding = lowering_.binding(argument.ref);
  return binding.value || binding.seed ? nullptr : &binding.literal;
}

const Argument *Call::find(llvm::StringRef parameter) {
  for (Parameter &candidate : parameters_) {
    if (candidate.name != parameter)
      continue;
    candidate.isRead = true;
    if (!candidate.argument)
      return nullptr;
    const Attribute *value = literal(*candidate.argument);
    return value && value->isNone() ? nullptr : candidate.argument;
  }
  return nullptr;
}

/// The argument; when absent, one that is of no form that anyone asks for.
const Argument &Call::require(llvm::StringRef parameter) {
  if (const Argument *argument = find(parameter))
    return *argument;
  fail();
  return noArgument_;
}

bool Call::isAbsent(llvm::StringRef parameter) {
  return !find(parameter);
}

ValueId Call::tensor(llvm::StringRef parameter) {
  ValueId value = lowering_.valueOf(require(parameter));
  if (value && lowering_.trace.type(value).isTensor())
    return value;
  fail();
  return {};
}

ValueId Call::optionalTensor(llvm::StringRef parameter) {
  return isAbsent(parameter) ? ValueId() : tensor(parameter);
}

llvm::SmallVector<ValueId, 4> Call::allTensors() {
  llvm::SmallVector<ValueId, 4> values;
  for (size_t i = 0; i < parameters_.size(); ++i)
    values.push_back(optionalTensor(parameters_[i].name));
  return values;
}

llvm::SmallVector<ValueId, 4> Call::optionalTensors(llvm::StringRef parameter) {
  llvm::SmallVector<ValueId, 4> values;
  const Argument &argument = require(parameter);
  if (argument.kind != Argument::Kind::List)
    fail();
  for (const Argument &element : argument.list) {
    ValueId value = lowering_.valueOf(element);
    const Attribute *given = literal(element);
    bool isAbsent = given && given->isNone();
    if (!isAbsent && (!value || !lowering_.trace.type(value).isTensor()))
      fail();
    values.push_back(value);
  }
  return values;
}

llvm::SmallVector<ValueId, 4> Call::tensors(llvm::StringRef parameter) {
  llvm::SmallVector<ValueId, 4> values = optionalTensors(parameter);
  if (llvm::any_of(values, [](ValueId value) { return !value; }))
    fail();
  return values;
}

std::pair<ValueId, std::optional<Attribute>> Call::operandOrNumber(llvm::StringRef parameter) {
  const Argument &argument = require(parameter);
  if (literal(argument))
    return {ValueId(), number(parameter)};
  ValueId value = lowering_.valueOf(argument);
  if (!value || lowering_.trace.type(value).asRNGState())
    fail();
  return {value, std::nullopt};
}

Attribute Call::number(llvm::StringRef parameter) {
  const Attribute *value = literal(require(parameter));
  if (value && (value->asBool() || value->asNumber()))
    return *value;
  fail();
  return 0;
}

std::optional<Attribute> Call::optionalNumber(llvm::StringRef parameter) {
  return isAbsent(parameter) ? std::nullopt : std::optional(number(parameter));
}

int64_t Call::integer(llvm::StringRef parameter) {
  const Attribute *value = literal(require(parameter));
  if (value && value->asInt())
    return *value->asInt();
  fail();
  return 0;
}

int64_t Call::integer(llvm::StringRef parameter, int64_t ifAbsent) {
  return isAbsent(parameter) ? ifAbsent : integer(parameter);
}

bool Call::boolean(llvm::StringRef parameter, bool ifAbsent) {
  const Argument *argument = find(parameter);
  if (!argument)
    return ifAbsent;
  const Attribute *value = literal(*argument);
  if (value && value->asBool())
    return *value->asBool();
  fail();
  return ifAbsent;
}

llvm::SmallVector<int64_t, 4> Call::integers(llvm::StringRef parameter) {
  llvm::SmallVector<int64_t, 4> numbers;
  const Argument &argument = require(parameter);
  if (const Attribute *single = literal(argument); single && single->asInt())
    return {*single->asInt()};
  if (argument.kind != Argument::Kind::List)
    fail();
  for (const Argument &element : argument.list) {
    const Attribute *value = literal(element);
    if (!value || !value->asInt())
      fail();
    else
      numbers.push_back(*value->asInt());
  }
  return numbers;
}

Attribute::List Call::booleans(llvm::StringRef parameter) {
  Attribute::List flags;
  const Argument *argument = find(parameter);
  if (!argument)
    return flags;
  if (argument->kind != Argument::Kind::List)
    fail();
  for (const Argument &element : argument->list) {
    const Attribute *value = literal(element);
    if (!value || !value->asBool())
      fail();
    else
      flags.push_back(*value);
  }
  return flags;
}

std::optional<DType> Call::dtype(llvm::StringRef parameter) {
  const Argument *argument = find(parameter);
  if (!argument)
    return std::nullopt;
  if (const Attribute *value = literal(*argument); value && value->asDType())
    return *value->asDType();
  fail();
  return std::nullopt;
}

std::optional<Device> Call::device(llvm::StringRef parameter) {
  const Argument *argument = find(parameter);
  if (!argument)
    return std::nullopt;
  if (const Attribute *value = literal(*argument); value && value->asDevice())
    return *value->asDevice();
  fail();
  return std::nullopt;
}

llvm::StringRef Call::name(llvm::StringRef parameter) {
  const Argument *argument = find(parameter);
  if (!argument)
    return "";
  if (argument->kind == Argument::Kind::Name)
    return *argument->literal.asString();
  fail();
  return "";
}

llvm::StringRef Call::string(llvm::StringRef parameter, llvm::StringRef ifAbsent) {
  const Argument *argument = find(parameter);
  if (!argument)
    return ifAbsent;
  if (argument->kind == Argument::Kind::Literal && argument->literal.asString())
    return *argument->literal.asString();
  fail();
  return ifAbsent;
}

const Attention *Call::seed(llvm::StringRef parameter) {
  const Argument *argument = find(parameter);
  return argument && argument->kind == Argument::Kind::Ref ? lowering_.binding(argument->ref).seed
                                                           : nullptr;
}

void Call::ignore(llvm::StringRef parameters) {
  llvm::SmallVector<llvm::StringRef, 8> names;
  llvm::SplitString(parameters, names);
  for (llvm::StringRef name : names)
    find(name);
}

bool Call::allRead() const {
  return llvm::all_of(parameters_, [&](const Parameter &parameter) {
    if (parameter.isRead || !parameter.argument)
      return true;
    const Attribute *value = literal(*parameter.argument);
    return value && value->isNone();
  });
}

//===----------------------------------------------------------------------===//
// Dimensions and types
//===----------------------------------------------------------------------===//

/// `dim` counted from the front; nothing if it is out of range.
static std::optional<int64_t> normalised(int64_t dim, unsigned rank) {
  int64_t count = std::max(rank, 1u);
  if (dim < -count || dim >= count)
    return std::nullopt;
  return dim < 0 ? dim + count : dim;
}

int64_t Call::dim(llvm::StringRef parameter, unsigned rank) {
  if (std::optional<int64_t> dim = normalised(integer(parameter), rank))
    return *dim;
  fail();
  return 0;
}

int64_t Call::dim(llvm::StringRef parameter, unsigned rank, int64_t ifAbsent) {
  if (!isAbsent(parameter))
    return dim(parameter, rank);
  return normalised(ifAbsent, rank).value_or(0);
}

llvm::SmallVector<int64_t, 4> Call::dims(llvm::StringRef parameter, unsigned rank) {
  llvm::SmallVector<int64_t, 4> dims = integers(parameter);
  for (int64_t &dim : dims) {
    std::optional<int64_t> fromFront = normalised(dim, rank);
    if (!fromFront)
      fail();
    dim = fromFront.value_or(0);
  }
  return dims;
}

const TensorType &Call::type(ValueId value) const {
  if (!value || !lowering_.trace.type(value).isTensor())
    return noType_;
  return lowering_.trace.tensorType(value);
}

llvm::SmallVector<int64_t, 4> Call::shape(ValueId value) const {
  return asConstants(type(value).shape).value_or(llvm::SmallVector<int64_t, 4>());
}

const TensorType *Call::recorded(unsigned element) const {
  llvm::ArrayRef<Result> elements = lowering_.elements(node_);
  return element < elements.size() ? elements[element].asTensor() : nullptr;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

std::pair<ValueId, int64_t> Call::draw(Device device, int64_t count) {
  if (!allRead())
    fail();
  std::pair<ValueId, int64_t> drawn;
  if (!failed_)
    drawn = lowering_.draw(device, state_, count, node_);
  if (!drawn.first)
    fail();
  return drawn;
}

/// `attributes` without those that say what is the default anyway.
static AttributeList withoutDefaults(const OpSpec &spec, AttributeInits attributes) {
  AttributeList kept;
  for (const auto &[name, value] : attributes) {
    const AttributeSpec *known = spec.findAttribute(name);
    if (!known || known->defaultValue.isNone() || !(known->defaultValue == value))
      kept.emplace_back(name, value);
  }
  return kept;
}

/// Types that follow from operands and attributes; none if they do not fit. The verifier will say
/// why.
llvm::SmallVector<Type, 4> Call::infer(const OpSpec &spec, llvm::ArrayRef<ValueId> operands,
                                       AttributeInits attributes) const {
  llvm::SmallVector<const Type *, 4> types;
  for (ValueId operand : operands)
    types.push_back(operand ? &lowering_.trace.type(operand) : nullptr);
  std::vector<NamedAttribute> named;
  for (const auto &[name, value] : attributes)
    named.push_back({name, value});
  llvm::sort(named,
             [](const NamedAttribute &a, const NamedAttribute &b) { return a.name < b.name; });
  llvm::SmallVector<Type, 4> results;
  if (llvm::Error error = inferResultTypes(spec, types, named, results)) {
    llvm::consumeError(std::move(error));
    results.clear();
  }
  return results;
}

/// Returns true if two types differ only in strides that no element depends on. PyTorch's fake and
/// real tensors do not agree on the stride of a dimension of size 1.
static bool isSameView(const Type &inferred, const Type &recorded) {
  const TensorType *a = inferred.asTensor(), *b = recorded.asTensor();
  if (!a || !b || a->dtype != b->dtype || a->device != b->device || a->shape != b->shape)
    return false;
  for (unsigned i = 0; i < a->rank(); ++i)
    if (a->strides[i] != b->strides[i] && !a->shape[i].isConstant(1))
      return a->numElements().isConstant(0);
  return true;
}

static llvm::ArrayRef<ValueId> withoutTrailingAbsent(llvm::ArrayRef<ValueId> operands) {
  while (!operands.empty() && !operands.back())
    operands = operands.drop_back();
  return operands;
}

OpId Call::create(const OpSpec &spec, llvm::ArrayRef<ValueId> operands, AttributeInits attributes,
                  llvm::ArrayRef<Type> types) {
  OpInit init;
  init.spec = &spec;
  init.operands.assign(operands.begin(), operands.end());
  init.attributes.append(attributes.begin(), attributes.end());
  init.resultTypes.append(types.begin(), types.end());
  Trace &trace = lowering_.trace;
  OpId op = trace.createOp(std::move(init));
  trace.append(Trace::topBody(), op);
  trace.setModulePath(op, node_.module);
  trace.setLocation(op, node_.where.location(), /*isExplicit=*/false);
  emitted_.push_back(op);
  return op;
}

ValueId Call::emitValue(llvm::StringRef core, llvm::ArrayRef<ValueId> operands,
                        AttributeInits attributes) {
  if (!allRead())
    fail();
  const OpSpec *spec = failed_ ? nullptr : lowering_.trace.registry().lookup(core);
  if (!spec) {
    fail();
    return {};
  }
  AttributeList kept = withoutDefaults(*spec, attributes);
  operands = withoutTrailingAbsent(operands);
  llvm::SmallVector<Type, 4> types = infer(*spec, operands, kept);
  if (types.size() != 1) {
    fail();
    return {};
  }
  return lowering_.trace.op(create(*spec, operands, kept, types)).result();
}

void Call::emit(llvm::StringRef core, llvm::ArrayRef<ValueId> operands, AttributeInits attributes,
                std::optional<llvm::ArrayRef<unsigned>> elements, const Attention *seed) {
  if (!allRead())
    fail();
  const OpSpec *spec = failed_ ? nullptr : lowering_.trace.registry().lookup(core);
  if (!spec)
    return fail();
  AttributeList kept = withoutDefaults(*spec, attributes);
  operands = withoutTrailingAbsent(operands);
  llvm::SmallVector<Type, 4> types = infer(*spec, operands, kept);

  llvm::ArrayRef<Result> recorded = lowering_.elements(node_);
  if (types.empty()) {
    size_t count = elements ? elements->size() : recorded.size();
    types.assign(count, Type(TensorType()));
    for (size_t i = 0; i < count; ++i)
      if (unsigned element = elements ? (*elements)[i] : i;
          element >= recorded.size() || !recorded[element].type)
        return fail();
  }
  llvm::SmallVector<std::optional<unsigned>, 4> resultOf(recorded.size());
  for (unsigned i = 0; i < types.size() && (!elements || i < elements->size()); ++i) {
    unsigned element = elements ? (*elements)[i] : i;
    if (element >= recorded.size())
      continue;
    resultOf[element] = i;
    if (recorded[element].type &&
        !(spec->isView() && isSameView(types[i], *recorded[element].type)))
      types[i] = *recorded[element].type;
  }
  for (unsigned i = 0; i < recorded.size(); ++i)
    if (!resultOf[i] && !seed && recorded[i].type && recorded[i].value.isNone())
      return fail();

  Trace &trace = lowering_.trace;
  OpId op = create(*spec, operands, kept, types);
  for (unsigned i = 0; i < recorded.size(); ++i) {
    Binding binding;
    if (resultOf[i] && recorded[i].type) {
      binding.value = trace.op(op).result(*resultOf[i]);
      trace.setName(binding.value, lowering_.elementName(node_, i));
    } else if (seed && recorded[i].kind == Result::Kind::Tensor) {
      binding.seed = seed;
    } else {
      binding.literal = recorded[i].value;
    }
    lowering_.bindElement(node_, i, std::move(binding));
  }
}

llvm::SmallVector<ValueId, 4> Call::emitUpdate(llvm::StringRef core,
                                               llvm::ArrayRef<ValueId> operands,
                                               AttributeInits attributes,
                                               llvm::ArrayRef<unsigned> renamed) {
  if (!allRead())
    fail();
  const OpSpec *spec = failed_ ? nullptr : lowering_.trace.registry().lookup(core);
  if (!spec) {
    fail();
    return llvm::SmallVector<ValueId, 4>(renamed.size());
  }
  // What does not fit is found by the verifier, which says why.
  llvm::SmallVector<Type, 4> types;
  for (unsigned operand : renamed)
    if (operand < operands.size() && operands[operand])
      types.push_back(lowering_.trace.type(operands[operand]));
  OpId op = create(*spec, withoutTrailingAbsent(operands), withoutDefaults(*spec, attributes),
                   types);
  llvm::ArrayRef<ValueId> results = lowering_.trace.op(op).results();
  return {results.begin(), results.end()};
}

void Call::undo() {
  for (OpId op : llvm::reverse(emitted_))
    lowering_.trace.eraseOp(op);
  emitted_.clear();
}
