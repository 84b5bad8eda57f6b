//===- JSONLiterals.cpp - Types and attributes from JSON ------------------===//

#include "JSONLiterals.h"

#include "JSONString.h"
#include "LiteralReader.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace rondo;

//===--- Strings ----------------------------------------------------------===//

std::optional<llvm::StringRef> JSONLiterals::readString(JSONCursor cursor) {
  std::optional<llvm::StringRef> content = cursor.expectString();
  if (!content)
    return std::nullopt;
  llvm::SmallString<64> buffer;
  llvm::StringRef bytes = decodeJSONString(*content, buffer);
  return bytes.data() == content->data() ? bytes : decoded_.save(bytes);
}

llvm::StringRef JSONLiterals::readKey(JSONCursor member) {
  llvm::SmallString<64> buffer;
  llvm::StringRef bytes = decodeJSONString(member.key(), buffer);
  return bytes.data() == member.key().data() ? bytes : decoded_.save(bytes);
}

//===--- Types ------------------------------------------------------------===//

std::optional<DType> JSONLiterals::readDType(JSONCursor cursor) {
  if (std::optional<llvm::StringRef> name = cursor.asString()) {
    if (std::optional<DType> dtype = parseDType(*name))
      return dtype;
  }
  llvm::SmallVector<llvm::StringRef, 16> names;
  for (DType dtype : allDTypes)
    names.push_back(dtypeName(dtype));
  cursor.expectWord("a dtype", names);
  return std::nullopt;
}

std::optional<Device> JSONLiterals::readDevice(JSONCursor cursor) {
  std::optional<llvm::StringRef> name = cursor.expectString();
  if (!name)
    return std::nullopt;
  std::optional<Device> device = parseDevice(*name);
  if (!device)
    cursor.error("expected a device ('host' or 'cuda:0'), got " + quoteForMessage(*name));
  return device;
}

std::optional<Dim> JSONLiterals::readSymbolic(JSONCursor cursor) {
  std::optional<llvm::StringRef> text = cursor.expectString();
  if (!text)
    return std::nullopt;
  std::optional<Dim> dim = Dim::parse(*text);
  if (!dim)
    cursor.error("expected a symbolic dimension ('8*S+1'), got " + quoteForMessage(*text));
  return dim;
}

/// Integers, and strings where they are symbolic.
std::optional<Dims> JSONLiterals::readDims(JSONCursor cursor) {
  if (!cursor.expectArray())
    return std::nullopt;
  Dims dims;
  bool isGood = true;
  for (JSONCursor element : cursor.elements()) {
    std::optional<Dim> dim;
    if (element.kind() == JSONKind::String)
      dim = readSymbolic(element);
    else if (std::optional<int64_t> constant = element.expectInt())
      dim = Dim(*constant);
    isGood &= dim.has_value();
    dims.push_back(dim.value_or(Dim()));
  }
  return isGood ? std::optional(std::move(dims)) : std::nullopt;
}

/// Moves what was read, if it was, to `target`. Returns true then.
template <typename T> static bool take(std::optional<T> value, T &target) {
  if (value)
    target = std::move(*value);
  return value.has_value();
}

std::optional<Type> JSONLiterals::readTensor(JSONCursor cursor) {
  cursor.expectObject({"kind", "dtype", "shape", "strides", "device"});
  std::optional<JSONCursor> dtype = cursor.require("dtype"), shape = cursor.require("shape"),
                            strides = cursor.find("strides"), device = cursor.find("device");
  TensorType type;
  bool isGood = dtype && take(readDType(*dtype), type.dtype);
  isGood &= shape && take(readDims(*shape), type.shape);
  isGood &= !strides || take(readDims(*strides), type.strides);
  isGood &= !device || take(readDevice(*device), type.device);
  if (!isGood)
    return std::nullopt;
  if (!strides)
    type.strides = contiguousStrides(type.shape);
  if (type.strides.size() != type.shape.size()) {
    strides->error("expected one stride for each of the " + llvm::Twine(type.shape.size()) +
                   " dimensions, got " + llvm::Twine(type.strides.size()));
    return std::nullopt;
  }
  return Type(std::move(type));
}

std::optional<Type> JSONLiterals::readScalar(JSONCursor cursor) {
  cursor.expectObject({"kind", "dtype"});
  std::optional<JSONCursor> dtype = cursor.require("dtype");
  if (!dtype)
    return std::nullopt;
  constexpr ScalarKind kinds[] = {ScalarKind::I64, ScalarKind::F64, ScalarKind::Bool};
  llvm::SmallVector<llvm::StringRef, 3> names;
  for (ScalarKind kind : kinds)
    names.push_back(scalarKindName(kind));
  std::optional<size_t> index = dtype->expectWord("the dtype of a scalar (i64, f64, bool)", names);
  return index ? std::optional(Type(kinds[*index])) : std::nullopt;
}

