//===- Attention.cuh - From products to attention weights -------*- C++ -*-===//
//
// Lanes exchange what they have by shuffles of our own: all lanes of a group need the result, each
// for its part of a row, and an exchange of both ways gives it to them. cub::WarpReduce gives it to
// one, from where it would have to be shuffled once more.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "AttentionDevice.h"

#include "rondo/executors/Philox.h"

namespace rondo::cuda {

template <typename C> inline constexpr C minusInfinity = -std::numeric_limits<C>::infinity();

/// Not inlined: the cases of dtypes are compiled once.
template <typename C>
__device__ __noinline__ C loadNumber(ElementType type, const void *data, int64_t i) {
  return load<C>(type, data, i);
}
template <typename C>
__device__ __noinline__ void storeNumber(ElementType type, void *data, int64_t i, C value) {
  store(type, data, i, value);
}

/// The larger one; nan if either is.
template <typename C> __device__ C largerOrNaN(C a, C b) {
  return b > a || b != b ? b : a;
}
/// Over groups of `Lanes` neighbouring lanes of a full warp; each gets the result.
template <int Lanes, typename C, typename Fn> __device__ C reduceLanes(C value, Fn fn) {
#pragma unroll
  for (int distance = Lanes / 2; distance > 0; distance /= 2)
    value = fn(value, __shfl_xor_sync(0xffffffff, value, distance));
  return value;
}
template <int Lanes, typename C> __device__ C maxOfLanes(C value) {
  return reduceLanes<Lanes>(value, [](C a, C b) { return largerOrNaN(a, b); });
}
template <int Lanes, typename C> __device__ C sumOfLanes(C value) {
  return reduceLanes<Lanes>(value, [](C a, C b) { return a + b; });
}

/// How many tiles of `size` rows `count` rows are.
__device__ inline int64_t tilesOf(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

/// What becomes of the products of queries and keys of one batch: query `i`, key `j`.
template <typename C> class AttentionScores {
public:
  __device__ AttentionScores(const AttentionParams &params, int64_t batch, int64_t maskOffset)
      : p_(params), maskOffset_(maskOffset), scale_(C(params.scale)),
        keepScale_(C(params.keepScale)) {
    if (p_.dropThreshold == 0)
      return;
    seed_ = p_.rng[0];
    first_ = p_.rng[1] + p_.offset + uint64_t(batch) * uint64_t(numQueries()) * uint64_t(numKeys());
  }

  __device__ int64_t numQueries() const { return p_.tensors[attentionQueries].rows; }
  __device__ int64_t numKeys() const { return p_.tensors[attentionKeys].rows; }
  /// No query below `end` sees this key or a later one.
  __device__ int64_t endOfKeys(int64_t end) const {
    return p_.causal && end < numKeys() ? end : numKeys();
  }
  /// No query before this one sees key `j` or a later one.
  __device__ int64_t firstQuery(int64_t j) const { return p_.causal ? j : 0; }

  /// Are all scores of these queries and keys just scaled products?
  __device__ bool isPlain(int64_t i, int64_t queries, int64_t j, int64_t keys) const {
    return !p_.tensors[attentionMask].data && i + queries <= numQueries() &&
           j + keys <= numKeys() && (!p_.causal || j + keys <= i + 1);
  }
  __device__ C plainScore(C product) const { return scale_ * product; }
  /// -inf for what is forbidden or outside of the matrix.
  __device__ C score(C product, int64_t i, int64_t j) const {
    if (i >= numQueries() || j >= numKeys() || (p_.causal && j > i))
      return minusInfinity<C>;
    C score = scale_ * product;
    const AttentionMatrix &mask = p_.tensors[attentionMask];
    if (!mask.data)
      return score;
    C added = loadNumber<C>(mask.type, mask.data,
                            maskOffset_ + i * mask.rowStride + j * mask.columnStride);
    if (mask.type == ElementType::Bool)
      return added != C(0) ? score : minusInfinity<C>;
    return score + added;
  }

  __device__ bool hasDropout() const { return p_.dropThreshold != 0; }
  /// Of a score inside of the matrix.
  __device__ bool isDropped(int64_t i, int64_t j) const {
    uint64_t n = first_ + uint64_t(i) * uint64_t(numKeys()) + uint64_t(j);
    return philox::happens(philox::word(seed_, n), p_.dropThreshold);
  }
  __device__ C keepScale() const { return keepScale_; }

private:
  const AttentionParams &p_;
  int64_t maskOffset_;
  C scale_, keepScale_;
  uint64_t seed_ = 0, first_ = 0;
};

/// exp(x), to the last bits of a double or a float.
template <typename C> struct ExactExp {
  __device__ C operator()(C x) const { return ::exp(x); }
};
/// exp(x) to about 2^-20: for weights that are rounded to 16 bits.
struct FastExp {
  __device__ float operator()(float x) const { return exp2f(x * 1.44269504088896341f); }
};

/// The softmax of a row whose scores come piece by piece (Milakov and Gimelshein, "Online
/// normalizer calculation for softmax", 2018). `Lanes` threads have parts of the row and agree.
template <typename C, typename Exp, int Lanes> struct OnlineSoftmax {
  C max = minusInfinity<C>, sum = 0;

  /// Replaces scores by exp(score - max). Returns what sums over earlier pieces are to be
  /// multiplied with.
  template <int N> __device__ C add(C (&scores)[N]) {
    C largest = max;
#pragma unroll
    for (int c = 0; c < N; ++c)
      largest = largerOrNaN(largest, scores[c]);
    largest = maxOfLanes<Lanes>(largest);
    C base = largest == minusInfinity<C> ? C(0) : largest, piece = 0;
#pragma unroll
    for (int c = 0; c < N; ++c) {
      scores[c] = Exp()(scores[c] - base);
      piece += scores[c];
    }
    C factor = Exp()(max - base);
    sum = sum * factor + sumOfLanes<Lanes>(piece);
    max = largest;
    return factor;
  }
  /// Was every score -inf?
  __device__ bool isEmpty() const {
    return max == minusInfinity<C>;
  }
  __device__ C logSumExp() const {
    return isEmpty() ? minusInfinity<C> : max + ::log(sum);
  }
  /// What turns exp(score - max) into weights.
  __device__ C weightFactor() const {
    return isEmpty() ? C(0) : C(1) / sum;
  }
};

/// The weight of a score in a row with this logsumexp.
template <typename Exp, typename C> __device__ C weightOf(C score, C logSumExp) {
  return logSumExp == minusInfinity<C> ? C(0) : Exp()(score - logSumExp);
}

/// logsumexp of query `i`, 0 outside of the matrix.
template <typename C>
__device__ C logSumExpOf(const AttentionParams &p, int64_t offset, int64_t i) {
  const AttentionMatrix &sums = p.tensors[attentionSums];
  if (i >= p.tensors[attentionQueries].rows)
    return 0;
  return loadNumber<C>(sums.type, sums.data, offset + i * sums.rowStride);
}
/// rowsum(grad * out) of query `i`, 0 outside of the matrix.
template <typename C> __device__ C deltaOf(const AttentionParams &p, int64_t batch, int64_t i) {
  int64_t queries = p.tensors[attentionQueries].rows;
  return i < queries ? static_cast<const C *>(p.delta)[batch * queries + i] : C(0);
}
/// Stores logsumexp of query `i`, infinity for those beyond the last.
template <typename C>
__device__ void storeLogSumExp(const AttentionParams &p, int64_t offset, int64_t i, C value) {
  const AttentionMatrix &sums = p.tensors[attentionSums];
  if (i >= p.tensors[attentionQueries].rows)
    value = -minusInfinity<C>;
  if (i < sums.rows)
    storeNumber<C>(sums.type, sums.data, offset + i * sums.rowStride, value);
}

} // namespace rondo::cuda
