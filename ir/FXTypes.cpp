//===- FXTypes.cpp - dtypes, devices and results in fx-aten-1 ---------------===//

#include "FXTypes.h"

using namespace rondo;
using namespace rondo::fx;

//===----------------------------------------------------------------------===//
// Words: dtypes, devices
//===----------------------------------------------------------------------===//

std::optional<DType> rondo::fx::readDType(JSONCursor cursor) {
  static constexpr std::pair<llvm::StringLiteral, DType> dtypes[] = {
      {"bool", DType::Bool},
      {"uint8", DType::U8},
      {"int8", DType::I8},
      {"int16", DType::I16},
      {"int32", DType::I32},
      {"int64", DType::I64},
      {"float8_e4m3fn", DType::F8E4M3},
      {"float8_e5m2", DType::F8E5M2},
      {"float16", DType::F16},
      {"bfloat16", DType::BF16},
      {"float32", DType::F32},
      {"float64", DType::F64}};
  std::optional<llvm::StringRef> name = cursor.expectString();
  if (!name)
    return std::nullopt;
  llvm::SmallVector<llvm::StringRef, 12> candidates;
  for (auto [candidate, dtype] : dtypes) {
    if (candidate == *name)
      return dtype;
    candidates.push_back(candidate);
  }
  cursor.error("unsupported dtype '" + *name + "'" + didYouMean(*name, candidates));
  return std::nullopt;
}

