//===- SortDevice.h - Device code of sorting --------------------*- C++ -*-===//
//
// Rows of unsigned keys are sorted, stably. A short row is sorted in the shared memory of one
// block, by a bitonic network (Batcher, "Sorting networks and their applications", AFIPS 1968); of
// equal keys the one that stood first is the lesser. Long ones are sorted by digits of 8 bits from
// the lowest: every tile of a row counts its digits, the counts are summed up to where each tile's
// keys of each digit begin, and every tile moves its keys.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

inline constexpr int64_t sortedInBlock = 2048; ///< the longest row that a block sorts by itself
inline constexpr int maxSortThreads = 512;     ///< of such a block
inline constexpr int sortBlock = 256;          ///< threads for a tile
inline constexpr int sortItems = 16;           ///< of a tile, for each thread
inline constexpr int sortTile = sortBlock * sortItems;
inline constexpr int sortDigits = 256;
inline constexpr int sortScanBlock = 512; ///< threads that sum up the counts of a row
static_assert(sortDigits == sortBlock, "a thread for every digit");

/// Of all steps; keys of 32 or 64 bits, row after row.
struct KeySortParams {
  const void *keys = nullptr;
  const uint32_t *positions = nullptr; ///< where each key was in its row; null: where it is
  void *sortedKeys = nullptr;
  uint32_t *sortedPositions = nullptr;
  uint32_t *counts = nullptr; ///< by row, digit and tile
  int64_t rows = 0, size = 0, tiles = 0;
  int shift = 0; ///< of the digit
};

/// The elements of a tensor along one dimension, in order.
struct RowSortParams {
  Layout<3> rows;          ///< offsets in x, the values and the indices
  Layout<2> keys, kept;    ///< row and position of all elements and of those that are kept
  int64_t strides[3] = {}; ///< along the row
  const void *x = nullptr;
  void *values = nullptr;
  int64_t *indices = nullptr;
  ElementType type = ElementType::F32;
  bool isDescending = false;
  // Of rows that are no block's.
  void *rowKeys = nullptr;
  const uint32_t *positions = nullptr; ///< in order, row after row
  bool isWide = false;                 ///< keys of 64 bits, else of 32
};

namespace sorting {
/// KeySortParams. A block for each row; dynamic shared memory for `padded` keys and positions,
/// the least power of two from 2 on that is not below the size.
const void *keysInBlock(bool isWide);
/// The steps for one digit.
const void *countDigits(bool isWide), *sumCounts(), *moveKeys(bool isWide);
/// RowSortParams. All of it for short rows, with dynamic shared memory as for keys of 64 bits; or
/// what comes before and after the sort of the keys.
const void *rowsInBlock(), *makeKeys(), *takeSorted();
} // namespace sorting

} // namespace rondo::cuda
