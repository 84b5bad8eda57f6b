//===- ShapeInference.h - Rules of dtypes, shapes and strides ---*- C++ -*-===//
//
// What decides the types of results apart from any op: dtype promotion, broadcasting of symbolic
// shapes, the strides of views.
//
// Symbolic dimensions are equal only if their polynomials are. Where a size decides nothing but
// whether an index is in range, a symbolic size is taken to be large enough; the check is made when
// it becomes a number.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Attribute.h"
#include "rondo/ir/Type.h"

namespace rondo {

/// `[8, B]`.
std::string shapeText(llvm::ArrayRef<Dim> shape);

/// Which dtypes an operand may have.
enum class DTypeClass : uint8_t { Any, NotBool, Float, Integral, Index, Bool };
/// True if `dtype` is in `allowed`. `Integral` has integers and bool, `Index` i32 and i64.
bool isIn(DTypeClass allowed, DType dtype);
llvm::StringRef dtypeClassName(DTypeClass allowed);

/// PyTorch's dtype promotion. Tensors with dimensions come before tensors without, those before
/// host scalars: a later category changes the result only when it is of a higher kind (bool <
/// integer < float).
class Promotion {
public:
  void add(const Type &operand);
  void add(const TensorType &tensor) {
    add(tensor.shape.empty() ? Zero : Dimensioned, tensor.dtype);
  }
  /// A number given as an attribute.
  void add(const Attribute &number);
  /// `ifNone` when nothing was added.
  DType result(DType ifNone = DType::F32) const;

private:
  enum Category : unsigned { Dimensioned, Zero, Wrapped };
  void add(Category category, DType dtype);
  std::optional<DType> byCategory_[3];
};

/// The dtype statistics of `dtype` are kept in: f32 for the narrower floats.
DType statisticsDType(DType dtype);
/// The default float for integers and bool, else `dtype` itself.
DType floatFor(DType dtype);
/// i64 for integers and bool, else `dtype` itself: what sums of it are kept in.
DType sumDType(DType dtype);
/// True if PyTorch lets an in-place op store a result of dtype `from` in a tensor of dtype `to`.
bool canCast(DType from, DType to);

/// Makes `shape` the shape that it and `other` broadcast to. False when they do not.
bool broadcast(Dims &shape, llvm::ArrayRef<Dim> other);
/// True if both are known and `a` is at most `b`, or they are equal polynomials.
bool isAtMost(const Dim &a, const Dim &b);
/// The strides with which the elements of a tensor (`shape`, `strides`) can be seen as `newShape`,
/// a shape of as many elements; nothing when that needs a copy. After ATen's rule: neighbouring
/// dimensions that lie evenly in memory form a chunk, and no new dimension may straddle two chunks.
std::optional<Dims> viewStrides(llvm::ArrayRef<Dim> shape, llvm::ArrayRef<Dim> strides,
                                llvm::ArrayRef<Dim> newShape);
/// True if the elements fill their storage without gap or overlap, in some order of the
/// dimensions.
bool isDense(const TensorType &type);
/// True if two indices are known to name one element (a dimension of stride 0).
bool overlapsItself(const TensorType &type);

/// The most dimensions of a result, as in PyTorch. Ranks come from files and cost time and memory.
inline constexpr unsigned maxRank = 64;
/// The most results of one op.
inline constexpr int64_t maxResults = 1 << 16;

} // namespace rondo
