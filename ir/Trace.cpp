//===- Trace.cpp - A straight-line program in SSA form ----------------------===//

#include "rondo/ir/Trace.h"

#include "rondo/ir/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace rondo;

llvm::StringRef rondo::tracePropertyName(TraceProperties single) {
  switch (single) {
  case TraceProperties::Claimed:
    return "claimed";
  case TraceProperties::HasRegions:
    return "regions";
  case TraceProperties::HasDels:
    return "dels";
  case TraceProperties::None:
    break;
  }
  return "none";
}

llvm::StringRef rondo::valueTagName(ValueTags single) {
  switch (single) {
  case ValueTags::Parameter:
    return "parameter";
  case ValueTags::Buffer:
    return "buffer";
  case ValueTags::Static:
    return "static";
  case ValueTags::Recompute:
    return "recompute";
  case ValueTags::None:
    break;
  }
  return "none";
}

//===----------------------------------------------------------------------===//
// Op
//===----------------------------------------------------------------------===//

const Attribute *Op::attribute(llvm::StringRef name) const {
  for (const NamedAttribute &attribute : attributes_)
    if (attribute.name == name)
      return &attribute.value;
  const AttributeSpec *spec = spec_->findAttribute(name);
  return spec && !spec->defaultValue.isNone() ? &spec->defaultValue : nullptr;
}

//===----------------------------------------------------------------------===//
// Trace: construction and copies
//===----------------------------------------------------------------------===//

Trace::Trace(const OpRegistry &registry, llvm::StringRef name)
    : registry_(&registry), name_(name.str()),
      opStorage_(std::make_unique<llvm::SpecificBumpPtrAllocator<Op>>()) {
  bodies_.emplace_back();
}

Trace::Trace(Trace &&) noexcept = default;
Trace &Trace::operator=(Trace &&) noexcept = default;
Trace::~Trace() = default;

