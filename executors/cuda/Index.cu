//===- Index.cu - Reading and updating by index ---------------------------===//

#include "IndexDevice.h"

using namespace rondo::cuda;

namespace {

/// A tuple's offsets, and its key: -1 if it is nowhere.
struct Place {
  int64_t moved, indexed, key;
};

__device__ int64_t indexAt(const void *data, bool isI64, int64_t i) {
  return isI64 ? static_cast<const int64_t *>(data)[i] : static_cast<const int32_t *>(data)[i];
}

__device__ Place placeOf(const Indexing &p, int64_t tuple) {
  int64_t at[3], positions[maxIndices];
  p.tuples.offsets(tuple, at);
  Place place{at[0], at[1], at[2]};
  if (p.numIndices == 0)
    return place;
  p.positions.offsets(tuple, positions);
#pragma unroll
  for (int k = 0; k < maxIndices; ++k) {
    if (k >= p.numIndices)
      break;
    const IndexOperand &operand = p.indices[k];
    int64_t i = indexAt(operand.data, operand.isI64, positions[k]);
    if (operand.wraps && i < 0)
      i += operand.size;
    if (i < 0 || i >= operand.size || i == p.dropped) {
      place.key = -1;
      break;
    }
    place.indexed += i * operand.stride;
    place.key += i * operand.keyStride;
  }
  return place;
}

__device__ int64_t firstThread() {
  return int64_t(blockIdx.x) * indexBlock + threadIdx.x;
}
__device__ int64_t numThreads() {
  return int64_t(gridDim.x) * indexBlock;
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

/// Calls `fn(TypeTag<Unit>())`.
template <typename Fn> __device__ void dispatchUnit(uint32_t bytes, Fn &&fn) {
  switch (bytes) {
  case 1:
    return fn(TypeTag<uint8_t>());
  case 2:
    return fn(TypeTag<uint16_t>());
  case 4:
    return fn(TypeTag<uint32_t>());
  case 8:
    return fn(TypeTag<uint64_t>());
  default:
    return fn(TypeTag<uint4>());
  }
}

__global__ void __launch_bounds__(indexBlock)
    takeKernel(const __grid_constant__ IndexedMoveParams p) {
  for (int64_t i = firstThread(); i < p.indexing.elements.count; i += numThreads()) {
    int64_t element[2], slice[2];
    p.indexing.elements.offsets(i, element);
    p.indexing.slices.offsets(element[1], slice);
    Place place = placeOf(p.indexing, element[0]);
    bool isMissing = place.key < 0 || !p.indexed;
    dispatchUnit(p.unitBytes, [&](auto tag) {
      using Unit = typename decltype(tag)::Type;
      Unit value = isMissing ? *reinterpret_cast<const Unit *>(p.missing)
                             : static_cast<const Unit *>(p.indexed)[place.indexed + slice[1]];
      static_cast<Unit *>(p.moved)[place.moved + slice[0]] = value;
    });
  }
}

__global__ void __launch_bounds__(indexBlock)
    putKernel(const __grid_constant__ IndexedMoveParams p) {
  for (int64_t i = firstThread(); i < p.indexing.elements.count; i += numThreads()) {
    int64_t element[2], slice[2];
    p.indexing.elements.offsets(i, element);
    Place place = placeOf(p.indexing, element[0]);
    if (place.key < 0 || (p.owners && p.owners[place.key] != uint32_t(element[0])))
      continue;
    p.indexing.slices.offsets(element[1], slice);
    dispatchUnit(p.unitBytes, [&](auto tag) {
      using Unit = typename decltype(tag)::Type;
      static_cast<Unit *>(p.indexed)[place.indexed + slice[1]] =
          static_cast<const Unit *>(p.moved)[place.moved + slice[0]];
    });
  }
}

/// Only entries that some tuple names are ever looked at.
__global__ void __launch_bounds__(indexBlock)
    forgetKernel(const __grid_constant__ IndexedMoveParams p) {
  for (int64_t t = firstThread(); t < p.indexing.tuples.count; t += numThreads())
    if (int64_t key = placeOf(p.indexing, t).key; key >= 0)
      p.owners[key] = 0;
}

__global__ void __launch_bounds__(indexBlock)
    claimKernel(const __grid_constant__ IndexedMoveParams p) {
  for (int64_t t = firstThread(); t < p.indexing.tuples.count; t += numThreads())
    if (int64_t key = placeOf(p.indexing, t).key; key >= 0)
      atomicMax(&p.owners[key], uint32_t(t));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

__global__ void __launch_bounds__(indexBlock) keyKernel(const __grid_constant__ IndexKeyParams p) {
  for (int64_t t = firstThread(); t < p.indexing.tuples.count; t += numThreads()) {
    int64_t found = placeOf(p.indexing, t).key;
    uint64_t key = found < 0 ? p.end : uint64_t(found);
    if (p.isWide)
      static_cast<uint64_t *>(p.keys)[t] = key;
    else
      static_cast<uint32_t *>(p.keys)[t] = uint32_t(key);
  }
}

__device__ uint64_t keyAt(const SliceSumParams &p, int64_t i) {
  return p.isWide ? static_cast<const uint64_t *>(p.keys)[i]
                  : static_cast<const uint32_t *>(p.keys)[i];
}

/// The first of the sorted positions `first` ... `last` - 1 with a key of at least `key`, or
/// `last`.
__device__ int64_t lowerBound(const SliceSumParams &p, uint64_t key, int64_t first, int64_t last) {
  while (first < last) {
    int64_t middle = first + (last - first) / 2;
    if (keyAt(p, middle) < key)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

/// Adds the sum of a whole run of `length` tuples, `tuple` among them. Not inlined: it is called in
/// unrolled loops.
template <typename C>
__device__ __noinline__ void addRun(const SliceSumParams &p, C sum, int64_t length, int64_t tuple,
                                    int64_t slice) {
  int64_t at = placeOf(p.indexing, tuple).indexed + slice;
  if (p.isMean)
    sum /= C(length);
  store<C>(p.type, p.indexed, at, wrapAdd(load<C>(p.type, p.indexed, at), sum));
}

/// The elements at sorted positions `first` ... `last` - 1, times the factor, and their keys; past
/// the last the key is `end`.
template <typename C, int N>
__device__ void loadBatch(const SliceSumParams &p, int64_t first, int64_t last, int64_t slice,
                          uint64_t (&keys)[N], C (&values)[N]) {
  int64_t offsets[N];
#pragma unroll
  for (int b = 0; b < N; ++b) {
    keys[b] = first + b < last ? keyAt(p, first + b) : p.end;
    int64_t at[3] = {};
    if (keys[b] != p.end)
      p.indexing.tuples.offsets(p.tuples[first + b], at);
    offsets[b] = at[0] + slice;
  }
  C factor;
  if constexpr (std::is_same_v<C, double>)
    factor = p.factor;
  else
    factor = p.integerFactor;
  dispatch(p.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
#pragma unroll
    for (int b = 0; b < N; ++b)
      values[b] = keys[b] == p.end
                      ? C(0)
                      : wrapMul(factor, convert<C>(static_cast<const T *>(p.moved)[offsets[b]]));
  });
}

template <typename C>
__global__ void __launch_bounds__(indexBlock) sumKernel(const __grid_constant__ SliceSumParams p) {
  constexpr int batchSize = leastSumChunk;
  int64_t width = p.indexing.slices.count;
  for (int64_t i = firstThread(); i < p.chunks.count; i += numThreads()) {
    int64_t at[2], slice[2];
    p.chunks.offsets(i, at);
    p.indexing.slices.offsets(at[1], slice);
    int64_t first = at[0] * p.chunk, last = first + p.chunk < p.count ? first + p.chunk : p.count;
    uint64_t key = keyAt(p, first);
    bool isContinued = first > 0 && keyAt(p, first - 1) == key;
    int64_t begin = first, part = at[0] * width + at[1];
    C sum = 0;
    for (int64_t batch = first; batch < last && key != p.end; batch += batchSize) {
      uint64_t keys[batchSize];
      C values[batchSize];
      loadBatch(p, batch, last, slice[0], keys, values);
#pragma unroll
      for (int b = 0; b < batchSize; ++b) {
        if (keys[b] != key) { // the end of a run; never past `end`, which is the greatest key
          if (isContinued)
            static_cast<C *>(p.heads)[part] = sum;
          else
            addRun(p, sum, batch + b - begin, p.tuples[begin], slice[1]);
          key = keys[b];
          begin = batch + b;
          isContinued = false;
          sum = 0;
        }
        sum = wrapAdd(sum, values[b]);
      }
    }
    if (key == p.end)
      continue;
    if (isContinued)
      static_cast<C *>(p.heads)[part] = sum;
    else if (last < p.count && keyAt(p, last) == key)
      static_cast<C *>(p.tails)[part] = sum;
    else
      addRun(p, sum, last - begin, p.tuples[begin], slice[1]);
  }
}

/// A block adds up, for `columns` elements of the slice, the parts of the run that begins in a
/// chunk and goes on after it, if there is one.
template <typename C>
__global__ void __launch_bounds__(indexBlock)
    partsKernel(const __grid_constant__ SliceSumParams p) {
  __shared__ C sums[indexBlock];
  int column = threadIdx.x & (p.columns - 1), row = threadIdx.x / p.columns;
  int rows = indexBlock / p.columns;
  int64_t width = p.indexing.slices.count, groups = (width + p.columns - 1) / p.columns;
  int64_t chunks = (p.count + p.chunk - 1) / p.chunk;
  for (int64_t block = blockIdx.x; block < chunks * groups; block += gridDim.x) {
    int64_t chunk = block / groups, j = (block - chunk * groups) * p.columns + column;
    int64_t first = chunk * p.chunk, last = first + p.chunk;
    if (last >= p.count)
      continue;
    uint64_t key = keyAt(p, last - 1);
    if (key == p.end || keyAt(p, last) != key || (first > 0 && keyAt(p, first - 1) == key))
      continue;
    int64_t end = lowerBound(p, key + 1, last, p.count), lastChunk = (end - 1) / p.chunk;
    C sum = 0;
    if (j < width)
      for (int64_t c = chunk + 1 + row; c <= lastChunk; c += rows)
        sum = wrapAdd(sum, static_cast<const C *>(p.heads)[c * width + j]);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = rows / 2; step > 0; step /= 2) {
      if (row < step)
        sums[threadIdx.x] = wrapAdd(sums[threadIdx.x], sums[threadIdx.x + step * p.columns]);
      __syncthreads();
    }
    if (row == 0 && j < width) {
      int64_t slice[2], begin = lowerBound(p, key, first, last);
      p.indexing.slices.offsets(j, slice);
      addRun(p, wrapAdd(static_cast<const C *>(p.tails)[chunk * width + j], sums[column]),
             end - begin, p.tuples[begin], slice[1]);
    }
    __syncthreads(); // `sums` is used again
  }
}

__global__ void __launch_bounds__(indexBlock) oneHotKernel(const __grid_constant__ OneHotParams p) {
  for (int64_t i = firstThread(); i < p.layout.count; i += numThreads()) {
    int64_t at[3];
    p.layout.offsets(i, at);
    p.out[at[0]] = indexAt(p.indices, p.isI64, at[1]) == at[2];
  }
}

template <typename Params> const void *symbol(void (*kernel)(Params)) {
  return reinterpret_cast<const void *>(kernel);
}

} // namespace

const void *indexing::take() {
  return symbol(takeKernel);
}
const void *indexing::put() {
  return symbol(putKernel);
}
const void *indexing::forget() {
  return symbol(forgetKernel);
}
const void *indexing::claim() {
  return symbol(claimKernel);
}
const void *indexing::keys() {
  return symbol(keyKernel);
}
const void *indexing::sum(bool isFloat) {
  return isFloat ? symbol(sumKernel<double>) : symbol(sumKernel<int64_t>);
}
const void *indexing::sumParts(bool isFloat) {
  return isFloat ? symbol(partsKernel<double>) : symbol(partsKernel<int64_t>);
}
const void *indexing::oneHot() {
  return symbol(oneHotKernel);
}
