//===- AttentionTensorCoresBackward.cu - Gradients of 16-bit types --------===//
//
// As AttentionBackward.cu. A warp has 16 keys, or 16 queries, with their gradients in its
// registers, and computes scores with its own rows as rows: rounded to the dtype, what becomes of
// them is the left operand of the products that follow.
//
//===----------------------------------------------------------------------===//

#include "AttentionFragments.cuh"
#include "AttentionTensorTable.cuh"

using namespace rondo::cuda;

namespace {

/// Rows that a block goes through at once: large heads leave fewer registers.
template <int Head> inline constexpr int passingRows = Head <= 64 ? 64 : 32;

/// `own` are the rows that the block computes gradients of, `passing` those that it goes through.
template <typename T, int Head> struct BackwardMemory {
  HeadRow<T, Head> own[2][attentionTile], passing[2][passingRows<Head>];
  float sums[attentionTile], deltas[attentionTile]; ///< of queries
};

/// Of queries `query` ..., logsumexp and rowsum(grad * out) to shared memory.
template <typename Memory>
__device__ void loadStatistics(Memory &shared, int count, const AttentionParams &p, int64_t batch,
                               int64_t sumsOffset, int64_t query) {
  if (int(threadIdx.x) < count) {
    shared.sums[threadIdx.x] = logSumExpOf<float>(p, sumsOffset, query + threadIdx.x);
    shared.deltas[threadIdx.x] = deltaOf<float>(p, batch, query + threadIdx.x);
  }
}

/// A product of query and key, and one of gradient and value, become a weight after dropout, not
/// yet scaled, and the gradient of the score.
__device__ inline void takeWeight(float &product, float &slope,
                                  const AttentionScores<float> &scores, bool isPlain, int64_t i,
                                  int64_t j, float sum, float delta) {
  float weight =
      weightOf<FastExp>(isPlain ? scores.plainScore(product) : scores.score(product, i, j), sum);
  bool isDropped = scores.hasDropout() && scores.isDropped(i, j);
  slope = weight * ((isDropped ? 0 : slope * scores.keepScale()) - delta);
  product = isDropped ? 0 : weight;
}

template <typename T, int Head>
__global__ void __launch_bounds__(tensorAttentionBlock)
    gradKeysTensorKernel(const __grid_constant__ AttentionParams p) {
  constexpr int numQueries = passingRows<Head>, numColumns = numQueries / 8;
  extern __shared__ uint4 sharedAttentionMemory[];
  auto &shared = *reinterpret_cast<BackwardMemory<T, Head> *>(sharedAttentionMemory);
  const AttentionMatrix &keys = p.tensors[attentionKeys];
  int64_t keyTiles = tilesOf(keys.rows, attentionTile);
  for (int64_t item = blockIdx.x; item < p.batches.count * keyTiles; item += gridDim.x) {
    int64_t key = item % keyTiles * attentionTile, batch = item / keyTiles;
    int64_t at[numAttentionTensors];
    p.batches.offsets(batch, at);
    AttentionScores<float> scores(p, batch, at[attentionMask]);
    loadRows<T, Head>(shared.own[0], attentionTile, keys, at[attentionKeys], key);
    loadRows<T, Head>(shared.own[1], attentionTile, p.tensors[attentionValues], at[attentionValues],
                      key);
    RowSums<Head / 8> keySums = {}, valueSums = {};
    for (int64_t query = scores.firstQuery(key); query < scores.numQueries(); query += numQueries) {
      loadRows<T, Head>(shared.passing[0], numQueries, p.tensors[attentionQueries],
                        at[attentionQueries], query);
      loadRows<T, Head>(shared.passing[1], numQueries, p.tensors[attentionGrad], at[attentionGrad],
                        query);
      loadStatistics(shared, numQueries, p, batch, at[attentionSums], query);
      __syncthreads();
      RowSums<numColumns> kept, slopes;
      multiplyRows<T, Head, numColumns>(kept, shared.own[0] + firstWarpRow(), shared.passing[0]);
      multiplyRows<T, Head, numColumns>(slopes, shared.own[1] + firstWarpRow(), shared.passing[1]);
      bool isPlain = scores.isPlain(query, numQueries, key, attentionTile);
#pragma unroll
      for (int n = 0; n < numColumns; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          int row = n * 8 + laneColumn() + e % 2;
          int64_t j = key + firstWarpRow() + laneRow() + e / 2 * 8;
          takeWeight(kept[n][e], slopes[n][e], scores, isPlain, query + row, j, shared.sums[row],
                     shared.deltas[row]);
        }
      addProduct<T, Head, numColumns>(valueSums, kept, shared.passing[1]);
      addProduct<T, Head, numColumns>(keySums, slopes, shared.passing[0]);
      __syncthreads();
    }
    float scale = float(p.scale), keepScale = scores.keepScale();
    storeRows<T, Head>(p.tensors[attentionGradKeys], at[attentionGradKeys], key + firstWarpRow(),
                       keySums, {scale, scale});
    storeRows<T, Head>(p.tensors[attentionGradValues], at[attentionGradValues],
                       key + firstWarpRow(), valueSums, {keepScale, keepScale});
    __syncthreads(); // keys and values were read by all
  }
}

template <typename T, int Head>
__global__ void __launch_bounds__(tensorAttentionBlock)
    gradQueriesTensorKernel(const __grid_constant__ AttentionParams p) {
  constexpr int numKeys = passingRows<Head>, numColumns = numKeys / 8;
  extern __shared__ uint4 sharedAttentionMemory[];
  auto &shared = *reinterpret_cast<BackwardMemory<T, Head> *>(sharedAttentionMemory);
  const AttentionMatrix &queries = p.tensors[attentionQueries];
  int64_t queryTiles = tilesOf(queries.rows, attentionTile);
  for (int64_t item = blockIdx.x; item < p.batches.count * queryTiles; item += gridDim.x) {
    // What sees most keys first.
    int64_t query = (queryTiles - 1 - item % queryTiles) * attentionTile;
    int64_t batch = item / queryTiles, at[numAttentionTensors];
    p.batches.offsets(batch, at);
    AttentionScores<float> scores(p, batch, at[attentionMask]);
    loadRows<T, Head>(shared.own[0], attentionTile, queries, at[attentionQueries], query);
    loadRows<T, Head>(shared.own[1], attentionTile, p.tensors[attentionGrad], at[attentionGrad],
                      query);
    loadStatistics(shared, attentionTile, p, batch, at[attentionSums], query);
    RowSums<Head / 8> sums = {};
    int64_t endOfKeys = scores.endOfKeys(query + attentionTile);
    for (int64_t key = 0; key < endOfKeys; key += numKeys) {
      loadRows<T, Head>(shared.passing[0], numKeys, p.tensors[attentionKeys], at[attentionKeys],
                        key);
      loadRows<T, Head>(shared.passing[1], numKeys, p.tensors[attentionValues], at[attentionValues],
                        key);
      __syncthreads();
      RowSums<numColumns> kept, slopes;
      multiplyRows<T, Head, numColumns>(kept, shared.own[0] + firstWarpRow(), shared.passing[0]);
      multiplyRows<T, Head, numColumns>(slopes, shared.own[1] + firstWarpRow(), shared.passing[1]);
      bool isPlain = scores.isPlain(query, attentionTile, key, numKeys);
#pragma unroll
      for (int n = 0; n < numColumns; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          int row = firstWarpRow() + laneRow() + e / 2 * 8;
          int64_t j = key + n * 8 + laneColumn() + e % 2;
          takeWeight(kept[n][e], slopes[n][e], scores, isPlain, query + row, j, shared.sums[row],
                     shared.deltas[row]);
        }
      addProduct<T, Head, numColumns>(sums, slopes, shared.passing[0]);
      __syncthreads();
    }
    float scale = float(p.scale);
    storeRows<T, Head>(p.tensors[attentionGradQueries], at[attentionGradQueries],
                       query + firstWarpRow(), sums, {scale, scale});
    __syncthreads(); // the queries were read by all
  }
}

} // namespace

namespace rondo::cuda {

template <typename T, int Head> TensorKernel tensorGradKeysKernel() {
  return {reinterpret_cast<const void *>(&gradKeysTensorKernel<T, Head>),
          sizeof(BackwardMemory<T, Head>)};
}
template <typename T, int Head> TensorKernel tensorGradQueriesKernel() {
  return {reinterpret_cast<const void *>(&gradQueriesTensorKernel<T, Head>),
          sizeof(BackwardMemory<T, Head>)};
}

template TensorKernel tensorGradKeysKernel<Half, 64>();
template TensorKernel tensorGradKeysKernel<Half, 128>();
template TensorKernel tensorGradKeysKernel<BFloat16, 64>();
template TensorKernel tensorGradKeysKernel<BFloat16, 128>();
template TensorKernel tensorGradQueriesKernel<Half, 64>();
template TensorKernel tensorGradQueriesKernel<Half, 128>();
template TensorKernel tensorGradQueriesKernel<BFloat16, 64>();
template TensorKernel tensorGradQueriesKernel<BFloat16, 128>();

} // namespace rondo::cuda
