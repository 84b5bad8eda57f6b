//===- ReductionCumsum.cu - Running sums ----------------------------------===//
//
// Floats are added up in double.
//
//===----------------------------------------------------------------------===//

#include "ReductionDevice.h"
#include "RowSet.cuh"

#include <cub/block/block_scan.cuh>

using namespace rondo::cuda;

namespace {

constexpr int perThread = 4, perBlock = rowBlock * perThread;

/// The sum of each chunk of each line.
template <typename C>
__global__ void __launch_bounds__(rowBlock)
    chunkTotalsKernel(const __grid_constant__ CumsumParams p) {
  int64_t begin = int64_t(blockIdx.y) * p.chunk, end = begin + p.chunk;
  end = end < p.length ? end : p.length;
  for (int64_t line = blockIdx.x; line < p.lines.count; line += gridDim.x) {
    int64_t offsets[2];
    p.lines.offsets(line, offsets);
    C total = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += rowBlock)
      total = wrapAdd(total, loadElement<C>(p.xType, p.outType, p.x, offsets[0] + i * p.xStride));
    total = sumBlock(total);
    if (threadIdx.x == 0)
      static_cast<C *>(p.totals)[line * p.chunks + blockIdx.y] = total;
  }
}

/// The running sums of a chunk, after the totals of those before it.
template <typename C>
__global__ void __launch_bounds__(rowBlock) cumsumKernel(const __grid_constant__ CumsumParams p) {
  using Scan = cub::BlockScan<C, rowBlock>;
  __shared__ typename Scan::TempStorage shared;
  int64_t begin = int64_t(blockIdx.y) * p.chunk, end = begin + p.chunk;
  end = end < p.length ? end : p.length;
  for (int64_t line = blockIdx.x; line < p.lines.count; line += gridDim.x) {
    int64_t offsets[2];
    p.lines.offsets(line, offsets);
    C before = 0;
    if (p.totals) {
      for (int64_t chunk = threadIdx.x; chunk < blockIdx.y; chunk += rowBlock)
        before = wrapAdd(before, static_cast<const C *>(p.totals)[line * p.chunks + chunk]);
      before = sumBlock(before);
    }
    for (int64_t tile = begin; tile < end; tile += perBlock) {
      int64_t first = tile + int64_t(threadIdx.x) * perThread;
      C values[perThread], total;
#pragma unroll
      for (int j = 0; j < perThread; ++j)
        values[j] = first + j < end ? loadElement<C>(p.xType, p.outType, p.x,
                                                     offsets[0] + (first + j) * p.xStride)
                                    : C(0);
      Scan(shared).InclusiveScan(values, values, AddNumbers(), total);
      __syncthreads(); // `shared` is used again
#pragma unroll
      for (int j = 0; j < perThread; ++j)
        if (first + j < end)
          storeElement<C>(p.outType, p.out, offsets[1] + (first + j) * p.outStride,
                          wrapAdd(before, values[j]));
      before = wrapAdd(before, total);
    }
  }
}

template <typename C>
__global__ void __launch_bounds__(rowBlock)
    cumsumPerThreadKernel(const __grid_constant__ CumsumParams p) {
  for (int64_t line = int64_t(blockIdx.x) * rowBlock + threadIdx.x; line < p.lines.count;
       line += int64_t(gridDim.x) * rowBlock) {
    int64_t offsets[2];
    p.lines.offsets(line, offsets);
    C total = 0;
    for (int64_t i = 0; i < p.length; ++i) {
      total = wrapAdd(total, loadElement<C>(p.xType, p.outType, p.x, offsets[0] + i * p.xStride));
      storeElement<C>(p.outType, p.out, offsets[1] + i * p.outStride, total);
    }
  }
}

} // namespace

const void *reduction::chunkTotals(bool isFloat) {
  return isFloat ? reinterpret_cast<const void *>(&chunkTotalsKernel<double>)
                 : reinterpret_cast<const void *>(&chunkTotalsKernel<int64_t>);
}
const void *reduction::cumsum(bool isFloat) {
  return isFloat ? reinterpret_cast<const void *>(&cumsumKernel<double>)
                 : reinterpret_cast<const void *>(&cumsumKernel<int64_t>);
}
const void *reduction::cumsumPerThread(bool isFloat) {
  return isFloat ? reinterpret_cast<const void *>(&cumsumPerThreadKernel<double>)
                 : reinterpret_cast<const void *>(&cumsumPerThreadKernel<int64_t>);
}
