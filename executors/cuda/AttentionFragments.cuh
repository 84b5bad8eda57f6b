//===- AttentionFragments.cuh - Attention's products on tensor cores ------===//
//
// A warp multiplies 16 rows at a time by `mma.m16n8k16`, whose operands and results are spread over
// its lanes (PTX ISA, "Matrix Fragments for mma.m16n8k16"): a lane has elements
//
//   [n][0], [n][1]   of row lane / 4, columns 8n + lane % 4 * 2 and the next
//   [n][2], [n][3]   of the row 8 below
//
// of sums, so that sums rounded to 16 bits are the left operand of another product as they are.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Attention.cuh"

namespace rondo::cuda {

/// Rows in shared memory, padded so that those of 8 neighbours lie in different banks.
template <typename T, int Head> using HeadRow = T[Head + 8];
/// 16 rows of sums of N * 8 columns.
template <int N> using RowSums = float[N][4];

/// Rows of one tensor's matrix that a warp computes.
inline constexpr int warpRows = 16;

__device__ inline int laneRow() {
  return int(threadIdx.x) % 32 / 4;
}
__device__ inline int laneColumn() {
  return int(threadIdx.x) % 4 * 2;
}
/// The first of the warp's rows of a tile of 64.
__device__ inline int firstWarpRow() {
  return int(threadIdx.x) / 32 * warpRows;
}

/// Rows first ... of the matrix; 0 outside of it. Every row is at a multiple of 16 bytes, and so is
/// its size. All threads of the block take part.
template <typename T, int Head>
__device__ void loadRows(HeadRow<T, Head> *to, int numRows, const AttentionMatrix &m,
                         int64_t offset, int64_t first) {
  constexpr int perPack = 16 / sizeof(T), packs = Head / perPack;
  const T *data = static_cast<const T *>(m.data) + offset;
  for (int n = threadIdx.x; n < numRows * packs; n += tensorAttentionBlock) {
    int row = n / packs, column = n % packs * perPack;
    uint4 pack = {0, 0, 0, 0};
    if (first + row < m.rows && column < m.columns)
      pack = *reinterpret_cast<const uint4 *>(data + (first + row) * m.rowStride + column);
    *reinterpret_cast<uint4 *>(&to[row][column]) = pack;
  }
}

/// Four 8 x 8 matrices: lane k gives the address of row k % 8 of matrix k / 8 and gets two elements
/// of row k / 4 of each, of columns k % 4 * 2 ....
__device__ inline void loadMatrices(uint32_t (&words)[4], const void *row) {
  uint32_t address = uint32_t(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}
/// The same with each matrix transposed.
__device__ inline void loadTransposed(uint32_t (&words)[4], const void *row) {
  uint32_t address = uint32_t(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}

/// sums += a @ b, 16 x 16 times 16 x 8.
template <typename T>
__device__ void multiplyFragments(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                  uint32_t b1) {
  if constexpr (std::is_same_v<T, Half>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two numbers rounded to T, the first in the lower half.
template <typename T> __device__ uint32_t packPair(float first, float second) {
  Pack<T, 2> pair = {{convert<T>(first), convert<T>(second)}};
  return *reinterpret_cast<uint32_t *>(&pair);
}

/// sums = a @ b^T, of 16 rows of a and 8N rows of b.
template <typename T, int Head, int N>
__device__ void multiplyRows(RowSums<N> &sums, const HeadRow<T, Head> *a,
                             const HeadRow<T, Head> *b) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      sums[n][e] = 0;
#pragma unroll
  for (int k = 0; k < Head; k += 16) {
    uint32_t left[4];
    loadMatrices(left, &a[lane % 16][k + lane / 16 * 8]);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t right[4];
      loadMatrices(right, &b[n * 8 + lane / 16 * 8 + lane % 8][k + lane / 8 % 2 * 8]);
      multiplyFragments<T>(sums[n], left, right[0], right[1]);
      multiplyFragments<T>(sums[n + 1], left, right[2], right[3]);
    }
  }
}

/// sums += weights @ b, of 16 rows of weights, rounded to T, and 8N rows of b.
template <typename T, int Head, int N>
__device__ void addProduct(RowSums<Head / 8> &sums, const RowSums<N> &weights,
                           const HeadRow<T, Head> *b) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    uint32_t left[4] = {packPair<T>(weights[k][0], weights[k][1]),
                        packPair<T>(weights[k][2], weights[k][3]),
                        packPair<T>(weights[k + 1][0], weights[k + 1][1]),
                        packPair<T>(weights[k + 1][2], weights[k + 1][3])};
#pragma unroll
    for (int c = 0; c < Head / 8; c += 2) {
      uint32_t right[4];
      loadTransposed(right, &b[k * 8 + lane % 16][c * 8 + lane / 16 * 8]);
      multiplyFragments<T>(sums[c], left, right[0], right[1]);
      multiplyFragments<T>(sums[c + 1], left, right[2], right[3]);
    }
  }
}

/// Stores the warp's rows, times a factor for each half, as rows first ... of the matrix.
template <typename T, int Head>
__device__ void storeRows(const AttentionMatrix &m, int64_t offset, int64_t first,
                          const RowSums<Head / 8> &sums, const float (&factors)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int64_t row = first + laneRow() + half * 8;
    if (row >= m.rows)
      continue;
    T *data = static_cast<T *>(m.data) + offset + row * m.rowStride + laneColumn();
#pragma unroll
    for (int c = 0; c < Head / 8; ++c)
      if (c * 8 < m.columns)
        *reinterpret_cast<uint32_t *>(data + c * 8) =
            packPair<T>(sums[c][half * 2] * factors[half], sums[c][half * 2 + 1] * factors[half]);
  }
}

} // namespace rondo::cuda
