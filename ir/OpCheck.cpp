//===- OpCheck.cpp - Does an op fit its spec? -------------------------------===//

#include "rondo/ir/TraceBuilder.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

static llvm::Error checkArity(const OpSpec &spec, llvm::ArrayRef<const Type *> operands) {
  unsigned required = spec.numRequiredOperands();
  unsigned most = spec.operands.size();
  bool tooMany = !spec.isVariadic() && operands.size() > most;
  if (operands.size() >= required && !tooMany)
    return llvm::Error::success();
  llvm::StringRef bound = spec.isVariadic() || required == most ? "" : tooMany ? "at most " : "at least ";
  if (spec.isVariadic())
    bound = "at least ";
  unsigned expected = tooMany ? most : required;
  return makeError("'" + spec.name + "' op expects " + bound + llvm::Twine(expected) +
                   (expected == 1 ? " operand" : " operands") + ", got " +
                   llvm::Twine(operands.size()));
}

static bool isKind(OperandKind kind, const Type &type) {
  switch (kind) {
  case OperandKind::Tensor:
    return type.isTensor();
  case OperandKind::Scalar:
    return type.asScalar();
  case OperandKind::TensorOrScalar:
    return type.isTensor() || type.asScalar();
  case OperandKind::RNGState:
    return type.asRNGState();
  case OperandKind::Any:
    return true;
  }
  return false;
}

static llvm::Error checkOperandKinds(const OpSpec &spec, llvm::ArrayRef<const Type *> operands) {
  for (unsigned i = 0; i < operands.size(); ++i) {
    const OperandSpec &operand = spec.operands[std::min<size_t>(i, spec.operands.size() - 1)];
    if (!operands[i]) {
      // An op with bodies or an opaque one says itself what it takes.
      if (operand.arity == Arity::Optional ||
          (operand.arity == Arity::Variadic && operand.kind == OperandKind::Any))
        continue;
      return makeError("'" + spec.name + "' op operand #" + llvm::Twine(i) + " (" + operand.name +
                       ") may not be absent");
    }
    if (!isKind(operand.kind, *operands[i]))
      return makeError("'" + spec.name + "' op operand #" + llvm::Twine(i) + " (" + operand.name +
                       ") has type " + operands[i]->str() + ", expected " +
                       operandKindName(operand.kind));
  }
  return llvm::Error::success();
}

static llvm::Error checkAttributes(const OpSpec &spec, llvm::ArrayRef<NamedAttribute> attributes) {
  for (const NamedAttribute &attribute : attributes) {
    const AttributeSpec *known = spec.findAttribute(attribute.name);
    if (known) {
      if (matches(known->kind, attribute.value))
        continue;
      return makeError("'" + spec.name + "' op attribute '" + attribute.name + "' is " +
                       attribute.value.str() + ", expected " + attributeKindName(known->kind));
    }
    if (spec.unknownAttributes)
      continue;
    llvm::SmallVector<llvm::StringRef, 8> names;
    for (const AttributeSpec &candidate : spec.attributes)
      names.push_back(candidate.name);
    return makeError("'" + spec.name + "' op has no attribute '" + attribute.name + "'" +
                     didYouMean(attribute.name, names));
  }
  for (const AttributeSpec &attribute : spec.attributes)
    if (attribute.required && llvm::none_of(attributes, [&](const NamedAttribute &given) {
          return given.name == attribute.name;
        }))
      return makeError("'" + spec.name + "' op needs attribute '" + attribute.name + "' (" +
                       attributeKindName(attribute.kind) + ")");
  return llvm::Error::success();
}

llvm::Error rondo::checkOp(const OpSpec &spec, llvm::ArrayRef<const Type *> operands,
                           llvm::ArrayRef<NamedAttribute> attributes) {
  if (llvm::Error error = checkArity(spec, operands))
    return error;
  if (llvm::Error error = checkOperandKinds(spec, operands))
    return error;
  return checkAttributes(spec, attributes);
}

llvm::Error rondo::inferResultTypes(const OpSpec &spec, llvm::ArrayRef<const Type *> operands,
                                    llvm::ArrayRef<NamedAttribute> attributes,
                                    llvm::SmallVectorImpl<Type> &results) {
  if (llvm::Error error = checkOp(spec, operands, attributes))
    return error;
  if (!spec.infer)
    return llvm::Error::success();
  return spec.infer(OpContext(spec, operands, attributes), results);
}
