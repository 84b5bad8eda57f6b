//===- RowSetDevice.h - Tensors that are worked on row by row ---*- C++ -*-===//
//
// A block of rowBlock threads works on one row, or on several at a time.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

inline constexpr int rowBlock = 256; ///< threads

/// How the threads of a block share rows.
struct Lanes {
  int count = 1; ///< threads for each row: a power of two, at most rowBlock
  /// Those of one row are neighbours, at most 32 or all of the block: right for rows that are
  /// dense. Else neighbours are on neighbouring rows: right where those lie closer together than
  /// the elements of a row.
  bool adjacent = true;

  RONDO_DEVICE int rows() const { return rowBlock / count; }
  RONDO_DEVICE int row(int thread) const { return adjacent ? thread / count : thread % rows(); }
  RONDO_DEVICE int lane(int thread) const { return adjacent ? thread % count : thread / rows(); }

  /// For rows of this many elements: a thread, part of a warp, a warp or a block for each.
  static Lanes alongRow(int64_t elements) {
    Lanes lanes;
    while (lanes.count < 32 && lanes.count * 4 < elements)
      lanes.count *= 2;
    if (elements > 1024)
      lanes.count = rowBlock;
    return lanes;
  }
  /// For this many rows beside each other.
  static Lanes acrossRows(int64_t rows) {
    Lanes lanes{rowBlock, /*adjacent=*/false};
    while (lanes.rows() < 32 && lanes.rows() < rows)
      lanes.count /= 2;
    return lanes;
  }
};

/// N tensors with rows of equally many elements. What has one element for each row, or for each
/// position in a row, has strides of 0.
template <int N> struct RowSet {
  Layout<N> rows;     ///< where rows start
  Layout<N> row;      ///< where elements are from there
  void *data[N] = {}; ///< null: is not there, its elements are 0
  ElementType types[N] = {}, as[N] = {};
  Lanes lanes;
  /// Along the rows, all are dense, aligned to pointwiseVector elements, as many as a multiple of
  /// it, and of vector types.
  bool isVector = false;
};

} // namespace rondo::cuda
