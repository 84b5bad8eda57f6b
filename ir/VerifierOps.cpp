//===- VerifierOps.cpp - Types, and ops against their specs -----------------===//

#include "OpCheck.h"
#include "VerifierImpl.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace rondo;
using namespace rondo::verifier;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static bool isEmpty(const TensorType &type) {
  return llvm::any_of(type.shape, [](const Dim &size) { return size.isConstant(0); });
}

/// Returns true if the bytes of all elements, and those from the first to the last element in
/// memory, can be counted in an int64. Symbolic dimensions count as 1.
static bool hasCountableExtent(const TensorType &type) {
  if (isEmpty(type))
    return true;
  int64_t elements = 1, extent = 1;
  for (unsigned i = 0; i < type.rank(); ++i) {
    std::optional<int64_t> size = type.shape[i].asConstant();
    std::optional<int64_t> stride = type.strides[i].asConstant();
    int64_t reach = 0;
    if (size && llvm::MulOverflow(elements, *size, elements))
      return false;
    if (size && stride &&
        (llvm::MulOverflow(*size - 1, *stride, reach) || llvm::AddOverflow(extent, reach, extent)))
      return false;
  }
  int64_t elementSize = dtypeSize(type.dtype), bytes;
  return !llvm::MulOverflow(elements, elementSize, bytes) &&
         !llvm::MulOverflow(extent, elementSize, bytes);
}

/// What is wrong with dimensions or strides, `what`; empty if nothing is.
static std::string dimsFault(llvm::StringRef what, llvm::ArrayRef<Dim> dims) {
  for (unsigned i = 0; i < dims.size(); ++i) {
    if (dims[i].isOverflow() || dims[i].asConstant().value_or(0) < 0)
      return ("whose " + what + " #" + llvm::Twine(i) +
              (dims[i].isOverflow() ? " has overflowed" : " is negative"))
          .str();
  }
  return "";
}

/// What is wrong with a tensor type; empty if nothing is.
static std::string tensorFault(const TensorType &type) {
  if (type.strides.size() != type.shape.size())
    return ("which has " + llvm::Twine(type.shape.size()) + " dimensions but " +
            llvm::Twine(type.strides.size()) + " strides")
        .str();
  std::string fault = dimsFault("dimension", type.shape);
  if (fault.empty())
    fault = dimsFault("stride", type.strides);
  if (fault.empty() && !hasCountableExtent(type))
    fault = "whose size in bytes overflows";
  return fault;
}

/// The message of an error from a hook, without location and severity.
static std::string messageOf(llvm::Error error) {
  std::string text;
  llvm::handleAllErrors(
      std::move(error),
      [&](const DiagnosticError &diagnostics) {
        if (!diagnostics.diagnostics().empty())
          text = diagnostics.diagnostics().front().message;
      },
      [&](const llvm::ErrorInfoBase &other) { text = other.message(); });
  return text;
}

/// What is wrong with an opaque type; empty if nothing is.
static std::string opaqueFault(const OpaqueType &type, const OpRegistry &registry) {
  const OpaqueTypeSpec *spec = registry.lookupType(type.name);
  if (!spec)
    return "which is not registered";
  if (spec->verify)
    if (llvm::Error error = spec->verify(type.parameters))
      return "whose parameters are refused: " + messageOf(std::move(error));
  return "";
}

std::string OpVerifier::findFault(const Type &type) {
  auto [known, isNew] = isSound_.try_emplace(&type, true);
  if (!isNew && known->second)
    return "";
  std::string fault;
  if (const TensorType *tensor = type.asTensor())
    fault = tensorFault(*tensor);
  else if (const OpaqueType *opaque = type.asOpaque())
    fault = opaqueFault(*opaque, trace_.registry());
  known->second = fault.empty();
  areAllSound_ &= fault.empty();
  return fault;
}

bool OpVerifier::isSound(const Type &type) const {
  return areAllSound_ || isSound_.lookup(&type);
}

bool OpVerifier::verifyArgumentType(ValueId value, const Op *parent) {
  std::string fault = findFault(trace_.type(value));
  if (!fault.empty())
    report_.errorInBody(parent, "argument ", Named{value}, " has type ", trace_.type(value), ", ",
                        fault);
  return fault.empty();
}

