//===- Matrices.h - Tensors as batches of matrices --------------*- C++ -*-===//
//
// Products are computed by Eigen on dense copies of single matrices: operands may have any strides,
// and memory that Eigen aligns makes the order of its sums, and so every bit of the result,
// independent of where the tensors lie.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"

#include "rondo/executors/MatrixProduct.h"

#include <Eigen/Core>

namespace rondo::host {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A tensor as matrices. Borrows the elements.
struct MatrixBatch : MatrixLayout {
  void *data = nullptr;

  MatrixBatch() = default;
  MatrixBatch(void *data, MatrixLayout layout) : MatrixLayout(std::move(layout)), data(data) {}
  MatrixBatch transposed() const { return {data, MatrixLayout::transposed()}; }
  MatrixBatch broadcastTo(llvm::ArrayRef<int64_t> batch) const {
    return {data, MatrixLayout::broadcastTo(batch)};
  }
};

inline MatrixBatch matrices(const TensorRef &tensor) {
  return {tensor.data, MatrixLayout::ofMatrices(tensor.dtype, tensor.shape, tensor.strides)};
}
inline MatrixBatch rowVectors(const TensorRef &tensor) {
  return {tensor.data, MatrixLayout::ofRowVectors(tensor.dtype, tensor.shape, tensor.strides)};
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
