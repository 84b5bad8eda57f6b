//===- CuBLASProduct.h - A product as cuBLASLt takes it ---------*- C++ -*-===//
//
// cuBLASLt multiplies column-major matrices: what lies in row-major order is the transpose of such
// a one. So out = a @ b, with a row-major result, is computed as
//
//   out^T = b^T @ a^T        left = b^T, right = a^T
//
// and with a column-major result as it stands. Batch dimensions along which all tensors keep one
// stride are merged; those along which `b` stands still become rows of the others; the longest that
// is left is the library's batch, and the rest are calls of their own.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/MatrixProduct.h"

#include "llvm/Support/Error.h"

namespace rondo::cuda {

/// A matrix as it lies in memory, column-major. Sizes and strides are in elements.
struct StoredMatrix {
  int64_t rows = 0, columns = 0, leadingDimension = 0, batchStride = 0;
  bool isTransposed = false; ///< the product takes the transpose
};

/// out[m, n] = alpha * (left[m, k] @ right[k, n]) + beta * addend[m, n] + vector[m]
struct CuBLASProduct {
  DType dtype = DType::F32;
  int64_t m = 0, n = 0, k = 0, batches = 1;
  bool isSwapped = true; ///< left is the transpose of the op's b, right that of its a
  StoredMatrix left, right, out;
  std::optional<StoredMatrix> addend;
  bool hasVector = false; ///< the bias is a vector, one element for each row
  double alpha = 1, beta = 0;

  /// Of one call, in elements from the first of each tensor.
  struct Offsets {
    int64_t left = 0, right = 0, addend = 0, out = 0;
  };
  llvm::SmallVector<Offsets, 1> calls;

  bool isEmpty() const { return m == 0 || n == 0 || batches == 0; }
  /// One product, not empty, whose result has no gaps: m * n elements.
  bool isSingle() const {
    return !isEmpty() && k != 0 && batches == 1 && calls.size() == 1 && out.leadingDimension == m;
  }
};

/// Calls of the library for one op.
inline constexpr int64_t maxCalls = 64;

/// Errors: a message that says which operand cuBLASLt cannot take and why.
llvm::Expected<CuBLASProduct> describeProduct(const MatrixProduct &product);

} // namespace rondo::cuda
