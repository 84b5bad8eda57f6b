//===- LiteralReader.cpp - Types and attributes from text -------------------===//

#include "LiteralReader.h"

#include "rondo/ir/Text.h"

#include "llvm/ADT/STLExtras.h"

#include <charconv>

using namespace rondo;

static llvm::SmallVector<llvm::StringRef, 16> dtypeNames() {
  llvm::SmallVector<llvm::StringRef, 16> names;
  for (DType dtype : allDTypes)
    names.push_back(dtypeName(dtype));
  return names;
}

bool LiteralReader::expectEnd(const llvm::Twine &what) {
  if (atEnd())
    return true;
  return fail(token(),
              "expected the end of the text after " + what + ", found " + describe(token()));
}

//===----------------------------------------------------------------------===//
// Dimensions and devices
//===----------------------------------------------------------------------===//

std::optional<Dim> LiteralReader::readTerm(bool isNegative) {
  Dim term = isNegative ? -1 : 1;
  while (true) {
    const Token factor = token();
    if (at(TokenKind::Integer)) {
      uint64_t magnitude;
      constexpr uint64_t maxMagnitude = uint64_t(1) << 63;
      bool isTooLarge = factor.text.getAsInteger(10, magnitude) || magnitude > maxMagnitude;
      // Only the least int64 has a magnitude that is no int64 itself.
      if (isTooLarge || (magnitude == maxMagnitude && !term.isConstant(-1))) {
        fail(factor, "integer " + describe(factor) + " does not fit in 64 bits");
        return std::nullopt;
      }
      if (term.isConstant(-1))
        term = int64_t(0 - magnitude);
      else
        term = term * Dim(int64_t(magnitude));
    } else if (at(TokenKind::Identifier)) {
      if (!Dim::isSymbolName(factor.text)) {
        fail(factor, describe(factor) + " is no name of a symbolic dimension");
        return std::nullopt;
      }
      term = term * Dim::symbol(factor.text);
    } else {
      failExpected("an integer or a symbol");
      return std::nullopt;
    }
    if (term.isOverflow()) {
      fail(factor, "dimension is out of range");
      return std::nullopt;
    }
    next();
    if (!consumeIf('*'))
      return term;
  }
}

std::optional<Dim> LiteralReader::readDim() {
  Token begin = token();
  std::optional<Dim> sum = readTerm(consumeIf('-'));
  while (sum && (at('+') || at('-'))) {
    bool isNegative = at('-');
    next();
    std::optional<Dim> term = readTerm(isNegative);
    if (!term)
      return std::nullopt;
    sum = *sum + *term;
    if (sum->isOverflow()) {
      fail(begin, "dimension is out of range");
      return std::nullopt;
    }
  }
  return sum;
}

bool LiteralReader::readDims(Dims &dims, bool isShape) {
  do {
    Token begin = token();
    std::optional<Dim> dim = readDim();
    if (!dim)
      return false;
    if (isShape && dim->isConstant() && dim->value() < 0)
      return fail(begin, "dimension " + llvm::Twine(dim->value()) + " is negative");
    dims.push_back(std::move(*dim));
  } while (consumeIf(','));
  return true;
}

