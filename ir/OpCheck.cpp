//===- OpCheck.cpp - Does an op fit its spec? -------------------------------===//

#include "OpCheck.h"

#include "rondo/ir/Diagnostic.h"
#include "rondo/ir/TraceBuilder.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

using Report = llvm::function_ref<void(OpFault)>;

static bool checkArity(const OpSpec &spec, llvm::ArrayRef<const Type *> operands, Report report) {
  unsigned required = spec.numRequiredOperands();
  unsigned most = spec.operands.size();
  bool tooMany = !spec.isVariadic() && operands.size() > most;
  if (operands.size() >= required && !tooMany)
    return true;
  llvm::StringRef bound = !spec.isVariadic() && required == most ? ""
                          : tooMany                              ? "at most "
                                                                 : "at least ";
  unsigned expected = tooMany ? most : required;
  report({("'" + spec.name + "' op expects " + bound + llvm::Twine(expected) +
           (expected == 1 ? " operand" : " operands") + ", got " + llvm::Twine(operands.size()))
              .str(),
          std::nullopt});
  return false;
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

static bool checkOperand(const OpSpec &spec, unsigned i, const Type *type, Report report) {
  const OperandSpec &operand = spec.operands[std::min<size_t>(i, spec.operands.size() - 1)];
  // An op with bodies or an opaque one says itself what it takes.
  bool mayBeAbsent = operand.arity == Arity::Optional ||
                     (operand.arity == Arity::Variadic && operand.kind == OperandKind::Any);
  if (type ? isKind(operand.kind, *type) : mayBeAbsent)
    return true;
  std::string text =
      ("'" + spec.name + "' op operand #" + llvm::Twine(i) + " (" + operand.name + ") ").str();
  if (type)
    text += "has type " + type->str() + ", expected " + operandKindName(operand.kind).str();
  else
    text += "may not be absent";
  report({std::move(text), i});
  return false;
}

static bool checkAttribute(const OpSpec &spec, const NamedAttribute &attribute, Report report) {
  const AttributeSpec *known = spec.findAttribute(attribute.name);
  if (known ? matches(known->kind, attribute.value) : spec.unknownAttributes)
    return true;
  if (known) {
    report({("'" + spec.name + "' op attribute '" + attribute.name + "' is " +
             attribute.value.str() + ", expected " + attributeKindName(known->kind))
                .str(),
            std::nullopt});
    return false;
  }
  llvm::SmallVector<llvm::StringRef, 8> names;
  for (const AttributeSpec &candidate : spec.attributes)
    names.push_back(candidate.name);
  report({("'" + spec.name + "' op has no attribute '" + attribute.name + "'" +
           didYouMean(attribute.name, names))
              .str(),
          std::nullopt});
  return false;
}

static bool checkAttributes(const OpSpec &spec, llvm::ArrayRef<NamedAttribute> attributes,
                            Report report) {
  bool fits = true;
  for (size_t i = 0; i < attributes.size(); ++i) {
    fits &= checkAttribute(spec, attributes[i], report);
    if (i == 0 || attributes[i].name != attributes[i - 1].name)
      continue;
    report({("'" + spec.name + "' op has attribute '" + attributes[i].name + "' twice").str(),
            std::nullopt});
    fits = false;
  }
  for (const AttributeSpec &attribute : spec.attributes) {
    if (!attribute.required || llvm::any_of(attributes, [&](const NamedAttribute &given) {
          return given.name == attribute.name;
        }))
      continue;
    report({("'" + spec.name + "' op needs attribute '" + attribute.name + "' (" +
             attributeKindName(attribute.kind) + ")")
                .str(),
            std::nullopt});
    fits = false;
  }
  return fits;
}

bool rondo::checkOp(const OpSpec &spec, llvm::ArrayRef<const Type *> operands,
                    llvm::ArrayRef<NamedAttribute> attributes, Report report) {
  bool fits = checkArity(spec, operands, report);
  if (fits)
    for (unsigned i = 0; i < operands.size(); ++i)
      fits &= checkOperand(spec, i, operands[i], report);
  return checkAttributes(spec, attributes, report) && fits;
}

llvm::Error rondo::checkOp(const OpSpec &spec, llvm::ArrayRef<const Type *> operands,
                           llvm::ArrayRef<NamedAttribute> attributes) {
  std::string first;
  bool fits = checkOp(spec, operands, attributes, [&](OpFault fault) {
    if (first.empty())
      first = std::move(fault.message);
  });
  return fits ? llvm::Error::success() : makeError(first);
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