bool OpVerifier::verifyResultType(const Op &op, unsigned index) {
  const Type &type = trace_.type(op.result(index));
  std::string fault = findFault(type);
  if (!fault.empty())
    report_.error(op, ResultOf{op, index}, " has type ", type, ", ", fault);
  return fault.empty();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

bool OpVerifier::verify(const Op &op, llvm::ArrayRef<const Type *> operandTypes) {
  resultTypes_.clear();
  for (ValueId result : op.results())
    resultTypes_.push_back(&trace_.type(result));
  // Hooks see types and attributes only: what fits once fits again. Most ops of a program repeat
  // one before.
  const Op *&similar = fitting_[hashOf(op, operandTypes)];
  if (similar && isAlike(*similar, op, operandTypes))
    return true;
  bool fits = verifyAnew(op, operandTypes);
  if (fits)
    similar = &op;
  return fits;
}

/// A place in `fitting_`, by spec and types.
size_t OpVerifier::hashOf(const Op &op, llvm::ArrayRef<const Type *> operandTypes) const {
  uint64_t hash = reinterpret_cast<uintptr_t>(&op.spec());
  auto add = [&](const void *part) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(part)) * uint64_t(0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
  };
  for (const Type *type : operandTypes)
    add(type);
  for (const Type *type : resultTypes_)
    add(type);
  return hash % fitting_.size();
}

/// Returns true if the ops have one spec, equal types and equal attributes.
bool OpVerifier::isAlike(const Op &known, const Op &op,
                         llvm::ArrayRef<const Type *> operandTypes) const {
  auto haveTypes = [&](llvm::ArrayRef<ValueId> values, llvm::ArrayRef<const Type *> types) {
    return std::equal(
        values.begin(), values.end(), types.begin(), types.end(),
        [&](ValueId value, const Type *type) { return findType(trace_, value) == type; });
  };
  auto areEqual = [](const NamedAttribute &a, const NamedAttribute &b) {
    return a.name == b.name && a.value == b.value;
  };
  return &known.spec() == &op.spec() && haveTypes(known.operands(), operandTypes) &&
         haveTypes(known.results(), resultTypes_) &&
         std::equal(known.attributes().begin(), known.attributes().end(), op.attributes().begin(),
                    op.attributes().end(), areEqual);
}

bool OpVerifier::verifyAnew(const Op &op, llvm::ArrayRef<const Type *> operandTypes) {
  const OpSpec &spec = op.spec();
  bool fits = verifySpec(op);
  fits &= checkOp(spec, operandTypes, op.attributes(), [&](OpFault fault) {
    Diagnostic *error = report_.error(op, fault.message);
    if (fault.operand)
      report_.noteDefinition(error, op.operand(*fault.operand));
  });
  fits &= verifyIntegers(op);
  if (!fits)
    return false;

  OpContext context(spec, operandTypes, op.attributes(), resultTypes_);
  fits = spec.infer ? verifyInferredTypes(op, OpContext(spec, operandTypes, op.attributes()))
                    : verifyDeclaredTypes(op);
  if (fits && spec.verify) {
    if (llvm::Error error = spec.verify(context)) {
      report_.error(op, "'", spec.name, "' op ", messageOf(std::move(error)));
      fits = false;
    }
  }
  return fits;
}

bool OpVerifier::verifySpec(const Op &op) {
  const OpSpec &spec = op.spec();
  if (spec.opaque)
    return true;
  auto [known, isNew] = isKnown_.try_emplace(&spec, false);
  if (isNew)
    known->second = trace_.registry().lookup(spec.name) == &spec;
  if (!known->second)
    report_.error(op, "'", spec.name, "' op is not of the registry of the trace");
  return known->second;
}

static bool hasOverflow(const Attribute &attribute) {
  if (const Dim *dim = attribute.asDim())
    return dim->isOverflow();
  const Attribute::List *list = attribute.asList();
  return list && llvm::any_of(*list, hasOverflow);
}