std::optional<Device> LiteralReader::readDevice() {
  static constexpr llvm::StringRef kinds[] = {"host", "cuda"};
  Token kind = token();
  if (!at(TokenKind::Identifier)) {
    failExpected("a device");
    return std::nullopt;
  }
  if (!llvm::is_contained(kinds, kind.text)) {
    fail(kind, "unknown device " + describe(kind) + didYouMean(kind.text, kinds));
    return std::nullopt;
  }
  next();
  if (!at(':')) {
    if (kind.text == "host")
      return Device::host();
    failExpected("':' and an index after 'cuda'");
    return std::nullopt;
  }
  next();
  uint32_t index;
  if (!readUnsigned(index, "a device index", std::numeric_limits<uint16_t>::max()))
    return std::nullopt;
  return Device{kind.text == "host" ? DeviceKind::Host : DeviceKind::CUDA, uint16_t(index)};
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

std::optional<Type> LiteralReader::readType() {
  if (at('!'))
    return readOpaqueType();
  Token word = token();
  if (!at(TokenKind::Identifier)) {
    failExpected("a type");
    return std::nullopt;
  }
  if (word.text == "rng") {
    next();
    if (!consumeIf('@'))
      return Type(RNGStateType{});
    std::optional<Device> device = readDevice();
    return device ? std::optional<Type>(RNGStateType{*device}) : std::nullopt;
  }
  std::optional<DType> dtype = parseDType(word.text);
  if (!dtype) {
    llvm::SmallVector<llvm::StringRef, 16> words = dtypeNames();
    words.push_back("rng");
    fail(word, "unknown type " + describe(word) + didYouMean(word.text, words));
    return std::nullopt;
  }
  next();
  if (at('['))
    return readTensor(*dtype);
  if (std::optional<ScalarKind> scalar = parseScalarKind(word.text))
    return Type(*scalar);
  failExpected("'[' and the shape after dtype '" + word.text + "'");
  return std::nullopt;
}

std::optional<Type> LiteralReader::readTensor(DType dtype) {
  next(); // '['
  Token begin = token();
  Dims shape, strides;
  if (!at(']') && !at(';') && !readDims(shape, true))
    return std::nullopt;
  Token beginStrides = token();
  bool hasStrides = consumeIf(';');
  if (hasStrides) {
    if (!at(']') && !readDims(strides, false))
      return std::nullopt;
    if (strides.size() != shape.size()) {
      fail(beginStrides, "shape has rank " + llvm::Twine(shape.size()) +
                             ", but the number of strides is " + llvm::Twine(strides.size()));
      return std::nullopt;
    }
  }
  if (!consumeIf(']')) {
    failExpected(hasStrides ? "']' or ',' after a stride" : "']', ',' or ';' after a dimension");
    return std::nullopt;
  }
  Device device;
  if (consumeIf('@')) {
    std::optional<Device> named = readDevice();
    if (!named)
      return std::nullopt;
    device = *named;
  }
  if (hasStrides)
    return TensorType(dtype, std::move(shape), std::move(strides), device);
  TensorType type(dtype, std::move(shape), device);
  if (llvm::any_of(type.strides, [](const Dim &stride) { return stride.isOverflow(); })) {
    fail(begin, "strides of this shape are out of range");
    return std::nullopt;
  }
  return type;
}

std::optional<Type> LiteralReader::readOpaqueType() {
  next(); // '!'
  Token name = token();
  if (!at(TokenKind::Identifier)) {
    failExpected("the name of a type after '!'");
    return std::nullopt;
  }
  const OpaqueTypeSpec *spec = registry().lookupType(name.text);
  if (!spec) {
    llvm::SmallVector<llvm::StringRef, 8> known;
    for (const std::unique_ptr<OpaqueTypeSpec> &type : registry().types())
      known.push_back(type->name);
    fail(name, "unknown type '!" + name.text + "'" + didYouMean(name.text, known));
    return std::nullopt;
  }
  next();
  OpaqueType type{spec->name, {}};
  Token parameters = token();
  if (consumeIf('<')) {
    parameters = token();
    if (!readString(type.parameters, "the parameters of a type") ||
        !expect('>', "after the parameters"))
      return std::nullopt;
  }
  if (spec->verify) {
    if (llvm::Error error = spec->verify(type.parameters)) {
      fail(parameters.is(TokenKind::String) ? parameters : name,
           "type '!" + name.text + "': " + llvm::toString(std::move(error)));
      return std::nullopt;
    }
  }
  return Type(std::move(type));
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

std::optional<Attribute> LiteralReader::readAttribute(unsigned depth) {
  switch (token().kind) {
  case TokenKind::String: {
    std::string text;
    readString(text, "a string");
    return Attribute(std::move(text));
  }
  case TokenKind::Float:
    return readFloat(false);
  case TokenKind::Identifier:
    return readWord();
  case TokenKind::Integer:
    break;
  case TokenKind::Punctuation:
    if (at('['))
      return readList(depth);
    if (at('-')) {
      if (Token magnitude = peek(); magnitude.is(TokenKind::Float) || magnitude.isWord("inf")) {
        next();
        return readFloat(true);
      }
      break;
    }
    [[fallthrough]];
  default:
    failExpected("an attribute value");
    return std::nullopt;
  }
  std::optional<Dim> dim = readDim();
  return dim ? std::optional<Attribute>(std::move(*dim)) : std::nullopt;
}

std::optional<Attribute> LiteralReader::readFloat(bool isNegative) {
  Token number = token();
  double value = std::numeric_limits<double>::infinity();
  if (number.is(TokenKind::Float)) {
    auto [end, error] = std::from_chars(number.text.begin(), number.text.end(), value);
    if (error != std::errc() || end != number.text.end()) {
      fail(number, "number " + describe(number) + " is out of range");
      return std::nullopt;
    }
  }
  next();
  return Attribute(isNegative ? -value : value);
}

std::optional<Attribute> LiteralReader::readWord() {
  Token word = token();
  if ((word.text == "host" || word.text == "cuda") && peek().is(':')) {
    std::optional<Device> device = readDevice();
    return device ? std::optional<Attribute>(*device) : std::nullopt;
  }
  if (Dim::isSymbolName(word.text)) {
    if (peek().is(':')) {
      readDevice(); // an unknown one: reports it
      return std::nullopt;
    }
    std::optional<Dim> dim = readDim();
    return dim ? std::optional<Attribute>(std::move(*dim)) : std::nullopt;
  }
  if (word.text == "inf")
    return readFloat(false);
  std::optional<Attribute> value;
  if (word.text == "none")
    value = Attribute();
  else if (word.text == "true" || word.text == "false")
    value = Attribute(word.text == "true");
  else if (word.text == "nan")
    value = Attribute(std::numeric_limits<double>::quiet_NaN());
  else if (word.text == "host")
    value = Attribute(Device::host());
  else if (std::optional<DType> dtype = parseDType(word.text))
    value = Attribute(*dtype);
  if (value)
    next();
  else
    fail(word, "unknown word " + describe(word) +
                   " as an attribute value; strings stand in double quotes");
  return value;
}

std::optional<Attribute> LiteralReader::readList(unsigned depth) {
  if (depth >= maxNesting) {
    fail(token(), "lists are nested more than " + llvm::Twine(maxNesting) + " deep");
    return std::nullopt;
  }
  next(); // '['
  Attribute::List list;
  while (!at(']')) {
    if (!list.empty() && !expect(',', "or ']' after an element of a list"))
      return std::nullopt;
    std::optional<Attribute> element = readAttribute(depth + 1);
    if (!element)
      return std::nullopt;
    list.push_back(std::move(*element));
  }
  next(); // ']'
  return Attribute(std::move(list));
}

//===----------------------------------------------------------------------===//
// Types alone
//===----------------------------------------------------------------------===//

llvm::Expected<Type> rondo::parseType(llvm::StringRef text, const OpRegistry &registry) {
  DiagnosticList diagnostics;
  SourceText source(text, "");
  LiteralReader reader(source, diagnostics, registry);
  std::optional<Type> type = reader.readType();
  if (type && reader.expectEnd("the type"))
    return std::move(*type);
  return diagnostics.takeError();
}
