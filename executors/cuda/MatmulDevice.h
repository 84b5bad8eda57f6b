//===- MatmulDevice.h - Device code of products of matrices -----*- C++ -*-===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

/// A block computes tiles of matmulTile by matmulTile elements of the result.
inline constexpr int matmulTile = 64;
inline constexpr int matmulBlock = 256; ///< threads

/// From row to row and from column to column of one matrix, in elements.
struct MatmulStrides {
  int64_t rowStride = 0, columnStride = 0;
};

/// What the kernels get: out = alpha * (a @ b) + beta * bias, all of one dtype.
struct MatmulParams {
  Layout<4> batches; ///< from matrix to matrix of out, a, b and bias
  void *out = nullptr;
  const void *a = nullptr, *b = nullptr, *bias = nullptr; ///< no bias: null
  MatmulStrides outStrides, aStrides, bStrides, biasStrides;
  int64_t rows = 0, columns = 0, inner = 0;
  double alpha = 1, beta = 1;
  ElementType type = ElementType::F32;
};

/// The `__global__` function that multiplies and sums in the compute type.
const void *matmulKernel(ComputeType type);

} // namespace rondo::cuda