bool OpVerifier::verifyIntegers(const Op &op) {
  bool fits = true;
  for (const NamedAttribute &attribute : op.attributes()) {
    if (hasOverflow(attribute.value)) {
      report_.error(op, "'", op.name(), "' op attribute '", attribute.name,
                    "' has an integer that overflowed");
      fits = false;
    }
  }
  return fits;
}

bool OpVerifier::verifyInferredTypes(const Op &op, const OpContext &context) {
  inferred_.clear();
  if (llvm::Error error = op.spec().infer(context, inferred_)) {
    report_.error(op, "'", op.name(), "' op ", messageOf(std::move(error)));
    return false;
  }
  if (!verifyResultCount(op, inferred_.size()))
    return false;
  bool fits = true;
  for (unsigned i = 0; i < inferred_.size(); ++i)
    fits &= verifyResult(op, i, inferred_[i]);
  return fits;
}

/// For ops without inference, whose results are what they declare.
bool OpVerifier::verifyDeclaredTypes(const Op &op) {
  const OpSpec &spec = op.spec();
  bool fits = spec.variadicResults || verifyResultCount(op, spec.results.size());
  if (spec.opaque || spec.bodies != BodyKind::None)
    return fits; // results may be views of anything
  for (unsigned i = 0; i < op.results().size(); ++i)
    if (!isViewResult(op, i))
      fits &= verifyFreshResult(op, i);
  return fits;
}

bool OpVerifier::verifyResultCount(const Op &op, size_t expected) {
  if (op.results().size() == expected)
    return true;
  report_.error(op, "'", op.name(), "' op has ", Counted{op.results().size(), "result"},
                ", expected ", expected);
  return false;
}

bool OpVerifier::verifyResult(const Op &op, unsigned index, const Type &expected) {
  const Type &type = *resultTypes_[index];
  const TensorType *tensor = type.asTensor(), *wanted = expected.asTensor();
  bool isSame;
  if (!tensor || !wanted) {
    isSame = type == expected;
  } else {
    isSame = tensor->dtype == wanted->dtype && tensor->device == wanted->device &&
             tensor->shape == wanted->shape;
    if (isSame && tensor->strides != wanted->strides) {
      if (!isViewResult(op, index))
        return verifyFreshResult(op, index);
      isSame = false;
    }
  }
  if (!isSame)
    report_.error(op, ResultOf{op, index}, " has type ", type, ", expected ", expected);
  return isSame;
}

/// Returns true if, as far as constants tell, each stride leaves room for all dimensions of smaller
/// strides, so that no two indices name one element.
static bool isFreeOfOverlap(const TensorType &type) {
  if (isEmpty(type))
    return true;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 8> dims; // stride, size
  for (unsigned i = 0; i < type.rank(); ++i) {
    std::optional<int64_t> size = type.shape[i].asConstant();
    std::optional<int64_t> stride = type.strides[i].asConstant();
    if (size == 1)
      continue;
    if (stride && size)
      dims.push_back({*stride, *size});
    else if (stride == 0)
      return false; // a dimension of unknown size
  }
  llvm::sort(dims);
  int64_t reach = 0; // of the dimensions with smaller strides
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return false;
    reach += stride * (size - 1);
  }
  return true;
}

bool OpVerifier::verifyFreshResult(const Op &op, unsigned index) {
  const TensorType *tensor = trace_.type(op.result(index)).asTensor();
  if (!tensor || isFreeOfOverlap(*tensor))
    return true;
  report_.error(op, ResultOf{op, index}, " has type ", trace_.type(op.result(index)),
                ", whose elements overlap; the storage is fresh");
  return false;
}

/// Returns true if the result is a name of an operand's storage. `op` fits its schema.
bool OpVerifier::isViewResult(const Op &op, unsigned index) {
  const OpSpec &spec = op.spec();
  auto isOfResult = [&](ViewEffect view) { return view.result == index; };
  if (spec.allResultsViewFirst || llvm::any_of(spec.views, isOfResult))
    return true;
  if (!spec.effects)
    return false;
  getEffects(trace_, op.id(), effects_);
  return llvm::any_of(effects_.views, isOfResult);
}
