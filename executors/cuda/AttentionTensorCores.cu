//===- AttentionTensorCores.cu - Attention of 16-bit types ----------------===//
//
// As Attention.cu; a block has 64 queries, a warp 16 of them with all columns of the result in its
// registers. Weights are rounded to the dtype before they are multiplied with values.
//
//===----------------------------------------------------------------------===//

#include "AttentionFragments.cuh"
#include "AttentionTensorTable.cuh"

using namespace rondo::cuda;

namespace {

template <typename T, int Head> struct ForwardMemory {
  HeadRow<T, Head> queries[attentionTile], keys[attentionTile], values[attentionTile];
};

template <typename T, int Head>
__global__ void __launch_bounds__(tensorAttentionBlock)
    attentionTensorKernel(const __grid_constant__ AttentionParams p) {
  constexpr int numColumns = attentionTile / 8;
  extern __shared__ uint4 sharedAttentionMemory[];
  auto &shared = *reinterpret_cast<ForwardMemory<T, Head> *>(sharedAttentionMemory);
  const AttentionMatrix &queries = p.tensors[attentionQueries], &out = p.tensors[attentionOut];
  int64_t queryTiles = tilesOf(max(queries.rows, p.tensors[attentionSums].rows), attentionTile);
  for (int64_t item = blockIdx.x; item < p.batches.count * queryTiles; item += gridDim.x) {
    // What sees most keys first.
    int64_t query = (queryTiles - 1 - item % queryTiles) * attentionTile;
    int64_t batch = item / queryTiles, at[numAttentionTensors];
    p.batches.offsets(batch, at);
    AttentionScores<float> scores(p, batch, at[attentionMask]);
    RowSums<Head / 8> result = {};
    OnlineSoftmax<float, FastExp, 4> rows[2];
    loadRows<T, Head>(shared.queries, attentionTile, queries, at[attentionQueries], query);
    int64_t endOfKeys = query < queries.rows ? scores.endOfKeys(query + attentionTile) : 0;
    int64_t firstRow = query + firstWarpRow() + laneRow();
    for (int64_t key = 0; key < endOfKeys; key += attentionTile) {
      loadRows<T, Head>(shared.keys, attentionTile, p.tensors[attentionKeys], at[attentionKeys],
                        key);
      loadRows<T, Head>(shared.values, attentionTile, p.tensors[attentionValues],
                        at[attentionValues], key);
      __syncthreads();
      RowSums<numColumns> weights;
      multiplyRows<T, Head, numColumns>(weights, shared.queries + firstWarpRow(), shared.keys);
      bool isPlain = scores.isPlain(query, attentionTile, key, attentionTile);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int64_t i = firstRow + half * 8, j = key + laneColumn();
        float row[numColumns * 2];
#pragma unroll
        for (int c = 0; c < numColumns * 2; ++c) {
          float product = weights[c / 2][half * 2 + c % 2];
          row[c] = isPlain ? scores.plainScore(product)
                           : scores.score(product, i, j + c / 2 * 8 + c % 2);
        }
        float factor = rows[half].add(row);
#pragma unroll
        for (int c = 0; c < numColumns * 2; ++c) {
          if (scores.hasDropout() && scores.isDropped(i, j + c / 2 * 8 + c % 2))
            row[c] = 0;
          weights[c / 2][half * 2 + c % 2] = row[c];
        }
#pragma unroll
        for (int c = 0; c < Head / 8; ++c) {
          result[c][half * 2] *= factor;
          result[c][half * 2 + 1] *= factor;
        }
      }
      addProduct<T, Head, numColumns>(result, weights, shared.values);
      __syncthreads();
    }
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (laneColumn() == 0)
        storeLogSumExp(p, at[attentionSums], firstRow + half * 8, rows[half].logSumExp());
      factors[half] = rows[half].weightFactor() * scores.keepScale();
    }
    storeRows<T, Head>(out, at[attentionOut], query + firstWarpRow(), result, factors);
    __syncthreads(); // the queries were read by all
  }
}

template <typename T, int Head> TensorAttentionKernels kernelsOf() {
  return {reinterpret_cast<const void *>(&attentionTensorKernel<T, Head>),
          tensorGradKeysKernel<T, Head>().symbol,
          tensorGradQueriesKernel<T, Head>().symbol,
          sizeof(ForwardMemory<T, Head>),
          tensorGradKeysKernel<T, Head>().sharedBytes,
          tensorGradQueriesKernel<T, Head>().sharedBytes};
}
template <typename T> TensorAttentionKernels kernelsOf(int64_t headSize) {
  return headSize <= 64 ? kernelsOf<T, 64>() : kernelsOf<T, maxTensorHead>();
}

} // namespace

TensorAttentionKernels rondo::cuda::tensorAttentionKernels(ElementType type, int64_t headSize) {
  return type == ElementType::F16 ? kernelsOf<Half>(headSize) : kernelsOf<BFloat16>(headSize);
}
