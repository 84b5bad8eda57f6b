//===- CombineLanes.cuh - What the threads of a row have, put together ----*- C++ -*-===//
//
// CUB combines lanes that are neighbours: the parts of a warp as segments of one warp-wide
// reduction, and a block by its warps. It has nothing for lanes that are apart: these halve their
// number in shared memory. Whichever it is, the order is fixed by the lanes alone, so that floats
// give the same bits in every run.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"
#include "RowSetDevice.h"

#include <cub/block/block_reduce.cuh>
#include <cub/util_ptx.cuh>
#include <cub/warp/warp_reduce.cuh>

namespace rondo::cuda {

/// Of neighbours within a warp.
template <typename T, typename Op> __device__ T combineInWarp(const Lanes &lanes, T value, Op op) {
  using Reduce = cub::WarpReduce<T>;
  __shared__ typename Reduce::TempStorage storage[rowBlock / 32];
  int thread = threadIdx.x, lane = thread & (lanes.count - 1);
  value = Reduce(storage[thread / 32]).HeadSegmentedReduce(value, lane == 0, op);
  return cub::ShuffleIndex<32>(value, thread % 32 - lane, 0xffffffffu);
}

/// Of all threads of the block.
template <typename T, typename Op> __device__ T combineInBlock(T value, Op op) {
  using Reduce = cub::BlockReduce<T, rowBlock, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ T result;
  value = Reduce(storage).Reduce(value, op);
  if (threadIdx.x == 0)
    result = value;
  // After it, `storage` may be used again. `result` is written again after a barrier of Reduce.
  __syncthreads();
  return result;
}

/// Of threads that are a block's rows apart.
template <typename T, typename Op> __device__ T combineApart(const Lanes &lanes, T value, Op op) {
  __shared__ T shared[rowBlock];
  int thread = threadIdx.x, rows = lanes.rows(), lane = lanes.lane(thread);
  shared[thread] = value;
  __syncthreads();
  for (int step = lanes.count / 2; step > 0; step /= 2) {
    if (lane < step)
      shared[thread] = op(shared[thread], shared[thread + step * rows]);
    __syncthreads();
  }
  value = shared[lanes.row(thread)];
  __syncthreads();
  return value;
}

/// What `op`, which commutes, makes of the values of all threads of a row, in an order that is
/// always the same. Every thread of the block calls it and gets the result of its row.
template <typename T, typename Op> __device__ T combineLanes(const Lanes &lanes, T value, Op op) {
  if (lanes.count == 1)
    return value;
  if (!lanes.adjacent)
    return combineApart(lanes, value, op);
  return lanes.count == rowBlock ? combineInBlock(value, op) : combineInWarp(lanes, value, op);
}

struct AddNumbers {
  template <typename T> __device__ T operator()(T a, T b) const { return wrapAdd(a, b); }
};
/// The sum over the threads of a row.
template <typename T> __device__ T sumLanes(const Lanes &lanes, T value) {
  return combineLanes(lanes, value, AddNumbers());
}
/// The sum over all threads of the block.
template <typename T> __device__ T sumBlock(T value) {
  return combineInBlock(value, AddNumbers());
}

} // namespace rondo::cuda
