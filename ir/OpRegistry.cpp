//===- OpRegistry.cpp - The ops and opaque types a program may use --------===//

#include "rondo/ir/OpRegistry.h"

#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace rondo {

/// Returns true for a letter or '_', then letters, digits, '_'.
static bool isIdentifier(llvm::StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Returns true for identifiers with dots between them.
static bool isDottedName(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef, 4> parts;
  name.split(parts, '.');
  return llvm::all_of(parts, isIdentifier);
}

static llvm::Error malformedName(llvm::StringRef what, llvm::StringRef name) {
  std::string quoted;
  llvm::raw_string_ostream os(quoted);
  printQuoted(os, name);
  return makeError("the name " + os.str() + " of " + what +
                   " must be letters, digits and '_', with dots between parts, no part empty or "
                   "starting with a digit");
}

static llvm::Error specError(const OpSpec &spec, const llvm::Twine &message) {
  return makeError("op '" + spec.name + "': " + message);
}

static llvm::Error checkOperands(const OpSpec &spec) {
  for (const OperandSpec &operand :
       llvm::ArrayRef<OperandSpec>(spec.operands).drop_back(spec.operands.empty() ? 0 : 1))
    if (operand.arity == Arity::Variadic)
      return specError(spec, "operand '" + operand.name + "' is variadic but not the last");
  return llvm::Error::success();
}

static llvm::Error checkAttributes(const OpSpec &spec) {
  llvm::StringSet<> names;
  for (const AttributeSpec &attribute : spec.attributes) {
    if (!isIdentifier(attribute.name))
      return specError(spec, "the name of attribute '" + attribute.name +
                                 "' must be letters, digits and '_', not starting with a digit");
    if (!names.insert(attribute.name).second)
      return specError(spec, "attribute '" + attribute.name + "' is listed twice");
    if (!attribute.defaultValue.isNone() && !matches(attribute.kind, attribute.defaultValue))
      return specError(spec, "the default " + attribute.defaultValue.str() + " of attribute '" +
                                 attribute.name + "' is not of kind " +
                                 attributeKindName(attribute.kind));
  }
  return llvm::Error::success();
}

static bool hasOperand(const OpSpec &spec, unsigned operand) {
  return operand < spec.operands.size() || spec.isVariadic();
}

static llvm::Error checkViews(const OpSpec &spec) {
  if (spec.allResultsViewFirst && !hasOperand(spec, 0))
    return specError(spec, "results view operand #0, which does not exist");
  for (ViewEffect view : spec.views) {
    if (!hasOperand(spec, view.operand))
      return specError(spec, "result #" + llvm::Twine(view.result) + " views operand #" +
                                 llvm::Twine(view.operand) + ", which does not exist");
    if (view.result >= spec.results.size() && !spec.variadicResults)
      return specError(spec, "result #" + llvm::Twine(view.result) + ", a view of operand #" +
                                 llvm::Twine(view.operand) + ", does not exist");
  }
  return llvm::Error::success();
}

static bool isRenamed(const OpSpec &spec, unsigned operand) {
  bool hasResult = !spec.results.empty() || spec.variadicResults;
  return (spec.allResultsViewFirst && operand == 0 && hasResult) ||
         llvm::any_of(spec.views, [&](ViewEffect view) { return view.operand == operand; });
}

static llvm::Error checkWrites(const OpSpec &spec) {
  for (unsigned operand : spec.writes) {
    if (!hasOperand(spec, operand))
      return specError(spec, "writes operand #" + llvm::Twine(operand) + ", which does not exist");
    if (!isRenamed(spec, operand))
      return specError(spec,
                       "writes operand #" + llvm::Twine(operand) + " but no result renames it");
  }
  return llvm::Error::success();
}

llvm::Error OpRegistry::registerOp(OpSpec spec) {
  if (!isDottedName(spec.name))
    return malformedName("an op", spec.name);
  if (opsByName_.count(spec.name))
    return specError(spec, "is registered already");
  for (auto *check : {checkOperands, checkAttributes, checkViews, checkWrites})
    if (llvm::Error error = check(spec))
      return error;
  ops_.push_back(std::make_unique<OpSpec>(std::move(spec)));
  opsByName_[ops_.back()->name] = ops_.back().get();
  return llvm::Error::success();
}

llvm::Error OpRegistry::registerType(OpaqueTypeSpec spec) {
  if (!isDottedName(spec.name))
    return malformedName("a type", spec.name);
  if (typesByName_.count(spec.name))
    return makeError("type '!" + spec.name + "' is registered already");
  types_.push_back(std::make_unique<OpaqueTypeSpec>(std::move(spec)));
  typesByName_[types_.back()->name] = types_.back().get();
  return llvm::Error::success();
}

const OpSpec *OpRegistry::lookup(llvm::StringRef name) const {
  return opsByName_.lookup(name);
}

const OpaqueTypeSpec *OpRegistry::lookupType(llvm::StringRef name) const {
  return typesByName_.lookup(name);
}

} // namespace rondo
