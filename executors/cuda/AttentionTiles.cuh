//===- AttentionTiles.cuh - Products of tiles in shared memory --*- C++ -*-===//
//
// For the general attention kernels. A block multiplies two tiles of 64 x 64 numbers, and each of
// its threads sums 4 x 4 elements of the product: rows ownRow() ..., columns ownColumn() .... Tiles
// are free, for all threads, where a function is entered and where it returns.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Attention.cuh"

namespace rondo::cuda {

inline constexpr int tilePitch = attentionTile + 4; ///< rows begin in different banks
inline constexpr int tilePart = 4;
inline constexpr int tileLanes = attentionTile / tilePart; ///< threads that share rows
static_assert(tileLanes * tileLanes == attentionBlock);

template <typename C> using Tile = C[attentionTile][tilePitch];
/// The left tile is stored with its columns as rows, as the product reads it.
template <typename C> struct TilePair { Tile<C> left, right; };
template <typename C> using TileSums = C[tilePart][tilePart];

template <typename C> __device__ TilePair<C> &sharedTiles() {
  extern __shared__ uint4 sharedAttentionMemory[];
  return *reinterpret_cast<TilePair<C> *>(sharedAttentionMemory);
}

__device__ inline int ownRow() {
  return int(threadIdx.x) / tileLanes * tilePart;
}
__device__ inline int ownColumn() {
  return int(threadIdx.x) % tileLanes * tilePart;
}

/// Elements column ... column + 3 of a row of the matrix, 0 outside.
template <typename C>
__device__ void loadPart(C (&values)[tilePart], const AttentionMatrix &m, int64_t offset,
                         int64_t row, int64_t column) {
#pragma unroll
  for (int k = 0; k < tilePart; ++k)
    values[k] = 0;
  if (row >= m.rows)
    return;
  int64_t at = offset + row * m.rowStride + column * m.columnStride;
  auto loadAll = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    auto pack = *reinterpret_cast<const Pack<T, tilePart> *>(static_cast<const T *>(m.data) + at);
#pragma unroll
    for (int k = 0; k < tilePart; ++k)
      values[k] = convert<C>(pack.values[k]);
  };
  if (m.isVector && column + tilePart <= m.columns) {
    if constexpr (std::is_same_v<C, double>) {
      if (m.type == ElementType::F64)
        return loadAll(TypeTag<double>());
    } else {
      if (m.type == ElementType::F32)
        return loadAll(TypeTag<float>());
      if (m.type == ElementType::BF16)
        return loadAll(TypeTag<BFloat16>());
      if (m.type == ElementType::F16)
        return loadAll(TypeTag<Half>());
    }
  }
#pragma unroll
  for (int k = 0; k < tilePart; ++k)
    if (column + k < m.columns)
      values[k] = loadNumber<C>(m.type, m.data, at + k * m.columnStride);
}

template <typename C> __device__ void storePart(C *to, const C (&values)[tilePart]) {
  Pack<C, tilePart> pack;
#pragma unroll
  for (int k = 0; k < tilePart; ++k)
    pack.values[k] = values[k];
  *reinterpret_cast<Pack<C, tilePart> *>(to) = pack;
}

/// tile[r][k] = element (row + r, column + k)
template <typename C>
__device__ void loadTile(Tile<C> &tile, const AttentionMatrix &m, int64_t offset, int64_t row,
                         int64_t column) {
  for (int n = threadIdx.x; n < attentionTile * tileLanes; n += attentionBlock) {
    int r = n / tileLanes, k = n % tileLanes * tilePart;
    C values[tilePart];
    loadPart(values, m, offset, row + r, column + k);
    storePart(&tile[r][k], values);
  }
}
/// tile[k][r] = element (row + r, column + k)
template <typename C>
__device__ void loadTransposedTile(Tile<C> &tile, const AttentionMatrix &m, int64_t offset,
                                   int64_t row, int64_t column) {
  for (int n = threadIdx.x; n < attentionTile * tileLanes; n += attentionBlock) {
    int r = n % attentionTile, k = n / attentionTile * tilePart;
    C values[tilePart];
    loadPart(values, m, offset, row + r, column + k);
#pragma unroll
    for (int part = 0; part < tilePart; ++part)
      tile[k + part][r] = values[part];
  }
}

/// sums += left^T @ right, `depth` rows of each. The tiles stay as they are.
template <typename C>
__device__ void multiplyTiles(TileSums<C> &sums, const TilePair<C> &tiles, int64_t depth) {
  int row = ownRow(), column = ownColumn();
#pragma unroll 4
  for (int k = 0; k < depth; ++k) {
    auto left = *reinterpret_cast<const Pack<C, tilePart> *>(&tiles.left[k][row]);
    auto right = *reinterpret_cast<const Pack<C, tilePart> *>(&tiles.right[k][column]);
#pragma unroll
    for (int r = 0; r < tilePart; ++r)
#pragma unroll
      for (int c = 0; c < tilePart; ++c)
        sums[r][c] += left.values[r] * right.values[c];
  }
}

/// Rows `row` and on of one tensor's matrix.
struct TileRows {
  const AttentionMatrix &matrix;
  int64_t offset, row;
};

/// sums = a @ b^T, of tiles of rows of as many columns.
template <typename C>
__device__ void multiplyRows(TileSums<C> &sums, TilePair<C> &tiles, const TileRows &a,
                             const TileRows &b) {
#pragma unroll
  for (int r = 0; r < tilePart; ++r)
#pragma unroll
    for (int c = 0; c < tilePart; ++c)
      sums[r][c] = 0;
  for (int64_t k = 0; k < a.matrix.columns; k += attentionTile) {
    loadTransposedTile(tiles.left, a.matrix, a.offset, a.row, k);
    loadTransposedTile(tiles.right, b.matrix, b.offset, b.row, k);
    __syncthreads();
    multiplyTiles(sums, tiles, min(int64_t(attentionTile), a.matrix.columns - k));
    __syncthreads();
  }
}

/// sums += left^T @ b, where the left tile is already stored, but threads may still be at it, and
/// columns `column` and on of b. What is summed here is added at once: sums of many terms keep more
/// digits so.
template <typename C>
__device__ void addProduct(TileSums<C> &sums, TilePair<C> &tiles, const TileRows &b,
                           int64_t column) {
  loadTile(tiles.right, b.matrix, b.offset, b.row, column);
  __syncthreads();
  TileSums<C> product = {};
  multiplyTiles(product, tiles, min(int64_t(attentionTile), b.matrix.rows - b.row));
#pragma unroll
  for (int r = 0; r < tilePart; ++r)
#pragma unroll
    for (int c = 0; c < tilePart; ++c)
      sums[r][c] += product[r][c];
  __syncthreads();
}

/// Stores own elements of a tile of products, times `factor`, that starts at (row, column).
template <typename C>
__device__ void storeSums(const AttentionMatrix &m, int64_t offset, int64_t row, int64_t column,
                          const TileSums<C> &sums, C factor) {
#pragma unroll
  for (int r = 0; r < tilePart; ++r)
#pragma unroll
    for (int c = 0; c < tilePart; ++c) {
      int64_t i = row + ownRow() + r, j = column + ownColumn() + c;
      if (i < m.rows && j < m.columns)
        storeNumber<C>(m.type, m.data, offset + i * m.rowStride + j * m.columnStride,
                       sums[r][c] * factor);
    }
}

} // namespace rondo::cuda
