//===- RowSet.cuh - Kernels that work row by row ----------------*- C++ -*-===//
//
// All threads of a block are in step here: what is between two rows may synchronise them.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CombineLanes.cuh"
#include "Pointwise.cuh"
#include "RowSetDevice.h"

namespace rondo::cuda {

/// The row that a thread works on.
template <int N> struct RowCursor {
  int64_t index;
  bool exists; ///< false for threads that have none in the last round
  int lane;
  int64_t starts[N]; ///< in elements
};

/// Calls `fn(row)` for rows that together with those of other blocks are all; as often for every
/// thread of the block.
template <int N, typename Fn> __device__ void forEachRow(const RowSet<N> &set, Fn fn) {
  int rows = set.lanes.rows();
  for (int64_t first = int64_t(blockIdx.x) * rows; first < set.rows.count;
       first += int64_t(gridDim.x) * rows) {
    RowCursor<N> row;
    row.index = first + set.lanes.row(threadIdx.x);
    row.exists = row.index < set.rows.count;
    row.lane = set.lanes.lane(threadIdx.x);
    set.rows.offsets(row.exists ? row.index : first, row.starts);
    fn(row);
  }
}

/// The element of tensor `k` that all of the row share.
template <typename C, int N>
__device__ C loadOfRow(const RowSet<N> &set, const RowCursor<N> &row, int k) {
  return loadElement<C>(set.types[k], set.as[k], set.data[k], row.starts[k]);
}

/// Calls `fn(i, values)` for this thread's elements i of the row, with the values of the tensors I.
/// What it returns goes to `finishVector(first, results)` for as many elements as a vector has, or
/// to `finishScalar(offsets, result)`.
template <typename C, int... I, int N, typename Fn, typename FinishVector, typename FinishScalar>
__device__ void walkRow(const RowSet<N> &set, const RowCursor<N> &row, Fn fn,
                        FinishVector finishVector, FinishScalar finishScalar) {
  constexpr int index[] = {I...};
  constexpr int count = sizeof...(I);
  if (!row.exists)
    return;
  if (set.isVector) {
    for (int64_t i = int64_t(row.lane) * pointwiseVector; i < set.row.count;
         i += int64_t(set.lanes.count) * pointwiseVector) {
      C in[count][pointwiseVector], out[pointwiseVector];
#pragma unroll
      for (int k = 0; k < count; ++k) {
        if (set.data[index[k]]) {
          loadVector(set.types[index[k]], set.as[index[k]], set.data[index[k]],
                     row.starts[index[k]] + i, in[k]);
        } else {
#pragma unroll
          for (int j = 0; j < pointwiseVector; ++j)
            in[k][j] = 0;
        }
      }
#pragma unroll
      for (int j = 0; j < pointwiseVector; ++j) {
        C values[count];
#pragma unroll
        for (int k = 0; k < count; ++k)
          values[k] = in[k][j];
        out[j] = fn(i + j, values);
      }
      finishVector(i, out);
    }
    return;
  }
  for (int64_t i = row.lane; i < set.row.count; i += set.lanes.count) {
    int64_t offsets[N];
    set.row.offsets(i, offsets);
    C values[count];
#pragma unroll
    for (int k = 0; k < count; ++k)
      values[k] = set.data[index[k]]
                      ? loadElement<C>(set.types[index[k]], set.as[index[k]], set.data[index[k]],
                                       row.starts[index[k]] + offsets[index[k]])
                      : C(0);
    finishScalar(offsets, fn(i, values));
  }
}

/// Calls `fn(i, values)` for this thread's elements i of the row, with the values of the tensors I.
template <typename C, int... I, int N, typename Fn>
__device__ void visitRow(const RowSet<N> &set, const RowCursor<N> &row, Fn fn) {
  walkRow<C, I...>(
      set, row,
      [&](int64_t i, const C(&values)[sizeof...(I)]) {
        fn(i, values);
        return C(0);
      },
      [](int64_t, const C(&)[pointwiseVector]) {}, [](const int64_t(&)[N], C) {});
}
/// As visitRow; what `fn` returns becomes the element of tensor Out.
template <typename C, int Out, int... I, int N, typename Fn>
__device__ void mapRow(const RowSet<N> &set, const RowCursor<N> &row, Fn fn) {
  walkRow<C, I...>(
      set, row, fn,
      [&](int64_t i, const C(&results)[pointwiseVector]) {
        storeVector(set.types[Out], set.data[Out], row.starts[Out] + i, results);
      },
      [&](const int64_t(&offsets)[N], C result) {
        storeElement<C>(set.types[Out], set.data[Out], row.starts[Out] + offsets[Out], result);
      });
}

} // namespace rondo::cuda
