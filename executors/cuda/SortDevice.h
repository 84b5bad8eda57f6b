//===- SortDevice.h - Device code of sorting --------------------*- C++ -*-===//
//
// Rows of unsigned keys are sorted, stably. A short row is sorted by one block, with CUB's merge
// sort. Long ones are sorted by digits of 8 bits from the lowest: every tile of a row counts its
// digits, the counts are summed up to where each tile's keys of each digit begin, and every tile
// moves its keys.
//
// Long rows are no work for CUB's sorts of a whole device: those take one row at a time, or give
// each a single block, and a graph would hold their kernels as foreign calls. Nor do tiles rank
// their keys by cub::BlockRadixRankMatch: it votes on every bit of a digit, where __match_any_sync
// compares whole ones, and needs more registers.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

inline constexpr int64_t sortedInBlock = 2048; ///< the longest row that a block sorts by itself
inline constexpr int sortedPerThread = 4;      ///< elements of such a row
/// Threads of the block that sorts a row of `size` elements: 8, 32, 128 or 512.
constexpr int sortThreads(int64_t size) {
  int threads = 8;
  while (threads < 512 && threads * sortedPerThread < size)
    threads *= 4;
  return threads;
}
static_assert(sortThreads(sortedInBlock) * sortedPerThread == sortedInBlock);

inline constexpr int sortBlock = 256; ///< threads for a tile
inline constexpr int sortItems = 16;  ///< of a tile, for each thread
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
/// KeySortParams, for rows of `size` elements, with a block of sortThreads(size) for each.
const void *keysInBlock(bool isWide, int64_t size);
/// The steps for one digit.
const void *countDigits(bool isWide), *sumCounts(), *moveKeys(bool isWide);
/// RowSortParams. All of it for short rows, with blocks as for keysInBlock; or what comes before
/// and after the sort of the keys.
const void *rowsInBlock(int64_t size), *makeKeys(), *takeSorted();
} // namespace sorting

} // namespace rondo::cuda
