//===- Inference.cpp - One run of an inference hook -----------------------===//

#include "Inference.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

using namespace rondo;

llvm::Error rondo::expects(const llvm::Twine &what) {
  return makeError("expects " + what);
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static bool isHostScalarTensor(const Type &type) {
  const TensorType *tensor = type.asTensor();
  return tensor && tensor->shape.empty() && tensor->device.isHost();
}

/// Rejects what no rule below can work with; a type may come unverified from a builder.
static llvm::Error checkSound(const TensorType &type) {
  if (type.strides.size() != type.shape.size())
    return expects("operands of one stride for each dimension, got " + Type(type).str());
  for (const Dim &size : type.shape)
    if (size.isConstant() && size.value() < 0)
      return expects("operands of sizes of at least 0, got " + Type(type).str());
  return llvm::Error::success();
}

llvm::Error Inference::begin(DevicePolicy policy) {
  bool decided = false, hostScalar = false;
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    const Type *operand = op.operand(i);
    if (const TensorType *type = op.tensor(i))
      RONDO_TRY(checkSound(*type));
    std::optional<Device> own = operand ? operand->device() : std::nullopt;
    if (!own)
      continue;
    if (policy == DevicePolicy::HostScalars && isHostScalarTensor(*operand)) {
      hostScalar = true;
    } else if (!decided) {
      decided = true;
      device = *own;
    } else if (*own != device && policy != DevicePolicy::Any) {
      return expects("operands on one device, got " + deviceName(device) + " and " +
                     deviceName(*own));
    }
  }
  if (decided || hostScalar) // `device` stays the host when all are host scalars
    return llvm::Error::success();
  if (const Attribute *attribute = op.attribute("device"))
    if (const Device *given = attribute->asDevice())
      device = *given;
  return llvm::Error::success();
}

std::string Inference::operandText(unsigned i) const {
  const std::vector<OperandSpec> &specs = op.spec().operands;
  if (i >= specs.size() || specs[i].arity == Arity::Variadic)
    return "operand #" + std::to_string(i);
  return "operand '" + specs[i].name + "'";
}

llvm::Error Inference::expectsOperand(unsigned i, const llvm::Twine &what) const {
  return expects(operandText(i) + " " + what + ", got " +
                 (has(i) ? op.operand(i)->str() : std::string("none")));
}

llvm::Error Inference::dtypeIn(unsigned i, DTypeClass allowed) const {
  const TensorType *type = optionalTensor(i);
  if (!type || isIn(allowed, type->dtype))
    return llvm::Error::success();
  return expectsOperand(i, "of " + dtypeClassName(allowed));
}

llvm::Error Inference::dtypeIs(unsigned i, DType dtype) const {
  const TensorType *type = optionalTensor(i);
  if (!type || type->dtype == dtype)
    return llvm::Error::success();
  return expectsOperand(i, "of dtype " + dtypeName(dtype));
}

llvm::Error Inference::rankIs(unsigned i, unsigned rank) const {
  const TensorType *type = optionalTensor(i);
  if (!type || type->rank() == rank)
    return llvm::Error::success();
  return expectsOperand(i, "of rank " + llvm::Twine(rank));
}

llvm::Error Inference::rankAtLeast(unsigned i, unsigned rank) const {
  const TensorType *type = optionalTensor(i);
  if (!type || type->rank() >= rank)
    return llvm::Error::success();
  return expectsOperand(i, "of rank " + llvm::Twine(rank) + " or more");
}

llvm::Error Inference::shapeIs(unsigned i, llvm::ArrayRef<Dim> shape) const {
  const TensorType *type = optionalTensor(i);
  if (!type || llvm::ArrayRef<Dim>(type->shape) == shape)
    return llvm::Error::success();
  return expectsOperand(i, "of shape " + shapeText(shape));
}

