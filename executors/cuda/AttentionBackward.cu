//===- AttentionBackward.cu - Gradients of attention, generally -----------===//
//
// Two kernels, so that every element is summed by one thread in one order: a block has 64 keys and
// goes through the queries for the gradients of keys and values, or has 64 queries and goes through
// the keys for those of the queries. Both compute the weights again (Dao et al., "FlashAttention",
// 2022, appendix B.4).
//
//===----------------------------------------------------------------------===//

#include "AttentionKernelTable.cuh"
#include "AttentionTiles.cuh"

using namespace rondo::cuda;

namespace {

/// One batch of the backward.
template <typename C> struct BackwardBatch {
  const AttentionParams &p;
  int64_t batch;
  int64_t at[numAttentionTensors];
  AttentionScores<C> scores;

  __device__ BackwardBatch(const AttentionParams &params, int64_t number)
      : p(params), batch(number), scores(params, number, maskOffset(params, number)) {
    p.batches.offsets(batch, at);
  }
  __device__ static int64_t maskOffset(const AttentionParams &p, int64_t batch) {
    int64_t at[numAttentionTensors];
    p.batches.offsets(batch, at);
    return at[attentionMask];
  }
  __device__ TileRows rows(AttentionTensor tensor, int64_t row) const {
    return {p.tensors[tensor], at[tensor], row};
  }

  /// Of a tile of queries and keys: the weights after dropout, and the gradients of the scores.
  __device__ void weights(TileSums<C> &kept, TileSums<C> &slopes, TilePair<C> &tiles, int64_t query,
                          int64_t key) const {
    multiplyRows(kept, tiles, rows(attentionQueries, query), rows(attentionKeys, key));
    multiplyRows(slopes, tiles, rows(attentionGrad, query), rows(attentionValues, key));
#pragma unroll
    for (int r = 0; r < tilePart; ++r) {
      int64_t i = query + ownRow() + r;
      C sum = logSumExpOf<C>(p, at[attentionSums], i), delta = deltaOf<C>(p, batch, i);
#pragma unroll
      for (int c = 0; c < tilePart; ++c) {
        int64_t j = key + ownColumn() + c;
        C weight = weightOf<ExactExp<C>>(scores.score(kept[r][c], i, j), sum);
        bool isDropped = scores.hasDropout() && scores.isDropped(i, j);
        C keep = isDropped ? C(0) : scores.keepScale();
        slopes[r][c] = weight * ((isDropped ? C(0) : slopes[r][c] * keep) - delta);
        kept[r][c] = weight * keep;
      }
    }
  }
};

template <typename C>
__global__ void __launch_bounds__(attentionBlock)
    gradKeysKernel(const __grid_constant__ AttentionParams p) {
  TilePair<C> &tiles = sharedTiles<C>();
  const AttentionMatrix &gradKeys = p.tensors[attentionGradKeys],
                        &gradValues = p.tensors[attentionGradValues];
  int64_t keyTiles = tilesOf(gradKeys.rows, attentionTile);
  int64_t columnTiles = tilesOf(max(gradKeys.columns, gradValues.columns), attentionTile);
  for (int64_t item = blockIdx.x; item < p.batches.count * keyTiles * columnTiles;
       item += gridDim.x) {
    int64_t column = item % columnTiles * attentionTile;
    int64_t key = item / columnTiles % keyTiles * attentionTile;
    BackwardBatch<C> batch(p, item / columnTiles / keyTiles);
    TileSums<C> keySums = {}, valueSums = {};
    for (int64_t query = batch.scores.firstQuery(key); query < batch.scores.numQueries();
         query += attentionTile) {
      TileSums<C> kept, slopes;
      batch.weights(kept, slopes, tiles, query, key);
#pragma unroll
      for (int r = 0; r < tilePart; ++r)
        storePart(&tiles.left[ownRow() + r][ownColumn()], kept[r]);
      addProduct(valueSums, tiles, batch.rows(attentionGrad, query), column);
#pragma unroll
      for (int r = 0; r < tilePart; ++r)
        storePart(&tiles.left[ownRow() + r][ownColumn()], slopes[r]);
      addProduct(keySums, tiles, batch.rows(attentionQueries, query), column);
    }
    storeSums(gradKeys, batch.at[attentionGradKeys], key, column, keySums, C(p.scale));
    storeSums(gradValues, batch.at[attentionGradValues], key, column, valueSums, C(1));
  }
}

template <typename C>
__global__ void __launch_bounds__(attentionBlock)
    gradQueriesKernel(const __grid_constant__ AttentionParams p) {
  TilePair<C> &tiles = sharedTiles<C>();
  const AttentionMatrix &grad = p.tensors[attentionGradQueries];
  int64_t queryTiles = tilesOf(grad.rows, attentionTile),
          columnTiles = tilesOf(grad.columns, attentionTile);
  for (int64_t item = blockIdx.x; item < p.batches.count * queryTiles * columnTiles;
       item += gridDim.x) {
    int64_t column = item % columnTiles * attentionTile;
    int64_t query = item / columnTiles % queryTiles * attentionTile;
    BackwardBatch<C> batch(p, item / columnTiles / queryTiles);
    TileSums<C> sums = {};
    int64_t endOfKeys = batch.scores.endOfKeys(query + attentionTile);
    for (int64_t key = 0; key < endOfKeys; key += attentionTile) {
      TileSums<C> kept, slopes;
      batch.weights(kept, slopes, tiles, query, key);
#pragma unroll
      for (int r = 0; r < tilePart; ++r)
#pragma unroll
        for (int c = 0; c < tilePart; ++c)
          tiles.left[ownColumn() + c][ownRow() + r] = slopes[r][c];
      addProduct(sums, tiles, batch.rows(attentionKeys, key), column);
    }
    storeSums(grad, batch.at[attentionGradQueries], query, column, sums, C(p.scale));
  }
}

} // namespace

namespace rondo::cuda {

template <typename C> const void *attentionGradKeysKernel() {
  return reinterpret_cast<const void *>(&gradKeysKernel<C>);
}
template <typename C> const void *attentionGradQueriesKernel() {
  return reinterpret_cast<const void *>(&gradQueriesKernel<C>);
}

template const void *attentionGradKeysKernel<float>();
template const void *attentionGradKeysKernel<double>();
template const void *attentionGradQueriesKernel<float>();
template const void *attentionGradQueriesKernel<double>();

} // namespace rondo::cuda
