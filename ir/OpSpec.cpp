//===- OpSpec.cpp - Description of a kind of op ---------------------------===//

#include "rondo/ir/OpSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

namespace rondo {

llvm::StringRef operandKindName(OperandKind kind) {
  switch (kind) {
  case OperandKind::Tensor:
    return "tensor";
  case OperandKind::Scalar:
    return "scalar";
  case OperandKind::TensorOrScalar:
    return "tensor or scalar";
  case OperandKind::RNGState:
    return "rng state";
  case OperandKind::Any:
    return "any";
  }
  llvm_unreachable("no such operand kind");
}

llvm::StringRef attributeKindName(AttributeKind kind) {
  switch (kind) {
  case AttributeKind::Bool:
    return "bool";
  case AttributeKind::Int:
    return "int";
  case AttributeKind::Number:
    return "number";
  case AttributeKind::String:
    return "string";
  case AttributeKind::DType:
    return "dtype";
  case AttributeKind::Device:
    return "device";
  case AttributeKind::IntList:
    return "int list";
  case AttributeKind::BoolList:
    return "bool list";
  case AttributeKind::StringList:
    return "string list";
  case AttributeKind::Any:
    return "any";
  }
  llvm_unreachable("no such attribute kind");
}

static bool isListOf(const Attribute &attribute, Attribute::Kind element) {
  const Attribute::List *list = attribute.asList();
  return list && llvm::all_of(*list, [&](const Attribute &a) { return a.kind() == element; });
}

bool matches(AttributeKind kind, const Attribute &attribute) {
  switch (kind) {
  case AttributeKind::Bool:
    return attribute.asBool();
  case AttributeKind::Int:
    return attribute.asDim();
  case AttributeKind::Number:
    return attribute.asDim() || attribute.asFloat() || attribute.asBool();
  case AttributeKind::String:
    return attribute.asString();
  case AttributeKind::DType:
    return attribute.asDType();
  case AttributeKind::Device:
    return attribute.asDevice();
  case AttributeKind::IntList:
    return isListOf(attribute, Attribute::Kind::Int);
  case AttributeKind::BoolList:
    return isListOf(attribute, Attribute::Kind::Bool);
  case AttributeKind::StringList:
    return isListOf(attribute, Attribute::Kind::String);
  case AttributeKind::Any:
    return true;
  }
  llvm_unreachable("no such attribute kind");
}

const Attribute *OpContext::attribute(llvm::StringRef name) const {
  for (const NamedAttribute &attribute : attributes_)
    if (attribute.name == name)
      return &attribute.value;
  const AttributeSpec *spec = spec_.findAttribute(name);
  return spec && !spec->defaultValue.isNone() ? &spec->defaultValue : nullptr;
}

int64_t OpContext::intAttribute(llvm::StringRef name, int64_t fallback) const {
  const Attribute *found = attribute(name);
  return found ? found->asInt().value_or(fallback) : fallback;
}

bool OpContext::boolAttribute(llvm::StringRef name, bool fallback) const {
  const Attribute *found = attribute(name);
  return found && found->asBool() ? *found->asBool() : fallback;
}

double OpContext::numberAttribute(llvm::StringRef name, double fallback) const {
  const Attribute *found = attribute(name);
  if (!found)
    return fallback;
  if (const bool *value = found->asBool())
    return *value;
  return found->asNumber().value_or(fallback);
}

llvm::StringRef OpContext::stringAttribute(llvm::StringRef name, llvm::StringRef fallback) const {
  const Attribute *found = attribute(name);
  return found && found->asString() ? llvm::StringRef(*found->asString()) : fallback;
}

Dims OpContext::dimsAttribute(llvm::StringRef name) const {
  const Attribute *found = attribute(name);
  return found ? found->asDims().value_or(Dims()) : Dims();
}

unsigned OpSpec::numRequiredOperands() const {
  for (unsigned i = operands.size(); i > 0; --i)
    if (operands[i - 1].arity == Arity::Required)
      return i;
  return 0;
}

const AttributeSpec *OpSpec::findAttribute(llvm::StringRef name) const {
  for (const AttributeSpec &attribute : attributes)
    if (attribute.name == name)
      return &attribute;
  return nullptr;
}

} // namespace rondo
