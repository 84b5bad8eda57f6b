//===- TraceBuilder.cpp - Building traces from code -------------------------===//

#include "rondo/ir/TraceBuilder.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Verifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace rondo;

TraceBuilder::TraceBuilder(const OpRegistry &registry, llvm::StringRef name)
    : trace_(registry, name) {}

TraceBuilder::TraceBuilder(Trace trace) : trace_(std::move(trace)) {
  for (uint32_t i = 0; i < trace_.numValues(); ++i)
    if (ValueId value(i); trace_.isArgument(value))
      names_.try_emplace({trace_.owner(value), trace_.name(value)}, 1);
  forEachOp(trace_, [&](const Op &op) { recordOp(op); });
}

ValueId TraceBuilder::argument(llvm::StringRef name, const Type &type, ValueTags tags) {
  return trace_.addArgument(body_, type, uniqueName(name), tags);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

ValueId TraceBuilder::op(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                         llvm::ArrayRef<AttributeInit> attributes) {
  llvm::SmallVector<ValueId, 4> results = ops(name, operands, attributes);
  if (lastOp_ && results.size() != 1)
    fail("'" + name + "' op has " + llvm::Twine(results.size()) + " results, expected one");
  return results.size() == 1 ? results.front() : poison();
}

llvm::SmallVector<ValueId, 4> TraceBuilder::ops(llvm::StringRef name,
                                                llvm::ArrayRef<ValueId> operands,
                                                llvm::ArrayRef<AttributeInit> attributes) {
  return create(name, operands, attributes, std::nullopt);
}

llvm::SmallVector<ValueId, 4>
TraceBuilder::opWithTypes(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                          llvm::ArrayRef<Type> resultTypes,
                          llvm::ArrayRef<AttributeInit> attributes) {
  return create(name, operands, attributes, resultTypes);
}

void TraceBuilder::returnValues(llvm::ArrayRef<ValueId> values) {
  create(core::returnOp, values, {}, std::nullopt);
}

void TraceBuilder::fail(const llvm::Twine &message) {
  lastOp_ = OpId();
  diagnostics_.error(location_.value_or(Location{"", 0, 0, "@" + trace_.name().str()}), message);
}

const OpSpec *TraceBuilder::lookup(llvm::StringRef name) {
  if (const OpSpec *spec = trace_.registry().lookup(name))
    return spec;
  llvm::SmallVector<llvm::StringRef, 0> known;
  for (const std::unique_ptr<OpSpec> &spec : trace_.registry().ops())
    known.push_back(spec->name);
  fail("unknown op '" + name + "'" + didYouMean(name, known));
  return nullptr;
}

bool TraceBuilder::resolveOperands(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                                   llvm::SmallVectorImpl<ValueId> &resolved) {
  for (size_t i = 0; i < operands.size(); ++i) {
    ValueId operand = operands[i];
    if (!operand) {
      resolved.push_back(operand);
      continue;
    }
    if (operand.index() >= trace_.numValues()) {
      fail("'" + name + "' op operand #" + llvm::Twine(i) + " is no value of this trace");
      return false;
    }
    if (poisoned_.count(operand)) {
      lastOp_ = OpId();
      return false;
    }
    ValueId newest = current(operand);
    if (!newest)
      return false;
    resolved.push_back(newest);
  }
  return true;
}

llvm::SmallVector<ValueId, 4>
TraceBuilder::create(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                     llvm::ArrayRef<AttributeInit> attributes,
                     std::optional<llvm::ArrayRef<Type>> resultTypes,
                     llvm::ArrayRef<BuildBody> bodies) {
  const OpSpec *spec = lookup(name);
  OpInit init;
  if (!spec || !resolveOperands(name, operands, init.operands))
    return {};
  init.spec = spec;
  init.numBodies = bodies.size();

  llvm::SmallVector<const Type *, 4> operandTypes;
  for (ValueId operand : init.operands)
    operandTypes.push_back(operand ? &trace_.type(operand) : nullptr);
  llvm::SmallVector<NamedAttribute, 4> named;
  for (const AttributeInit &attribute : attributes)
    named.push_back({trace_.intern(attribute.first), attribute.second});
  llvm::Error error = resultTypes ? checkOp(*spec, operandTypes, named)
                                  : inferResultTypes(*spec, operandTypes, named, init.resultTypes);
  if (error) {
    fail(llvm::toString(std::move(error)));
    return {};
  }
  if (resultTypes)
    init.resultTypes.assign(resultTypes->begin(), resultTypes->end());
  init.attributes.assign(attributes.begin(), attributes.end());

  OpId id = trace_.createOp(std::move(init));
  if (!modulePath_.empty())
    trace_.setModulePath(id, modulePath_);
  if (location_)
    trace_.setLocation(id, *location_);
  if (!buildBodies(id, bodies))
    return {};
  trace_.append(body_, id);
  lastOp_ = id;
  recordOp(trace_.op(id));
  llvm::ArrayRef<ValueId> results = trace_.op(id).results();
  return {results.begin(), results.end()};
}

llvm::SmallVector<ValueId, 4> TraceBuilder::opWithBodies(llvm::StringRef name,
                                                         llvm::ArrayRef<ValueId> operands,
                                                         llvm::ArrayRef<AttributeInit> attributes,
                                                         llvm::ArrayRef<BuildBody> bodies) {
  return create(name, operands, attributes, std::nullopt, bodies);
}

bool TraceBuilder::buildBodies(OpId id, llvm::ArrayRef<BuildBody> bodies) {
  const Op &op = trace_.op(id);
  if (op.spec().bodies == BodyKind::None)
    return true;
  // The operands that the bodies get: all but the condition of an `if`.
  llvm::ArrayRef<ValueId> passed = op.operands();
  if (op.spec().bodies == BodyKind::If && !passed.empty())
    passed = passed.drop_front();
  size_t errorsBefore = diagnostics_.numErrors();
  for (size_t i = 0; i < bodies.size(); ++i) {
    llvm::SaveAndRestore<BodyId> nested(body_, op.bodies()[i]);
    llvm::SmallVector<ValueId, 4> arguments;
    for (ValueId operand : passed)
      arguments.push_back(argument(trace_.name(operand), trace_.type(operand)));
    returnValues(bodies[i](*this, arguments));
  }
  if (diagnostics_.numErrors() != errorsBefore) {
    lastOp_ = OpId();
    return false;
  }
  // Results are what the last body returns.
  if (const Op *ret = bodies.empty() ? nullptr : trace_.terminator(op.bodies().back()))
    for (ValueId value : ret->operands())
      trace_.addResult(id, trace_.type(value));
  return true;
}

void TraceBuilder::nameResults(llvm::ArrayRef<llvm::StringRef> names) {
  if (!lastOp_)
    return;
  llvm::ArrayRef<ValueId> results = trace_.op(lastOp_).results();
  for (size_t i = 0; i < std::min(names.size(), results.size()); ++i)
    trace_.setName(results[i], uniqueName(names[i]));
}

std::string TraceBuilder::uniqueName(llvm::StringRef name) {
  if (name.empty())
    return {};
  if (!Trace::isValueName(name)) {
    diagnostics_.error(location_.value_or(Location()), "malformed value name '" + name + "'");
    return {};
  }
  std::string unique = name.str();
  while (!names_.try_emplace({body_, trace_.intern(unique)}, 1).second)
    unique = (name + "_" + llvm::Twine(names_[{body_, trace_.intern(name)}]++)).str();
  return unique;
}

ValueId TraceBuilder::poison() {
  // Any type will do: nothing that uses the value is ever made.
  if (!poisonValue_) {
    OpInit init;
    init.spec = trace_.opaqueSpec("poison");
    init.resultTypes.push_back(ScalarKind::I64);
    OpId op = trace_.createOp(std::move(init));
    poisonValue_ = trace_.op(op).result();
    trace_.eraseOp(op);
    poisoned_.insert(poisonValue_);
  }
  return poisonValue_;
}

//===----------------------------------------------------------------------===//
// In-place ops
//===----------------------------------------------------------------------===//

ValueId TraceBuilder::rootOf(ValueId value) const {
  auto it = root_.find(value);
  return it == root_.end() ? value : it->second;
}

void TraceBuilder::recordOp(const Op &op) {
  for (ValueId result : op.results())
    if (!trace_.name(result).empty())
      names_.try_emplace({op.body(), trace_.name(result)}, 1);
  getEffects(trace_, op.id(), effects_);
  for (ViewEffect view : effects_.views)
    // A value that may view any of several is nobody's certain name.
    if (effects_.viewedBy(view.result).size() == 1)
      root_[op.result(view.result)] = rootOf(op.operand(view.operand));
  for (unsigned i : effects_.writes) {
    ValueId written = op.operand(i);
    Write &write = writes_[rootOf(written)];
    ++write.count;
    write.newest = ValueId();
    for (ViewEffect view : effects_.views)
      if (view.operand == i) {
        write.newest = op.result(view.result);
        // What a body returns may be a part of what it was given.
        if (trace_.type(write.newest) == trace_.type(written))
          renamed_[written] = write.newest;
      }
  }
  for (ValueId result : op.results())
    if (auto it = writes_.find(rootOf(result)); it != writes_.end())
      madeAt_[result] = it->second.count;
}

ValueId TraceBuilder::current(ValueId value) {
  auto write = writes_.find(rootOf(value));
  if (write == writes_.end() || madeAt_.lookup(value) == write->second.count)
    return value;
  if (auto it = renamed_.find(value); it != renamed_.end())
    return current(it->second);
  ValueId renewed = renew(value, write->second.newest);
  if (renewed)
    renamed_[value] = renewed;
  return renewed;
}

ValueId TraceBuilder::renew(ValueId value, ValueId newest) {
  OpId definition = trace_.definingOp(value);
  if (definition && trace_.op(definition).spec().isView()) {
    // The same view, of the newest name of what it viewed.
    const Op &view = trace_.op(definition);
    llvm::SmallVector<AttributeInit, 4> attributes;
    for (const NamedAttribute &attribute : view.attributes())
      attributes.push_back({attribute.name, attribute.value});
    llvm::SmallVector<ValueId, 4> results = ops(view.name(), view.operands(), attributes);
    return results.empty() ? ValueId() : results[trace_.index(value)];
  }
  const TensorType *type = trace_.type(value).asTensor();
  if (!newest || !type) {
    fail("'%" + trace_.name(value) + "' was written in place by an op that does not return it");
    return {};
  }
  // A view of it was written: the base is the storage from its start.
  ValueId base = op("as_strided", {newest},
                    {{"shape", llvm::ArrayRef<Dim>(type->shape)},
                     {"strides", llvm::ArrayRef<Dim>(type->strides)},
                     {"offset", 0}});
  return poisoned_.count(base) ? ValueId() : base;
}

llvm::Expected<Trace> TraceBuilder::finish() && {
  if (!diagnostics_.hasErrors())
    verify(trace_, diagnostics_);
  if (llvm::Error error = diagnostics_.takeError())
    return error;
  return std::move(trace_);
}