std::optional<Type> JSONLiterals::readRNGState(JSONCursor cursor) {
  cursor.expectObject({"kind", "device"});
  std::optional<JSONCursor> deviceCursor = cursor.find("device");
  std::optional<Device> device = deviceCursor ? readDevice(*deviceCursor) : Device::host();
  return device ? std::optional(Type(RNGStateType{*device})) : std::nullopt;
}

std::optional<Type> JSONLiterals::readOpaque(JSONCursor cursor) {
  cursor.expectObject({"kind", "name", "parameters"});
  std::optional<JSONCursor> nameCursor = cursor.require("name");
  std::optional<JSONCursor> parametersCursor = cursor.find("parameters");
  std::optional<llvm::StringRef> name = nameCursor ? readString(*nameCursor) : std::nullopt;
  std::optional<llvm::StringRef> parameters =
      parametersCursor ? readString(*parametersCursor) : llvm::StringRef();
  if (!name || !parameters)
    return std::nullopt;
  if (!registry_.lookupType(*name)) {
    llvm::SmallVector<llvm::StringRef, 8> names;
    for (const std::unique_ptr<OpaqueTypeSpec> &spec : registry_.types())
      names.push_back(spec->name);
    nameCursor->error("unknown opaque type " + quoteForMessage(*name) + didYouMean(*name, names));
    return std::nullopt;
  }
  return Type(OpaqueType{name->str(), parameters->str()});
}

std::optional<Type> JSONLiterals::readType(JSONCursor cursor) {
  if (!cursor.expectObject())
    return std::nullopt;
  std::optional<JSONCursor> kind = cursor.require("kind");
  if (!kind)
    return std::nullopt;
  std::optional<size_t> index =
      kind->expectWord("a kind of type", {"tensor", "scalar", "rng", "opaque"});
  if (!index)
    return std::nullopt;
  switch (*index) {
  case 0:
    return readTensor(cursor);
  case 1:
    return readScalar(cursor);
  case 2:
    return readRNGState(cursor);
  default:
    return readOpaque(cursor);
  }
}

//===--- Attributes -------------------------------------------------------===//

std::optional<Attribute> JSONLiterals::readAttribute(JSONCursor cursor, unsigned depth) {
  switch (cursor.kind()) {
  case JSONKind::Null:
    return Attribute();
  case JSONKind::Bool:
    return Attribute(*cursor.asBool());
  case JSONKind::Int: {
    std::optional<int64_t> value = cursor.expectInt();
    return value ? std::optional(Attribute(*value)) : std::nullopt;
  }
  case JSONKind::Float:
    cursor.error("expected {\"float\": ...} around a floating-point attribute");
    return std::nullopt;
  case JSONKind::String: {
    std::optional<llvm::StringRef> value = readString(cursor);
    return value ? std::optional(Attribute(*value)) : std::nullopt;
  }
  case JSONKind::Array:
    return readList(cursor, depth);
  case JSONKind::Object:
    return readTagged(cursor);
  }
  return std::nullopt;
}

std::optional<Attribute> JSONLiterals::readList(JSONCursor cursor, unsigned depth) {
  if (depth == maxNesting) {
    cursor.error("lists are nested more than " + llvm::Twine(maxNesting) + " deep");
    return std::nullopt;
  }
  Attribute::List list;
  list.reserve(cursor.size());
  bool isGood = true;
  for (JSONCursor element : cursor.elements()) {
    std::optional<Attribute> value = readAttribute(element, depth + 1);
    isGood &= value.has_value();
    list.push_back(value ? std::move(*value) : Attribute());
  }
  return isGood ? std::optional(Attribute(std::move(list))) : std::nullopt;
}

/// A number, or one of the strings `nan`, `inf`, `-inf`.
std::optional<double> JSONLiterals::readFloat(JSONCursor cursor) {
  if (cursor.kind() != JSONKind::String)
    return cursor.expectNumber();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double values[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity};
  std::optional<size_t> index =
      cursor.expectWord("a number, 'nan', 'inf' or '-inf'", {"nan", "inf", "-inf"});
  return index ? std::optional(values[*index]) : std::nullopt;
}

/// What JSON has no value for: an object with one key that says what it is.
std::optional<Attribute> JSONLiterals::readTagged(JSONCursor cursor) {
  cursor.expectObject({"float", "symbolic", "dtype", "device"});
  if (cursor.size() != 1) {
    cursor.error("expected an object with one key: 'float', 'symbolic', 'dtype' or 'device'");
    return std::nullopt;
  }
  auto wrap = [](auto value) { return value ? std::optional(Attribute(*value)) : std::nullopt; };
  JSONCursor value = cursor[0];
  if (value.key() == "float")
    return wrap(readFloat(value));
  if (value.key() == "symbolic")
    return wrap(readSymbolic(value));
  if (value.key() == "dtype")
    return wrap(readDType(value));
  if (value.key() == "device")
    return wrap(readDevice(value));
  return std::nullopt;
}
