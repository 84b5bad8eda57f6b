//===- Dim.h - Constant and symbolic dimensions -----------------*- C++ -*-===//
//
// A dimension, stride or offset: an int64, or a polynomial in named symbols with int64
// coefficients, kept in a canonical form so that equal polynomials compare and print equal.
// Polynomials are closed under what shapes need: the strides of a contiguous f32[B, S, 8] are [8*S,
// 8, 1], reshaping it to two dimensions gives B*S, concatenation gives S+1. `specialise` (passes/)
// replaces symbols by numbers before anything is claimed.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace rondo {

namespace detail {
class Polynomial;
void retainPolynomial(const Polynomial *polynomial);
void releasePolynomial(const Polynomial *polynomial);
bool isOverflow(const Polynomial *polynomial);
} // namespace detail

/// Values for symbols.
using SymbolBindings = llvm::StringMap<int64_t>;

/// An immutable value; cheap to copy; copies may be used from several threads. Arithmetic that
/// overflows an int64, gives more than `maxTerms` terms or a degree above `maxDegree` saturates to
/// `Dim::overflow()`, which equals nothing but itself, which arithmetic does not leave, and which
/// no verified type contains.
class Dim {
public:
  static constexpr unsigned maxTerms = 64;
  static constexpr unsigned maxDegree = 32;

  Dim() = default;
  Dim(int64_t value) : constant_(value) {} // implicit: dimensions are written as numbers
  Dim(const Dim &other) : constant_(other.constant_), polynomial_(other.polynomial_) { retain(); }
  Dim(Dim &&other) noexcept : constant_(other.constant_), polynomial_(other.polynomial_) {
    other.polynomial_ = nullptr;
  }
  Dim &operator=(Dim other) noexcept {
    std::swap(constant_, other.constant_);
    std::swap(polynomial_, other.polynomial_);
    return *this;
  }
  ~Dim() {
    if (polynomial_)
      detail::releasePolynomial(polynomial_);
  }

  /// A symbol. Asserts that `name` may be one.
  static Dim symbol(llvm::StringRef name);
  /// A letter or underscore, then letters, digits, underscores; and none of the words that mean
  /// something else where a dimension may stand: `none`, `true`, `false`, `nan`, `inf`, `host`, the
  /// names of dtypes.
  static bool isSymbolName(llvm::StringRef name);
  static Dim overflow();
  bool isOverflow() const { return polynomial_ && detail::isOverflow(polynomial_); }

  bool isConstant() const { return !polynomial_; }
  std::optional<int64_t> asConstant() const {
    return isConstant() ? std::optional(constant_) : std::nullopt;
  }
  /// The value of a constant dimension. Asserts that it is one.
  int64_t value() const {
    assert(isConstant() && "value of a symbolic dimension");
    return constant_;
  }
  bool isConstant(int64_t value) const { return isConstant() && constant_ == value; }

  friend Dim operator+(const Dim &a, const Dim &b) {
    int64_t sum;
    if (a.isConstant() && b.isConstant() && !__builtin_add_overflow(a.constant_, b.constant_, &sum))
      return sum;
    return addSlow(a, b);
  }
  friend Dim operator-(const Dim &a, const Dim &b) {
    int64_t difference;
    if (a.isConstant() && b.isConstant() &&
        !__builtin_sub_overflow(a.constant_, b.constant_, &difference))
      return difference;
    return subtractSlow(a, b);
  }
  friend Dim operator*(const Dim &a, const Dim &b) {
    int64_t product;
    if (a.isConstant() && b.isConstant() &&
        !__builtin_mul_overflow(a.constant_, b.constant_, &product))
      return product;
    return multiplySlow(a, b);
  }
  /// The q with q * b = a, if there is one with integer coefficients: (8*S+8) / (S+1) is 8, S / 2
  /// is nothing. Division by zero and of or by overflow: nothing.
  static std::optional<Dim> exactQuotient(const Dim &a, const Dim &b);

  friend bool operator==(const Dim &a, const Dim &b) {
    if (a.isConstant() && b.isConstant())
      return a.constant_ == b.constant_;
    return equalSlow(a, b);
  }
  friend llvm::hash_code hash_value(const Dim &dim) {
    return dim.isConstant() ? llvm::hash_value(dim.constant_) : hashSlow(dim);
  }

  /// The value under `bindings`; symbols without a binding stay.
  Dim substitute(const SymbolBindings &bindings) const;
  /// Appends the names of the symbols in it, sorted, without duplicates within this dimension.
  void collectSymbols(llvm::SmallVectorImpl<std::string> &names) const;

  /// `7`, `B`, `8*S`, `B*S+1`, `S*S-S`: terms by falling degree then by name, the constant last.
  /// `parse` reads it back, but for `<overflow>`.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
  /// Reads what `print` writes, also with other orders of terms and factors and with white space
  /// between tokens. Nothing on malformed text or overflow.
  static std::optional<Dim> parse(llvm::StringRef text);

private:
  friend class detail::Polynomial;
  explicit Dim(const detail::Polynomial &polynomial) : polynomial_(&polynomial) { retain(); }

  // What is left when not both operands are constants or the result overflows.
  static Dim addSlow(const Dim &a, const Dim &b);
  static Dim subtractSlow(const Dim &a, const Dim &b);
  static Dim multiplySlow(const Dim &a, const Dim &b);
  static bool equalSlow(const Dim &a, const Dim &b);
  static llvm::hash_code hashSlow(const Dim &dim);
  void retain() const {
    if (polynomial_)
      detail::retainPolynomial(polynomial_);
  }

  int64_t constant_ = 0;
  const detail::Polynomial *polynomial_ = nullptr; // null for a constant
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Dim &dim) {
  dim.print(os);
  return os;
}

using Dims = llvm::SmallVector<Dim, 4>;

/// Product of all dimensions; 1 for none; 0 if one is 0, however large the others.
Dim numElements(llvm::ArrayRef<Dim> shape);
/// Row-major strides in elements. A dimension of size 0 counts as 1, as in PyTorch.
Dims contiguousStrides(llvm::ArrayRef<Dim> shape);
/// All dimensions as numbers, or nothing if one is symbolic.
std::optional<llvm::SmallVector<int64_t, 4>> asConstants(llvm::ArrayRef<Dim> dims);

} // namespace rondo
