//===- MatrixProduct.h - Products of batches of matrices --------*- C++ -*-===//
//
// Which matrices the ops mm, bmm, matmul, addmm, baddbmm and linear multiply: found from types and
// attributes alone, once, for every executor.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/OpSpec.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace rondo {

/// A tensor as matrices: `shape` and `strides` are those of the batch. Strides are in elements.
struct MatrixLayout {
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 5> shape, strides;
  int64_t rows = 1, columns = 1, rowStride = 0, columnStride = 0;

  /// The last two dimensions of a tensor of at least two are the matrices.
  static MatrixLayout ofMatrices(DType dtype, llvm::ArrayRef<int64_t> shape,
                                 llvm::ArrayRef<int64_t> strides);
  /// The last dimension of a tensor of at least one is the columns of matrices of one row.
  static MatrixLayout ofRowVectors(DType dtype, llvm::ArrayRef<int64_t> shape,
                                   llvm::ArrayRef<int64_t> strides);

  MatrixLayout transposed() const;
  /// With another batch shape, to which this one broadcasts.
  MatrixLayout broadcastTo(llvm::ArrayRef<int64_t> batch) const;
};

/// out = alpha * (a @ b) + beta * bias, for every matrix of a batch; all have the batch shape of
/// `out`, and `bias` its rows and columns (strides are 0 where it broadcasts).
struct MatrixProduct {
  MatrixLayout out, a, b;
  std::optional<MatrixLayout> bias; ///< nothing also if `beta` is 0: then it is not looked at
  unsigned aOperand = 0, bOperand = 1, biasOperand = 0;
  double alpha = 1, beta = 1;
};

/// The product that `op` is, which has result types and no symbols; nothing if it is none.
std::optional<MatrixProduct> matrixProduct(const OpContext &op);

} // namespace rondo