llvm::Error Inference::broadcastsTo(unsigned i, llvm::ArrayRef<Dim> shape) const {
  const TensorType *type = optionalTensor(i);
  if (!type)
    return llvm::Error::success();
  Dims common(shape.begin(), shape.end());
  if (broadcast(common, type->shape) && llvm::ArrayRef<Dim>(common) == shape)
    return llvm::Error::success();
  return expectsOperand(i, "to broadcast to shape " + shapeText(shape));
}

llvm::Error Inference::oneElement(unsigned i) const {
  const TensorType *type = optionalTensor(i);
  if (!type || type->numElements().isConstant(1))
    return llvm::Error::success();
  return expectsOperand(i, "of one element");
}

llvm::Error Inference::oneDType() const {
  const TensorType *first = nullptr;
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    const TensorType *type = optionalTensor(i);
    if (type && first && type->dtype != first->dtype)
      return expects("operands of one dtype, got " + dtypeName(first->dtype) + " and " +
                     dtypeName(type->dtype));
    if (type && !first)
      first = type;
  }
  return llvm::Error::success();
}

llvm::Error Inference::operandOrAttribute(unsigned i, llvm::StringRef attribute) const {
  bool both = has(i) && hasAttribute(attribute), none = !has(i) && !hasAttribute(attribute);
  if (!both && !none)
    return llvm::Error::success();
  return expects(operandText(i) + " or attribute '" + attribute + "', got " +
                 (both ? "both" : "neither"));
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// "expects attribute 'dim' <what>, got <its value>".
static llvm::Error expectsAttribute(const OpContext &op, llvm::StringRef name,
                                    const llvm::Twine &what) {
  const Attribute *attribute = op.attribute(name);
  return expects("attribute '" + name + "' " + what + ", got " +
                 (attribute ? attribute->str() : std::string("none")));
}

/// A symbolic dimension, or a number of at least 0.
static bool isSize(const Dim &dim) {
  return dim.isConstant() ? dim.value() >= 0 : !dim.isOverflow();
}

llvm::Expected<int64_t> Inference::constant(llvm::StringRef name) const {
  const Attribute *attribute = op.attribute(name);
  if (std::optional<int64_t> value = attribute ? attribute->asInt() : std::nullopt)
    return *value;
  return expectsAttribute(op, name, "to be a constant integer");
}

llvm::Expected<Ints> Inference::constants(llvm::StringRef name) const {
  const Attribute *attribute = op.attribute(name);
  if (!attribute)
    return Ints();
  if (std::optional<Ints> values = attribute->asInts())
    return std::move(*values);
  return expectsAttribute(op, name, "to hold constant integers");
}

llvm::Expected<Ints> Inference::constantsPerDim(llvm::StringRef name, unsigned count,
                                                int64_t minimum) const {
  llvm::Expected<Ints> values = constants(name);
  if (!values)
    return values;
  if (llvm::any_of(*values, [&](int64_t value) { return value < minimum; }))
    return expectsAttribute(op, name, "to hold numbers of at least " + llvm::Twine(minimum));
  if (values->size() == 1)
    values->resize(count, values->front());
  if (values->size() != count)
    return expectsAttribute(op, name, "of length " + llvm::Twine(count));
  return values;
}

llvm::Expected<Dim> Inference::size(llvm::StringRef name) const {
  const Attribute *attribute = op.attribute(name);
  const Dim *value = attribute ? attribute->asDim() : nullptr;
  if (value && isSize(*value))
    return *value;
  return expectsAttribute(op, name, "to be a size of at least 0");
}

llvm::Expected<Dims> Inference::sizes(llvm::StringRef name) const {
  const Attribute *attribute = op.attribute(name);
  std::optional<Dims> values = attribute ? attribute->asDims() : std::nullopt;
  if (values && llvm::all_of(*values, isSize))
    return std::move(*values);
  return expectsAttribute(op, name, "to hold sizes of at least 0");
}

/// `dim` counted from the front, or nothing when out of range.
static std::optional<unsigned> wrapDim(int64_t dim, unsigned rank) {
  int64_t count = std::max(rank, 1U);
  if (dim < -count || dim >= count)
    return std::nullopt;
  return dim < 0 ? dim + count : dim;
}

/// `in [-3, 2]`.
static std::string dimRange(unsigned rank) {
  int64_t count = std::max(rank, 1U);
  return "in [" + std::to_string(-count) + ", " + std::to_string(count - 1) + "]";
}

llvm::Expected<unsigned> Inference::dim(llvm::StringRef name, unsigned rank) const {
  llvm::Expected<int64_t> value = constant(name);
  if (!value)
    return value.takeError();
  if (std::optional<unsigned> dim = wrapDim(*value, rank))
    return *dim;
  return expectsAttribute(op, name, "to be " + dimRange(rank));
}

llvm::Expected<unsigned> Inference::dimOf(unsigned i, llvm::StringRef name) const {
  RONDO_TRY(rankAtLeast(i, 1));
  return dim(name, tensor(i).rank());
}

llvm::Expected<llvm::SmallVector<unsigned, 4>> Inference::dims(llvm::StringRef name,
                                                               unsigned rank) const {
  llvm::Expected<Ints> values = constants(name);
  if (!values)
    return values.takeError();
  llvm::SmallVector<unsigned, 4> result;
  llvm::SmallBitVector seen(std::max(rank, 1U));
  for (int64_t value : *values) {
    std::optional<unsigned> dim = wrapDim(value, rank);
    if (!dim)
      return expectsAttribute(op, name, "to hold dimensions " + dimRange(rank));
    if (seen.test(*dim))
      return expectsAttribute(op, name, "to name each dimension at most once");
    seen.set(*dim);
    result.push_back(*dim);
  }
  return result;
}

DType Inference::dtypeOr(llvm::StringRef name, DType otherwise) const {
  const Attribute *attribute = op.attribute(name);
  const DType *dtype = attribute ? attribute->asDType() : nullptr;
  return dtype ? *dtype : otherwise;
}

llvm::Expected<llvm::SmallVector<bool, 4>> Inference::mask(llvm::StringRef name,
                                                           unsigned count) const {
  llvm::SmallVector<bool, 4> result;
  const Attribute *attribute = op.attribute(name);
  const Attribute::List *list = attribute ? attribute->asList() : nullptr;
  if (!list) {
    result.assign(count, true);
    return result;
  }
  for (const Attribute &element : *list)
    if (const bool *value = element.asBool())
      result.push_back(*value);
  if (result.size() != count || list->size() != count)
    return expectsAttribute(op, name, "to hold " + llvm::Twine(count) + " bools");
  return result;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns true if the bytes of a row-major tensor, and so its strides, fit an int64. Sizes of 0
/// count as 1, as in strides.
static bool fitsMemory(const TensorType &type) {
  if (type.shape.empty())
    return true;
  bool isEmpty = type.shape[0].isConstant(0);
  Dim elements = isEmpty ? type.strides[0] : type.strides[0] * type.shape[0];
  return !(elements * Dim(dtypeSize(type.dtype))).isOverflow();
}

static llvm::Error checkRank(size_t rank) {
  if (rank <= maxRank)
    return llvm::Error::success();
  return expects("a result of at most " + llvm::Twine(maxRank) + " dimensions, got " +
                 llvm::Twine(rank));
}

llvm::Error Inference::fresh(DType dtype, Dims shape) {
  RONDO_TRY(checkRank(shape.size()));
  TensorType type(dtype, std::move(shape), device);
  if (!fitsMemory(type))
    return expects("a result whose size in bytes fits 63 bits, got shape " + shapeText(type.shape));
  results.emplace_back(std::move(type));
  return llvm::Error::success();
}

llvm::Error Inference::view(const TensorType &base, Dims shape, Dims strides) {
  RONDO_TRY(checkRank(shape.size()));
  auto overflows = [](const Dim &dim) { return dim.isOverflow(); };
  if (llvm::any_of(shape, overflows) || llvm::any_of(strides, overflows))
    return expects("sizes and strides of the result that fit 63 bits");
  results.emplace_back(TensorType(base.dtype, std::move(shape), std::move(strides), base.device));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Rules that several families use
//===----------------------------------------------------------------------===//

/// `index` counted from the start and clamped to [0, size], as far as the numbers are known.
static Dim clampIndex(const Dim &index, const Dim &size) {
  constexpr int64_t end = std::numeric_limits<int64_t>::max();
  if (!index.isConstant())
    return index;
  int64_t value = index.value();
  if (!size.isConstant())
    return value == end ? size : value < 0 ? size + index : index;
  if (value < 0)
    value += size.value();
  return std::clamp<int64_t>(value, 0, size.value());
}

llvm::Expected<SliceRange> rondo::sliceRange(const Inference &in, unsigned i) {
  RONDO_LET(dim, in.dimOf(i, "dim"));
  RONDO_LET(step, in.constant("step"));
  if (step < 1)
    return expects("attribute 'step' of at least 1, got " + llvm::Twine(step));
  const Dim &size = in.tensor(i).shape[dim];
  const Dim &start = *in.op.attribute("start")->asDim(), &end = *in.op.attribute("end")->asDim();
  if (size.isConstant() && size.value() < 0)
    return in.expectsOperand(i, "without negative sizes");
  Dim first = clampIndex(start, size), length = clampIndex(end, size) - first;
  if (length.isOverflow())
    return expects("a range that fits 63 bits, got " + start.str() + " to " + end.str());
  if (length.isConstant() && length.value() <= 0)
    return SliceRange{dim, first, 0, step};
  if (length.isConstant())
    return SliceRange{dim, first, Dim((length.value() - 1) / step + 1), step};
  if (std::optional<Dim> count = Dim::exactQuotient(length, step))
    return SliceRange{dim, first, *count, step};
  return expects("attribute 'step' to divide the symbolic length " + length.str() + ", got " +
                 llvm::Twine(step));
}

llvm::Expected<SelectedIndex> rondo::selectedIndex(const Inference &in, unsigned i) {
  RONDO_LET(dim, in.dimOf(i, "dim"));
  const Dim &size = in.tensor(i).shape[dim], &index = *in.op.attribute("index")->asDim();
  std::optional<int64_t> given = index.asConstant(), count = size.asConstant();
  if (given && count && (*given >= *count || *given < -*count))
    return expects("attribute 'index' in range for size " + size.str() + ", got " +
                   llvm::Twine(*given));
  return SelectedIndex{dim, given && *given < 0 ? size + index : index};
}

llvm::Error rondo::inferPointwise(Inference &in, const PointwiseRule &rule) {
  Promotion promotion;
  Dims shape;
  for (unsigned i = 0; i < in.op.numOperands(); ++i) {
    const Type *operand = in.op.operand(i);
    if (!operand)
      continue;
    if (i >= rule.firstPromoted)
      promotion.add(*operand);
    const TensorType *type = operand->asTensor();
    if (type && shape.empty())
      shape = type->shape;
    else if (type && !broadcast(shape, type->shape))
      return expects("operands whose shapes broadcast, got " + shapeText(shape) + " and " +
                     shapeText(type->shape));
  }
  if (const Attribute *scalar = in.op.attribute("scalar"))
    promotion.add(*scalar);

  DType promoted = promotion.result();
  if (!isIn(rule.operands, promoted))
    return expects("operands of " + dtypeClassName(rule.operands) + ", got " + dtypeName(promoted));
  switch (rule.result) {
  case PointwiseRule::Result::Promoted:
    break;
  case PointwiseRule::Result::Float:
    promoted = floatFor(promoted);
    break;
  case PointwiseRule::Result::Bool:
    promoted = DType::Bool;
    break;
  case PointwiseRule::Result::First:
    promoted = in.tensor(0).dtype;
    break;
  }
  return in.fresh(promoted, std::move(shape));
}

llvm::Error rondo::inferSameType(Inference &in) {
  return in.fresh(in.tensor(0).dtype, in.tensor(0).shape);
}

llvm::Error rondo::inferNothing(Inference &) {
  return llvm::Error::success();
}
