//===- Shapes.h - Sizes and strides as kernels see them ---------*- C++ -*-===//

#pragma once

#include "rondo/executors/Tensor.h"

#include "rondo/ir/OpSpec.h"

#include <algorithm>

namespace rondo {

/// Strides of `tensor` broadcast to `shape`: 0 where its size is 1 or it has no such dimension.
inline llvm::SmallVector<int64_t, 5> broadcastStrides(const TensorRef &tensor,
                                                      llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 5> strides(shape.size(), 0);
  size_t added = shape.size() - tensor.rank();
  for (size_t i = 0; i < tensor.rank(); ++i)
    strides[added + i] = tensor.shape[i] == 1 ? 0 : tensor.strides[i];
  return strides;
}

inline llvm::SmallVector<int64_t, 5> rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 5> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  return strides;
}

/// The dimension that `dim` names: counted from the end if it is negative. A 0-d tensor counts as
/// having one.
inline unsigned wrapDim(int64_t dim, unsigned rank) {
  return dim < 0 ? dim + std::max(rank, 1U) : dim;
}
/// The dimensions that the attribute lists, of a tensor of `rank` dimensions: none of a 0-d tensor.
llvm::SmallVector<unsigned, 5> listedDims(const OpContext &op, llvm::StringRef attribute,
                                          unsigned rank);

/// A row-major tensor seen as [outer, size, inner] around one dimension.
struct Axis {
  int64_t outer = 1, size = 1, inner = 1;

  /// `dim` counts from the end when negative. A 0-d tensor counts as having one dimension.
  Axis(llvm::ArrayRef<int64_t> shape, int64_t dim) {
    int64_t rank = shape.size();
    if (rank == 0)
      return;
    int64_t at = dim < 0 ? dim + rank : dim;
    for (int64_t d = 0; d < rank; ++d)
      (d < at ? outer : d == at ? size : inner) *= shape[d];
  }

  int64_t index(int64_t o, int64_t i, int64_t k) const { return (o * size + i) * inner + k; }
  /// Calls `visit(first)` with the index of the first element of every row along the dimension;
  /// the others follow at distance `inner`. Rows without elements are not visited.
  template <typename Visit> void forEachRow(Visit &&visit) const {
    for (int64_t o = 0; size > 0 && o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k)
        visit(index(o, 0, k));
  }
};

/// Which dimensions of operand 0 a reduction goes over, and which a result keeps.
struct ReducedDims {
  llvm::SmallVector<unsigned, 5> reduced, kept; ///< of the operand, in order
  bool keepdim = false;                         ///< a reduced one stays in the result, with size 1

  /// By the attribute `dims` (a list, all without entries) or `dim` (one, all where absent), and
  /// `keepdim`.
  static ReducedDims get(const OpContext &op);
};

} // namespace rondo