Trace Trace::clone() const {
  Trace copy(*registry_, name_);
  copy.properties_ = properties_;
  copy.bodies_ = bodies_;
  copy.domains_ = domains_;
  copy.savedReturns_ = savedReturns_;
  copy.savedArguments_ = savedArguments_;

  llvm::DenseMap<const Type *, const Type *> types;
  copy.values_ = values_;
  for (ValueData &value : copy.values_) {
    const Type *&type = types[value.type];
    if (!type)
      type = copy.internType(*value.type);
    value.type = type;
    value.name = value.name.empty() ? llvm::StringRef() : copy.intern(value.name);
  }
  for (uint32_t i = 0; i < values_.size(); ++i)
    if (auto it = valuePaths_.find(ValueId(i)); it != valuePaths_.end())
      copy.valuePaths_[ValueId(i)] = copy.intern(it->second);

  llvm::DenseMap<const Claim *, const Claim *> claims;
  llvm::DenseMap<const FusionRecord *, const FusionRecord *> records;
  copy.ops_.assign(ops_.size(), nullptr);
  for (uint32_t i = 0; i < ops_.size(); ++i) {
    if (!ops_[i])
      continue;
    Op *op = new (copy.opStorage_->Allocate()) Op(*ops_[i]);
    copy.ops_[i] = op;
    if (op->spec_->opaque)
      op->spec_ = copy.opaqueSpec(op->spec_->name);
    for (NamedAttribute &attribute : op->attributes_)
      attribute.name = copy.intern(attribute.name);
    if (!op->modulePath_.empty())
      op->modulePath_ = copy.intern(op->modulePath_);
    if (op->location_)
      op->location_ = &copy.locations_.emplace_back(*op->location_);
    if (op->claim_) {
      const Claim *&claim = claims[op->claim_];
      if (!claim)
        claim = &copy.claims_.emplace_back(*op->claim_);
      op->claim_ = claim;
    }
    if (op->fusionRecord_) {
      const FusionRecord *&record = records[op->fusionRecord_];
      if (!record)
        record = &copy.fusionRecords_.emplace_back(*op->fusionRecord_);
      op->fusionRecord_ = record;
    }
  }
  return copy;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

BodyId Trace::owner(ValueId value) const {
  const ValueData &data = valueData(value);
  return data.op ? ops_[data.op.index()]->body_ : data.body;
}

llvm::StringRef Trace::valuePath(ValueId value) const { return valuePaths_.lookup(value); }

void Trace::setName(ValueId value, llvm::StringRef name) {
  assert((name.empty() || isValueName(name)) && "malformed value name");
  values_[value.index()].name = name.empty() ? llvm::StringRef() : intern(name);
}

void Trace::setValuePath(ValueId value, llvm::StringRef path) {
  if (path.empty())
    valuePaths_.erase(value);
  else
    valuePaths_[value] = intern(path);
}

bool Trace::isValueName(llvm::StringRef name) {
  auto isHead = [](char c) { return llvm::isAlpha(c) || c == '_'; };
  auto isTail = [&](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; };
  return !name.empty() && isHead(name.front()) && llvm::all_of(name, isTail);
}

ValueId Trace::createValue(const Type &type, llvm::StringRef name, ValueTags tags) {
  ValueId id(values_.size());
  ValueData data;
  data.type = internType(type);
  data.name = name.empty() ? llvm::StringRef() : intern(name);
  data.tags = tags;
  values_.push_back(data);
  return id;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

const Op *Trace::terminator(BodyId body) const {
  llvm::ArrayRef<OpId> order = ops(body);
  if (order.empty())
    return nullptr;
  const Op &last = op(order.back());
  return last.spec().terminator ? &last : nullptr;
}

ValueId Trace::addArgument(BodyId body, const Type &type, llvm::StringRef name, ValueTags tags) {
  ValueId id = createValue(type, name, tags);
  BodyData &data = bodies_[body.index()];
  values_[id.index()].body = body;
  values_[id.index()].index = data.arguments.size();
  data.arguments.push_back(id);
  return id;
}

void Trace::eraseArgument(BodyId body, unsigned i) {
  BodyData &data = bodies_[body.index()];
  data.arguments.erase(data.arguments.begin() + i);
  for (unsigned k = i; k < data.arguments.size(); ++k)
    values_[data.arguments[k].index()].index = k;
  if (body == topBody() && i < savedArguments_.size())
    savedArguments_.erase(savedArguments_.begin() + i);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

OpId Trace::createOp(OpInit init) {
  assert(init.spec && "an op needs a spec");
  OpId id(ops_.size());
  Op *op = new (opStorage_->Allocate()) Op();
  ops_.push_back(op);
  op->id_ = id;
  op->spec_ = init.spec;
  op->operands_ = std::move(init.operands);
  op->attributes_.reserve(init.attributes.size());
  for (auto &[name, value] : init.attributes)
    op->attributes_.push_back({intern(name), std::move(value)});
  llvm::sort(op->attributes_, [](const NamedAttribute &a, const NamedAttribute &b) {
    return a.name < b.name;
  });
  for (size_t i = 0; i < init.resultTypes.size(); ++i)
    addResult(id, init.resultTypes[i],
              i < init.resultNames.size() ? init.resultNames[i] : llvm::StringRef());
  for (unsigned i = 0; i < init.numBodies; ++i)
    addBody(id);
  return id;
}

BodyId Trace::addBody(OpId op) {
  BodyId body(bodies_.size());
  ops_[op.index()]->bodies_.push_back(body);
  bodies_.emplace_back().parent = op;
  return body;
}

void Trace::append(BodyId body, OpId op) {
  assert(!ops_[op.index()]->body_ && "the op is in a body already");
  ops_[op.index()]->body_ = body;
  bodies_[body.index()].ops.push_back(op);
}

void Trace::insert(BodyId body, size_t position, OpId op) {
  assert(!ops_[op.index()]->body_ && "the op is in a body already");
  ops_[op.index()]->body_ = body;
  std::vector<OpId> &order = bodies_[body.index()].ops;
  order.insert(order.begin() + position, op);
}

void Trace::setOps(BodyId body, std::vector<OpId> order) {
  for (OpId op : bodies_[body.index()].ops)
    if (Op *data = ops_[op.index()]; data && data->body_ == body)
      data->body_ = BodyId();
  for (OpId op : order)
    ops_[op.index()]->body_ = body;
  bodies_[body.index()].ops = std::move(order);
}

void Trace::eraseOp(OpId id) {
  Op *op = ops_[id.index()];
  if (op->body_) {
    std::vector<OpId> &order = bodies_[op->body_.index()].ops;
    order.erase(llvm::find(order, id));
  }
  for (BodyId body : op->bodies_)
    eraseBody(body);
  // The values keep their ids; nothing may use them any more.
  ops_[id.index()] = nullptr;
}

void Trace::eraseBody(BodyId body) {
  std::vector<OpId> order = std::move(bodies_[body.index()].ops);
  bodies_[body.index()].ops.clear();
  for (OpId op : order) {
    if (!ops_[op.index()] || ops_[op.index()]->body_ != body)
      continue;
    ops_[op.index()]->body_ = BodyId();
    eraseOp(op);
  }
}

void Trace::setOperands(OpId op, llvm::ArrayRef<ValueId> operands) {
  ops_[op.index()]->operands_.assign(operands.begin(), operands.end());
}

void Trace::setAttribute(OpId op, llvm::StringRef name, Attribute value) {
  std::vector<NamedAttribute> &attributes = ops_[op.index()]->attributes_;
  auto it = llvm::lower_bound(attributes, name, [](const NamedAttribute &a, llvm::StringRef key) {
    return a.name < key;
  });
  if (it != attributes.end() && it->name == name)
    it->value = std::move(value);
  else
    attributes.insert(it, {intern(name), std::move(value)});
}

void Trace::removeAttribute(OpId op, llvm::StringRef name) {
  llvm::erase_if(ops_[op.index()]->attributes_,
                 [&](const NamedAttribute &attribute) { return attribute.name == name; });
}

void Trace::setLocation(OpId op, Location location, bool isExplicit) {
  ops_[op.index()]->location_ = &locations_.emplace_back(std::move(location));
  ops_[op.index()]->explicitLocation_ = isExplicit;
}

// Most claims and records repeat the one before: comparing with the newest few keeps the tables small without hashing.
template <typename T> static const T *internRecent(std::deque<T> &table, const T &item) {
  size_t recent = std::min<size_t>(table.size(), 8);
  for (size_t i = 0; i < recent; ++i)
    if (const T &candidate = table[table.size() - 1 - i]; candidate == item)
      return &candidate;
  return &table.emplace_back(item);
}

void Trace::setClaim(OpId op, const Claim &claim) {
  ops_[op.index()]->claim_ = internRecent(claims_, claim);
}

void Trace::setFusionRecord(OpId op, const FusionRecord &record) {
  ops_[op.index()]->fusionRecord_ = internRecent(fusionRecords_, record);
}

void Trace::setDomain(OpId op, CaptureDomainRef domain) {
  ops_[op.index()]->domain_ = domain.get();
  if (domain)
    domains_.try_emplace(domain.get(), domain);
}

void Trace::copyAnnotations(OpId to, const Trace &other, OpId from) {
  const Op &source = other.op(from);
  if (!source.modulePath().empty())
    setModulePath(to, source.modulePath());
  if (source.location())
    setLocation(to, *source.location(), source.hasExplicitLocation());
  if (source.claim())
    setClaim(to, *source.claim());
  if (source.fusionRecord())
    setFusionRecord(to, *source.fusionRecord());
}

ValueId Trace::addResult(OpId op, const Type &type, llvm::StringRef name, ValueTags tags) {
  ValueId id = createValue(type, name, tags);
  values_[id.index()].op = op;
  values_[id.index()].index = ops_[op.index()]->results_.size();
  ops_[op.index()]->results_.push_back(id);
  return id;
}

void Trace::replaceUses(BodyId body, const llvm::DenseMap<ValueId, ValueId> &replacements) {
  if (replacements.empty())
    return;
  for (OpId id : bodies_[body.index()].ops) {
    for (ValueId &operand : ops_[id.index()]->operands_) {
      // A replacement may itself have been replaced.
      for (auto it = replacements.find(operand); operand && it != replacements.end();
           it = replacements.find(operand))
        operand = it->second;
    }
    for (BodyId nested : ops_[id.index()]->bodies_)
      replaceUses(nested, replacements);
  }
}

//===----------------------------------------------------------------------===//
// Interning
//===----------------------------------------------------------------------===//

const Type *Trace::internType(const Type &type) {
  llvm::SmallVector<const Type *, 1> &bucket = typesByHash_[size_t(hash_value(type)) >> 2];
  for (const Type *candidate : bucket)
    if (*candidate == type)
      return candidate;
  bucket.push_back(&types_.emplace_back(type));
  return bucket.back();
}

const OpSpec *Trace::opaqueSpec(llvm::StringRef name) {
  const OpSpec *&known = opaqueSpecsByName_[name];
  if (known)
    return known;
  auto spec = std::make_unique<OpSpec>();
  spec->name = name.str();
  spec->summary = "an op that the registry does not know";
  spec->operands = {{"operands", OperandKind::Any, Arity::Variadic}};
  spec->variadicResults = true;
  spec->unknownAttributes = true;
  spec->opaque = true;
  spec->resources = {{ResourceKind::Unknown, "", true}};
  known = spec.get();
  opaqueSpecs_.push_back(std::move(spec));
  return known;
}

Location rondo::locationOf(const Trace &trace, OpId op) {
  if (op.isValid() && op.index() < trace.numOps() && !trace.isErased(op)) {
    if (const Location *location = trace.op(op).location(); location && location->isKnown())
      return *location;
    Location location;
    llvm::raw_string_ostream text(location.path);
    text << '@' << trace.name() << ": ";
    printOp(trace, op, text);
    text.flush();
    return location;
  }
  return {};
}
