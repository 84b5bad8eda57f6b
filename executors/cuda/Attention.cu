//===- Attention.cu - Attention of any dtype, size and layout -------------===//
//
// A block computes 64 columns of the results of 64 queries, from the scores of 64 keys at a time
// (Dao et al., "FlashAttention", 2022, with the keys in the inner loop). Heads of more columns have
// their scores computed again for every 64.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernelTable.cuh"
#include "AttentionTiles.cuh"

using namespace rondo::cuda;

namespace {

template <typename C>
__global__ void __launch_bounds__(attentionBlock)
    attentionKernel(const __grid_constant__ AttentionParams p) {
  using Softmax = OnlineSoftmax<C, ExactExp<C>, tileLanes>;
  TilePair<C> &tiles = sharedTiles<C>();
  const AttentionMatrix &queries = p.tensors[attentionQueries], &keys = p.tensors[attentionKeys],
                        &values = p.tensors[attentionValues], &out = p.tensors[attentionOut];
  int64_t queryTiles = tilesOf(max(queries.rows, p.tensors[attentionSums].rows), attentionTile);
  int64_t columnTiles = max(int64_t(1), tilesOf(out.columns, attentionTile));
  for (int64_t item = blockIdx.x; item < p.batches.count * queryTiles * columnTiles;
       item += gridDim.x) {
    int64_t column = item % columnTiles * attentionTile, batch = item / columnTiles / queryTiles;
    int64_t query = item / columnTiles % queryTiles * attentionTile;
    int64_t at[numAttentionTensors];
    p.batches.offsets(batch, at);
    AttentionScores<C> scores(p, batch, at[attentionMask]);
    TileSums<C> result = {};
    Softmax rows[tilePart];
    int64_t endOfKeys = query < queries.rows ? scores.endOfKeys(query + attentionTile) : 0;
    for (int64_t key = 0; key < endOfKeys; key += attentionTile) {
      TileSums<C> weights;
      multiplyRows(weights, tiles, {queries, at[attentionQueries], query},
                   {keys, at[attentionKeys], key});
      int64_t j = key + ownColumn();
#pragma unroll
      for (int r = 0; r < tilePart; ++r) {
        int64_t i = query + ownRow() + r;
#pragma unroll
        for (int c = 0; c < tilePart; ++c)
          weights[r][c] = scores.score(weights[r][c], i, j + c);
        C factor = rows[r].add(weights[r]);
#pragma unroll
        for (int c = 0; c < tilePart; ++c) {
          result[r][c] *= factor;
          if (scores.hasDropout())
            weights[r][c] = scores.isDropped(i, j + c) ? C(0) : weights[r][c] * scores.keepScale();
          tiles.left[ownColumn() + c][ownRow() + r] = weights[r][c];
        }
      }
      addProduct(result, tiles, {values, at[attentionValues], key}, column);
    }
#pragma unroll
    for (int r = 0; r < tilePart; ++r) {
      int64_t i = query + ownRow() + r;
      if (column == 0 && ownColumn() == 0)
        storeLogSumExp(p, at[attentionSums], i, rows[r].logSumExp());
      C factor = rows[r].weightFactor();
#pragma unroll
      for (int c = 0; c < tilePart; ++c)
        result[r][c] *= factor;
    }
    storeSums(out, at[attentionOut], query, column, result, C(1));
  }
}

/// rowsum(grad * out), a warp for each row.
template <typename C>
__global__ void __launch_bounds__(attentionBlock)
    attentionDeltaKernel(const __grid_constant__ AttentionParams p) {
  const AttentionMatrix &grad = p.tensors[attentionGrad], &out = p.tensors[attentionOut];
  int lane = threadIdx.x % 32;
  int64_t warp = (int64_t(blockIdx.x) * attentionBlock + threadIdx.x) / 32;
  int64_t warps = int64_t(gridDim.x) * (attentionBlock / 32);
  for (int64_t row = warp; row < p.batches.count * out.rows; row += warps) {
    int64_t batch = row / out.rows, i = row - batch * out.rows;
    int64_t at[numAttentionTensors];
    p.batches.offsets(batch, at);
    C sum = 0;
    for (int64_t c = lane; c < out.columns; c += 32)
      sum += loadNumber<C>(grad.type, grad.data,
                           at[attentionGrad] + i * grad.rowStride + c * grad.columnStride) *
             loadNumber<C>(out.type, out.data,
                           at[attentionOut] + i * out.rowStride + c * out.columnStride);
    sum = sumOfLanes<32>(sum);
    if (lane == 0)
      static_cast<C *>(p.delta)[row] = sum;
  }
}

template <typename C> AttentionKernels kernelsOf() {
  return {reinterpret_cast<const void *>(&attentionKernel<C>),
          reinterpret_cast<const void *>(&attentionDeltaKernel<C>),
          attentionGradKeysKernel<C>(),
          attentionGradQueriesKernel<C>(),
          attentionGradMaskKernel<C>(),
          sizeof(TilePair<C>)};
}

} // namespace

AttentionKernels rondo::cuda::attentionKernels(ComputeType compute) {
  return compute == ComputeType::F64 ? kernelsOf<double>() : kernelsOf<float>();
}
