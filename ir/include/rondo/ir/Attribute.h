//===- Attribute.h - Compile-time constants of ops --------------*- C++ -*-===//

#pragma once

#include "rondo/ir/DType.h"
#include "rondo/ir/Device.h"
#include "rondo/ir/Dim.h"

#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace rondo {

/// A compile-time constant of an op: none, bool, integer (constant or symbolic), double, string,
/// dtype, device, or a list. An integer and a symbolic dimension are one alternative, so that
/// `reshape {shape = [B, 32]}` is an ordinary list.
class Attribute {
public:
  using List = std::vector<Attribute>;
  enum class Kind : uint8_t { None, Bool, Int, Float, String, DType, Device, List };

  Attribute() = default;
  /// Exactly bool: a pointer never becomes one.
  template <std::same_as<bool> T> Attribute(T value) : storage_(bool(value)) {}
  /// Any other integer type; a value above the largest int64 gives Dim::overflow().
  template <std::integral T>
  requires(!std::same_as<T, bool>) Attribute(T value)
      : storage_(std::in_range<int64_t>(value) ? Dim(int64_t(value)) : Dim::overflow()) {}
  Attribute(Dim value) : storage_(std::move(value)) {}
  /// Every nan is kept as the same one.
  Attribute(double value)
      : storage_(value == value ? value : std::numeric_limits<double>::quiet_NaN()) {}
  Attribute(std::string value) : storage_(std::move(value)) {}
  Attribute(llvm::StringRef value) : storage_(value.str()) {}
  Attribute(const char *value) : storage_(std::string(value)) {}
  Attribute(std::nullptr_t) = delete;
  Attribute(DType value) : storage_(value) {}
  Attribute(Device value) : storage_(value) {}
  /// A list that is the only element of another is written `List{Attribute(List{1})}`: compilers
  /// do not agree on what `List{List{1}}` is.
  Attribute(List value) : storage_(std::move(value)) {}
  Attribute(llvm::ArrayRef<Dim> dims) : storage_(List(dims.begin(), dims.end())) {}
  Attribute(llvm::ArrayRef<int64_t> values) : storage_(List(values.begin(), values.end())) {}
  Attribute(const llvm::SmallVectorImpl<Dim> &dims) : Attribute(llvm::ArrayRef<Dim>(dims)) {}
  Attribute(const llvm::SmallVectorImpl<int64_t> &values)
      : Attribute(llvm::ArrayRef<int64_t>(values)) {}

  Kind kind() const { return Kind(storage_.index()); }
  bool isNone() const { return kind() == Kind::None; }

  const bool *asBool() const { return std::get_if<bool>(&storage_); }
  /// A constant or symbolic integer.
  const Dim *asDim() const { return std::get_if<Dim>(&storage_); }
  /// A constant integer.
  std::optional<int64_t> asInt() const { return asDim() ? asDim()->asConstant() : std::nullopt; }
  const double *asFloat() const { return std::get_if<double>(&storage_); }
  /// An integer or a float, as a double.
  std::optional<double> asNumber() const;
  const std::string *asString() const { return std::get_if<std::string>(&storage_); }
  const DType *asDType() const { return std::get_if<DType>(&storage_); }
  const Device *asDevice() const { return std::get_if<Device>(&storage_); }
  const List *asList() const { return std::get_if<List>(&storage_); }
  /// A list whose elements are all (constant or symbolic) integers, or nothing.
  std::optional<Dims> asDims() const;
  std::optional<llvm::SmallVector<int64_t, 4>> asInts() const;

  Attribute substitute(const SymbolBindings &bindings) const;
  void collectSymbols(llvm::SmallVectorImpl<std::string> &names) const;

  /// Text form: `none`, `true`, `7`, `8*S`, `1.5`, `nan`, `-inf`, `"text"`, `f32`, `cuda:0`, `[1,
  /// 2]`. A float always has a '.', an exponent, or is one of nan, inf, -inf; the shortest digits
  /// that read back to the same double.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;

  /// Floats compare by bits: nan equals nan, 0.0 differs from -0.0.
  friend bool operator==(const Attribute &a, const Attribute &b);
  friend llvm::hash_code hash_value(const Attribute &attribute);

private:
  std::variant<std::monostate, bool, Dim, double, std::string, DType, Device, List> storage_;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Attribute &attribute) {
  attribute.print(os);
  return os;
}

/// Writes `text` in double quotes; escapes `"`, `\`, newline and tab with a backslash, and other
/// bytes below 32 and 127 as `\xHH` with upper-case digits. All other bytes stay as they are.
void printQuoted(llvm::raw_ostream &os, llvm::StringRef text);
/// The shortest text that reads back as the same double, in the form Attribute::print describes.
void printDouble(llvm::raw_ostream &os, double value);

/// An attribute and its name. The name lives as long as the trace that owns the op.
struct NamedAttribute {
  llvm::StringRef name;
  Attribute value;
};

} // namespace rondo
