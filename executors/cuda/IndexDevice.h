//===- IndexDevice.h - Device code of reading and updating by index -------===//
//
// An op that indexes moves elements between a tensor that is indexed and one that is not, the moved
// one. A tuple of indices names a place in the indexed tensor; with each tuple goes a slice, the
// dimensions that no index names:
//
//   index_select of x[4, 7] at 3 indices of dimension 0: 3 tuples with slices of 7 elements
//   gather: as many tuples as results, with slices of 1 element
//
// Indices are data and may be out of range: such a tuple is nowhere. Reading from nowhere gives
// nan, or 0 in dtypes that have no nan; what goes nowhere is dropped.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

inline constexpr int maxIndices = maxDims;
inline constexpr int indexBlock = 256; ///< threads
/// So many tuples, in the order of their places, are added up by one thread: the more the fewer
/// parts are left, the fewer the more threads there are.
inline constexpr int leastSumChunk = 8, mostSumChunk = 32;

/// Indices of one dimension.
struct IndexOperand {
  const void *data = nullptr;
  bool isI64 = true;  ///< else i32
  bool wraps = false; ///< negative ones count from the end
  int64_t size = 0;   ///< of the dimension
  int64_t stride = 0, keyStride = 0;
};

/// Which elements belong together. Offsets and strides in elements.
struct Indexing {
  Layout<3> tuples;             ///< offsets in the moved and the indexed tensor, and the key
  Layout<maxIndices> positions; ///< of the tuples in each index tensor
  Layout<2> slices;             ///< offsets in the moved and the indexed tensor
  Layout<2> elements;           ///< the tuple and the element of its slice
  IndexOperand indices[maxIndices];
  int numIndices = 0;
  int64_t dropped = -1; ///< an index that is nowhere although it is in range
};

/// Moves elements in units of several bytes.
struct IndexedMoveParams {
  Indexing indexing; ///< counts units
  void *moved = nullptr;
  void *indexed = nullptr;    ///< null: everything is missing
  uint32_t *owners = nullptr; ///< by key: the tuple that stays there. Null: every one does
  uint32_t unitBytes = 0;     ///< 1, 2, 4, 8 or 16
  alignas(16) uint8_t missing[16] = {};
};

/// Finds the keys of all tuples.
struct IndexKeyParams {
  Indexing indexing;
  void *keys = nullptr;
  uint64_t end = 0;    ///< the key of nowhere, above all others
  bool isWide = false; ///< 64 bits, else 32
};

/// Adds slices to their places. Of a run of equal keys that goes beyond a chunk the parts are
/// stored first: of one that began before the chunk in `heads`, of one that begins in it in
/// `tails`.
struct SliceSumParams {
  Indexing indexing;
  Layout<2> chunks; ///< the chunk and the element of the slice
  const void *keys = nullptr;
  const uint32_t *tuples = nullptr; ///< in the order of their keys
  int64_t count = 0;                ///< tuples
  int64_t chunk = mostSumChunk;     ///< tuples of a chunk, a multiple of leastSumChunk
  uint64_t end = 0;
  bool isWide = false;
  const void *moved = nullptr;
  void *indexed = nullptr;
  void *heads = nullptr, *tails = nullptr; ///< numbers, by chunk and element of the slice
  ElementType type = ElementType::F32;
  bool isMean = false; ///< a sum is divided by how many were added
  double factor = 1;
  int64_t integerFactor = 1;
  int columns = 1; ///< of the blocks that add up parts: a power of two, up to indexBlock
};

struct OneHotParams {
  Layout<3> layout; ///< of the result, the indices, and the class
  const void *indices = nullptr;
  bool isI64 = true;
  int64_t *out = nullptr;
};

namespace indexing {
/// IndexedMoveParams. `take` fills the moved tensor, `put` updates the indexed one; `forget` and
/// then `claim` fill `owners` for it: the last of the tuples of one place stays.
const void *take(), *put(), *forget(), *claim();
const void *keys();
/// SliceSumParams, in this order; computed in f64 or modulo 2^64.
const void *sum(bool isFloat), *sumParts(bool isFloat);
const void *oneHot();
} // namespace indexing

} // namespace rondo::cuda
