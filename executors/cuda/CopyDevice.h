//===- CopyDevice.h - Device code of copies and fills -----------*- C++ -*-===//
//
// Bits are moved, whatever they mean: there is a kernel for each size of an element in bytes, 1, 2,
// 4 and 8. Where elements lie side by side several of them are moved as one, up to 16 bytes.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

inline constexpr int copyBlock = 256; ///< threads, of all but transposes

struct MoveParams {
  Layout<2> layout; ///< from, to
  const void *from = nullptr;
  void *to = nullptr;
};

struct FillParams {
  Layout<1> layout;
  void *to = nullptr;
  uint64_t bits = 0; ///< of the element, repeated until there are 8 bytes
};

/// A block of transposeTile by transposeRows threads moves tiles of transposeTile by transposeTile.
inline constexpr int transposeTile = 32, transposeRows = 8;

/// Matrices whose rows lie densely in `from`, and whose columns in `to`.
struct TransposeParams {
  Layout<2> matrices; ///< from, to: from matrix to matrix
  int64_t rows = 0, columns = 0;
  int64_t fromStride = 0, toStride = 0; ///< from row to row; from column to column
  const void *from = nullptr;
  void *to = nullptr;
};

/// Element i of `to` is element i - shift, modulo their number, of `from`; 0 <= shift < number.
struct RollParams {
  Layout<1> fromLayout, toLayout;
  int64_t shift = 0;
  const void *from = nullptr;
  void *to = nullptr;
};

/// Of matrices of `rows` by `columns` what is kept is copied and the rest is 0.
struct TriangleParams {
  Layout<2> layout; ///< from, to: in row-major order
  int64_t rows = 0, columns = 0;
  Divider rowDivider, columnDivider; ///< where the layout is small
  int64_t diagonal = 0;
  bool lower = false; ///< keeps column <= row + diagonal, else column >= row + diagonal
  const void *from = nullptr;
  void *to = nullptr;
};

/// `__global__` functions for elements of `bytes` bytes: 1, 2, 4, 8, of the first two also 16.
const void *moveKernel(unsigned bytes);
const void *fillKernel(unsigned bytes);
const void *transposeKernel(unsigned bytes);
const void *rollKernel(unsigned bytes);
const void *triangleKernel(unsigned bytes);

} // namespace rondo::cuda
