//===- Attribute.cpp - Compile-time constants of ops ----------------------===//

#include "rondo/ir/Attribute.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

#include <charconv>
#include <cmath>

namespace rondo {

std::optional<double> Attribute::asNumber() const {
  if (const double *value = asFloat())
    return *value;
  if (std::optional<int64_t> value = asInt())
    return double(*value);
  return std::nullopt;
}

std::optional<Dims> Attribute::asDims() const {
  const List *list = asList();
  if (!list)
    return std::nullopt;
  Dims dims;
  dims.reserve(list->size());
  for (const Attribute &element : *list) {
    const Dim *dim = element.asDim();
    if (!dim)
      return std::nullopt;
    dims.push_back(*dim);
  }
  return dims;
}

std::optional<llvm::SmallVector<int64_t, 4>> Attribute::asInts() const {
  const List *list = asList();
  if (!list)
    return std::nullopt;
  llvm::SmallVector<int64_t, 4> values;
  values.reserve(list->size());
  for (const Attribute &element : *list) {
    std::optional<int64_t> value = element.asInt();
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

Attribute Attribute::substitute(const SymbolBindings &bindings) const {
  if (const Dim *dim = asDim())
    return dim->substitute(bindings);
  const List *list = asList();
  if (!list)
    return *this;
  List result;
  result.reserve(list->size());
  for (const Attribute &element : *list)
    result.push_back(element.substitute(bindings));
  return result;
}

void Attribute::collectSymbols(llvm::SmallVectorImpl<std::string> &names) const {
  if (const Dim *dim = asDim())
    dim->collectSymbols(names);
  if (const List *list = asList())
    for (const Attribute &element : *list)
      element.collectSymbols(names);
}

void Attribute::print(llvm::raw_ostream &os) const {
  switch (kind()) {
  case Kind::None:
    os << "none";
    return;
  case Kind::Bool:
    os << (*asBool() ? "true" : "false");
    return;
  case Kind::Int:
    os << *asDim();
    return;
  case Kind::Float:
    printDouble(os, *asFloat());
    return;
  case Kind::String:
    printQuoted(os, *asString());
    return;
  case Kind::DType:
    os << dtypeName(*asDType());
    return;
  case Kind::Device:
    os << *asDevice();
    return;
  case Kind::List:
    os << '[';
    llvm::interleaveComma(*asList(), os);
    os << ']';
    return;
  }
  llvm_unreachable("no such kind of attribute");
}

std::string Attribute::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return os.str();
}

static uint64_t bitsOf(double value) {
  return llvm::bit_cast<uint64_t>(value);
}

bool operator==(const Attribute &a, const Attribute &b) {
  if (a.kind() == Attribute::Kind::Float && b.kind() == Attribute::Kind::Float)
    return bitsOf(*a.asFloat()) == bitsOf(*b.asFloat());
  return a.storage_ == b.storage_;
}

llvm::hash_code hash_value(const Attribute &attribute) {
  auto combine = [&](const auto &value) { return llvm::hash_combine(attribute.kind(), value); };
  switch (attribute.kind()) {
  case Attribute::Kind::None:
    return combine(0);
  case Attribute::Kind::Bool:
    return combine(*attribute.asBool());
  case Attribute::Kind::Int:
    return combine(*attribute.asDim());
  case Attribute::Kind::Float:
    return combine(bitsOf(*attribute.asFloat()));
  case Attribute::Kind::String:
    return combine(*attribute.asString());
  case Attribute::Kind::DType:
    return combine(*attribute.asDType());
  case Attribute::Kind::Device:
    return combine(*attribute.asDevice());
  case Attribute::Kind::List:
    return combine(
        llvm::hash_combine_range(attribute.asList()->begin(), attribute.asList()->end()));
  }
  llvm_unreachable("no such kind of attribute");
}

void printQuoted(llvm::raw_ostream &os, llvm::StringRef text) {
  os << '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      os << '\\' << c;
    else if (c == '\n')
      os << "\\n";
    else if (c == '\t')
      os << "\\t";
    else if (c < 0x20 || c == 0x7f)
      os << "\\x" << llvm::hexdigit(c >> 4) << llvm::hexdigit(c & 15);
    else
      os << c;
  }
  os << '"';
}

void printDouble(llvm::raw_ostream &os, double value) {
  if (std::isnan(value)) {
    os << "nan";
    return;
  }
  if (std::isinf(value)) {
    os << (value < 0 ? "-inf" : "inf");
    return;
  }
  char buffer[32]; // the longest is 24: -1.7976931348623157e+308
  char *end = std::to_chars(buffer, std::end(buffer), value).ptr;
  llvm::StringRef digits(buffer, end - buffer);
  os << digits;
  if (digits.find_first_of(".e") == llvm::StringRef::npos)
    os << ".0";
}

} // namespace rondo