std::optional<Device> rondo::fx::readDevice(JSONCursor cursor) {
  std::optional<llvm::StringRef> name = cursor.expectString();
  if (!name)
    return std::nullopt;
  if (*name == "cpu")
    return Device::host();
  if (*name == "cuda")
    return Device::cuda(0);
  if (name->take_front(5) == "cuda:")
    if (std::optional<Device> device = parseDevice(*name))
      return device;
  cursor.error("unsupported device '" + *name + "', expected 'cpu', 'cuda' or 'cuda:N'");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

static std::optional<Dims> readDims(JSONCursor object, llvm::StringRef key) {
  std::optional<JSONCursor> array = object.require(key);
  if (!array || !array->expectArray())
    return std::nullopt;
  Dims dims;
  bool ok = true;
  for (JSONCursor element : array->elements()) {
    std::optional<int64_t> dim = element.expectInt(0);
    ok &= dim.has_value();
    dims.push_back(dim.value_or(0));
  }
  return ok ? std::optional(dims) : std::nullopt;
}

/// Returns true if sizes in bytes and element offsets of `type` fit an int64.
static bool isAddressable(const TensorType &type) {
  Dim last = 0;
  for (unsigned i = 0; i < type.rank(); ++i)
    if (!type.shape[i].isConstant(0))
      last = last + (type.shape[i] - 1) * type.strides[i];
  return !type.numBytes().isOverflow() &&
         !((last + 1) * int64_t(dtypeSize(type.dtype))).isOverflow();
}

static std::optional<TensorType> readTensorType(JSONCursor object) {
  std::optional<Dims> shape = readDims(object, "shape");
  std::optional<Dims> strides = readDims(object, "stride");
  std::optional<JSONCursor> dtypeCursor = object.require("dtype");
  std::optional<JSONCursor> deviceCursor = object.require("device");
  std::optional<DType> dtype = dtypeCursor ? readDType(*dtypeCursor) : std::nullopt;
  std::optional<Device> device = deviceCursor ? readDevice(*deviceCursor) : std::nullopt;
  if (!shape || !strides || !dtype || !device)
    return std::nullopt;
  if (shape->size() != strides->size()) {
    object.find("stride")->error("has " + llvm::Twine(strides->size()) +
                                 " strides for a shape of rank " + llvm::Twine(shape->size()));
    return std::nullopt;
  }
  TensorType type(*dtype, *shape, *strides, *device);
  if (!isAddressable(type)) {
    object.error("tensor is too large: its size does not fit 64 bits");
    return std::nullopt;
  }
  return type;
}

uint32_t Result::numLeaves() const {
  if (kind != Kind::Tuple)
    return 1;
  uint32_t count = 0;
  for (const Result &element : elements)
    count += element.numLeaves();
  return count;
}

void Result::appendLeaves(std::vector<Result> &leaves) const {
  if (kind != Kind::Tuple)
    return leaves.push_back(*this);
  for (const Result &element : elements)
    element.appendLeaves(leaves);
}

bool Result::isLike(const Result &other) const {
  return kind == other.kind && type == other.type &&
         std::equal(elements.begin(), elements.end(), other.elements.begin(), other.elements.end(),
                    [](const Result &a, const Result &b) { return a.isLike(b); });
}

std::string Result::description() const {
  if (type)
    return type->str();
  if (kind == Kind::Tuple)
    return "a tuple of " + std::to_string(elements.size());
  return kind == Kind::Unused ? "unused" : "None";
}

static std::optional<Result> readScalar(JSONCursor object, ScalarKind kind) {
  Result result;
  result.kind = Result::Kind::Scalar;
  result.type = Type(kind);
  std::optional<JSONCursor> value = object.find("value");
  if (!value || value->isNull())
    return result;
  switch (kind) {
  case ScalarKind::I64:
    if (std::optional<int64_t> number = value->expectInt())
      result.value = *number;
    break;
  case ScalarKind::F64:
    if (std::optional<double> number = value->expectNumber())
      result.value = *number;
    break;
  case ScalarKind::Bool:
    if (std::optional<bool> flag = value->expectBool())
      result.value = *flag;
    break;
  }
  return result.value.isNone() ? std::nullopt : std::optional(result);
}

static std::optional<Result> readTuple(JSONCursor object, Place place) {
  std::optional<JSONCursor> elements = object.require("elements");
  if (!elements || !elements->expectArray())
    return std::nullopt;
  Result result;
  result.kind = Result::Kind::Tuple;
  for (JSONCursor element : elements->elements()) {
    std::optional<Result> read = readResult(element, place);
    if (!read)
      return std::nullopt;
    result.elements.push_back(std::move(*read));
  }
  return result;
}

std::optional<Result> rondo::fx::readResult(JSONCursor cursor, Place place) {
  Result result;
  if (cursor.isNull() && place == Place::Node)
    return result;
  if (!cursor.expectObject())
    return std::nullopt;
  std::optional<JSONCursor> kind = cursor.require("kind");
  std::optional<llvm::StringRef> word = kind ? kind->expectString() : std::nullopt;
  if (!word)
    return std::nullopt;
  if (*word == "tensor") {
    std::optional<TensorType> type = readTensorType(cursor);
    if (!type)
      return std::nullopt;
    result.kind = Result::Kind::Tensor;
    result.type = Type(std::move(*type));
    return result;
  }
  if (*word == "int")
    return readScalar(cursor, ScalarKind::I64);
  if (*word == "float")
    return readScalar(cursor, ScalarKind::F64);
  if (*word == "bool")
    return readScalar(cursor, ScalarKind::Bool);
  if (*word == "Generator" && place == Place::Input) {
    result.kind = Result::Kind::Generator;
    if (std::optional<JSONCursor> device = cursor.find("device"))
      if (result.device = readDevice(*device); !result.device)
        return std::nullopt;
    return result;
  }
  if (*word == "NoneType" && place != Place::Input)
    return result;
  bool isElement = place == Place::Element || place == Place::Inner;
  if (*word == "unused" && isElement) {
    result.kind = Result::Kind::Unused;
    return result;
  }
  if (*word == "tuple" && (place == Place::Node || place == Place::Element))
    return readTuple(cursor, place == Place::Node ? Place::Element : Place::Inner);
  kind->error("unsupported kind '" + *word + "' of " +
              (place == Place::Input  ? "an input"
               : place == Place::Node ? "a result"
                                      : "an element of a tuple"));
  return std::nullopt;
}
