//===- Matrices.h - Tensors as batches of matrices --------------*- C++ -*-===//
//
// Products are computed by Eigen on dense copies of single matrices: operands may have any strides,
// and memory that Eigen aligns makes the order of its sums, and so every bit of the result,
// independent of where the tensors lie.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"

#include <Eigen/Core>

namespace rondo::host {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A tensor as matrices: `shape` and `strides` are those of the batch. Borrows the elements.
struct MatrixBatch {
  void *data = nullptr;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 5> shape, strides;
  int64_t rows = 1, columns = 1, rowStride = 0, columnStride = 0;

  MatrixBatch transposed() const {
    MatrixBatch result = *this;
    std::swap(result.rows, result.columns);
    std::swap(result.rowStride, result.columnStride);
    return result;
  }
  /// With another batch shape, to which this one broadcasts.
  MatrixBatch broadcastTo(llvm::ArrayRef<int64_t> batch) const {
    MatrixBatch result = *this;
    result.strides = broadcastStrides({data, dtype, shape, strides}, batch);
    result.shape.assign(batch.begin(), batch.end());
    return result;
  }
};

/// The last two dimensions of a tensor of at least two are the matrices.
inline MatrixBatch matrices(const TensorRef &tensor) {
  unsigned batch = tensor.rank() - 2;
  MatrixBatch result{tensor.data, tensor.dtype, {}, {}};
  result.shape.assign(tensor.shape.begin(), tensor.shape.begin() + batch);
  result.strides.assign(tensor.strides.begin(), tensor.strides.begin() + batch);
  result.rows = tensor.shape[batch];
  result.columns = tensor.shape[batch + 1];
  result.rowStride = tensor.strides[batch];
  result.columnStride = tensor.strides[batch + 1];
  return result;
}

/// The last dimension of a tensor of at least one is the columns of matrices of one row.
inline MatrixBatch rowVectors(const TensorRef &tensor) {
  unsigned batch = tensor.rank() - 1;
  MatrixBatch result{tensor.data, tensor.dtype, {}, {}};
  result.shape.assign(tensor.shape.begin(), tensor.shape.begin() + batch);
  result.strides.assign(tensor.strides.begin(), tensor.strides.begin() + batch);
  result.columns = tensor.shape[batch];
  result.columnStride = tensor.strides[batch];
  return result;
}

/// `tensor` broadcast to the shape of `matrices`, in the same batches and matrices.
inline MatrixBatch broadcastLike(const TensorRef &tensor, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 5> strides = broadcastStrides(tensor, shape);
  return matrices({tensor.data, tensor.dtype, shape, strides});
}

/// The matrix whose first element is `offset` elements from the first of `batch`.
template <typename T> Matrix<T> load(const MatrixBatch &batch, int64_t offset) {
  Matrix<T> dense(batch.rows, batch.columns);
  if (dense.size() == 0)
    return dense;
  dispatch(batch.dtype, [&](auto tag) {
    using From = typename decltype(tag)::Type;
    const From *data = static_cast<const From *>(batch.data) + offset;
    for (int64_t i = 0; i < batch.rows; ++i)
      for (int64_t j = 0; j < batch.columns; ++j)
        dense(i, j) = convert<T>(data[i * batch.rowStride + j * batch.columnStride]);
  });
  return dense;
}

/// Stores what has the size of a matrix of `batch`, converted to its dtype.
template <typename T> void store(const Matrix<T> &dense, const MatrixBatch &batch, int64_t offset) {
  if (dense.size() == 0)
    return;
  dispatch(batch.dtype, [&](auto tag) {
    using To = typename decltype(tag)::Type;
    To *data = static_cast<To *>(batch.data) + offset;
    for (int64_t i = 0; i < batch.rows; ++i)
      for (int64_t j = 0; j < batch.columns; ++j)
        data[i * batch.rowStride + j * batch.columnStride] = convert<To>(dense(i, j));
  });
}

} // namespace rondo::host
