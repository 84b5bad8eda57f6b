//===- AttentionMask.cu - The gradient of attention's mask ----------------===//
//
// An element of the gradient is the sum of the gradients of the scores that the mask's element was
// added to; each of these is computed from its query and key.
//
//===----------------------------------------------------------------------===//

#include "Attention.cuh"
#include "AttentionKernelTable.cuh"

#include <cub/block/block_reduce.cuh>

using namespace rondo::cuda;

namespace {

/// Row `i` of one matrix times row `j` of another with as many columns.
template <typename C>
__device__ C multiplyRows(const AttentionMatrix &a, int64_t aOffset, int64_t i,
                          const AttentionMatrix &b, int64_t bOffset, int64_t j) {
  aOffset += i * a.rowStride;
  bOffset += j * b.rowStride;
  C sum = 0;
  for (int64_t k = 0; k < a.columns; ++k)
    sum += loadNumber<C>(a.type, a.data, aOffset + k * a.columnStride) *
           loadNumber<C>(b.type, b.data, bOffset + k * b.columnStride);
  return sum;
}

/// The gradient of score number `n`.
template <typename C> __device__ C scoreGradient(const AttentionParams &p, int64_t n) {
  const AttentionMatrix *tensors = p.tensors;
  int64_t keys = tensors[attentionKeys].rows, queries = tensors[attentionQueries].rows;
  int64_t j = n % keys, i = n / keys % queries, batch = n / keys / queries;
  int64_t at[numAttentionTensors];
  p.batches.offsets(batch, at);
  AttentionScores<C> scores(p, batch, at[attentionMask]);
  if (p.causal && j > i)
    return 0;
  C product = multiplyRows<C>(tensors[attentionQueries], at[attentionQueries], i,
                              tensors[attentionKeys], at[attentionKeys], j);
  C slope = multiplyRows<C>(tensors[attentionGrad], at[attentionGrad], i, tensors[attentionValues],
                            at[attentionValues], j);
  C weight =
      weightOf<ExactExp<C>>(scores.score(product, i, j), logSumExpOf<C>(p, at[attentionSums], i));
  if (scores.hasDropout())
    slope = scores.isDropped(i, j) ? C(0) : slope * scores.keepScale();
  return weight * (slope - deltaOf<C>(p, batch, i));
}

template <typename C>
__global__ void __launch_bounds__(attentionBlock)
    gradMaskKernel(const __grid_constant__ AttentionMaskParams p) {
  using BlockReduce = cub::BlockReduce<double, attentionBlock>;
  __shared__ typename BlockReduce::TempStorage storage;
  int64_t thread = int64_t(blockIdx.x) * attentionBlock + threadIdx.x;
  int64_t first = p.isBlockWide ? blockIdx.x : thread;
  int64_t step = p.isBlockWide ? gridDim.x : int64_t(gridDim.x) * attentionBlock;
  for (int64_t element = first; element < p.elements.count; element += step) {
    int64_t at[2];
    p.elements.offsets(element, at);
    double sum = 0;
    for (int64_t k = p.isBlockWide ? threadIdx.x : 0; k < p.scores.count;
         k += p.isBlockWide ? attentionBlock : 1) {
      int64_t score[1];
      p.scores.offsets(k, score);
      sum += scoreGradient<C>(p.attention, at[0] + score[0]);
    }
    if (p.isBlockWide) {
      sum = BlockReduce(storage).Sum(sum);
      __syncthreads(); // before the storage is used again
      if (threadIdx.x != 0)
        continue;
    }
    storeNumber<double>(p.type, p.data, at[1], sum);
  }
}

} // namespace

namespace rondo::cuda {

template <typename C> const void *attentionGradMaskKernel() {
  return reinterpret_cast<const void *>(&gradMaskKernel<C>);
}
template const void *attentionGradMaskKernel<float>();
template const void *attentionGradMaskKernel<double>();

} // namespace rondo::cuda
