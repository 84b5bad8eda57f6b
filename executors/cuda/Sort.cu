//===- Sort.cu - Sorting --------------------------------------------------===//

#include "SortDevice.h"

#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_scan.cuh>

#include <cstring>

using namespace rondo::cuda;

namespace {

//===----------------------------------------------------------------------===//
// Short rows
//===----------------------------------------------------------------------===//

struct IsLess {
  template <typename Key> __device__ bool operator()(Key a, Key b) const { return a < b; }
};

/// Sorts `size` keys, of which `keyAt(i)` gives the i-th, and calls `store(i, key, position)` for
/// the i-th in order, which was number `position`. Every thread of the block calls it.
template <int Threads, typename KeyAt, typename Store>
__device__ void sortInBlock(int size, KeyAt keyAt, Store store) {
  using Key = decltype(keyAt(0));
  using Sort = cub::BlockMergeSort<Key, Threads, sortedPerThread, uint32_t>;
  __shared__ typename Sort::TempStorage storage;
  constexpr Key greatest = ~Key(0);
  int first = threadIdx.x * sortedPerThread;
  Key keys[sortedPerThread];
  uint32_t positions[sortedPerThread];
#pragma unroll
  for (int k = 0; k < sortedPerThread; ++k) {
    keys[k] = first + k < size ? keyAt(first + k) : greatest;
    positions[k] = first + k;
  }
  Sort(storage).StableSort(keys, positions, IsLess(), size, greatest);
#pragma unroll
  for (int k = 0; k < sortedPerThread; ++k)
    if (first + k < size)
      store(first + k, keys[k], positions[k]);
  __syncthreads(); // `storage` is used again
}

template <typename Key, int Threads>
__global__ void __launch_bounds__(Threads)
    keysInBlockKernel(const __grid_constant__ KeySortParams p) {
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    int64_t start = row * p.size;
    sortInBlock<Threads>(
        int(p.size), [&](int i) { return static_cast<const Key *>(p.keys)[start + i]; },
        [&](int i, Key key, uint32_t position) {
          static_cast<Key *>(p.sortedKeys)[start + i] = key;
          p.sortedPositions[start + i] = position;
        });
  }
}

//===----------------------------------------------------------------------===//
// Long rows
//===----------------------------------------------------------------------===//

template <typename Key> __device__ uint32_t digitOf(Key key, int shift) {
  return uint32_t(key >> shift) & (sortDigits - 1);
}

template <typename Key>
__global__ void __launch_bounds__(sortBlock) countKernel(const __grid_constant__ KeySortParams p) {
  __shared__ uint32_t counts[sortDigits];
  int lane = threadIdx.x % 32;
  for (int64_t block = blockIdx.x; block < p.rows * p.tiles; block += gridDim.x) {
    int64_t row = block / p.tiles, tile = block - row * p.tiles;
    const Key *keys = static_cast<const Key *>(p.keys) + row * p.size;
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int item = 0; item < sortItems; ++item) {
      int64_t i = tile * sortTile + item * sortBlock + threadIdx.x;
      uint32_t digit = i < p.size ? digitOf(keys[i], p.shift) : sortDigits;
      uint32_t same = __match_any_sync(0xffffffffu, digit);
      if (digit < sortDigits && lane == __ffs(same) - 1)
        atomicAdd(&counts[digit], uint32_t(__popc(same)));
    }
    __syncthreads();
    // A thread reads the count that it sets to 0 next.
    p.counts[(row * sortDigits + threadIdx.x) * p.tiles + tile] = counts[threadIdx.x];
  }
}

constexpr int scanItems = 4; // for each thread

/// A block for each row makes of its counts their exclusive sums.
__global__ void __launch_bounds__(sortScanBlock)
    scanKernel(const __grid_constant__ KeySortParams p) {
  using Scan = cub::BlockScan<uint32_t, sortScanBlock>;
  __shared__ typename Scan::TempStorage storage;
  int64_t size = sortDigits * p.tiles;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    uint32_t *counts = p.counts + row * size, before = 0;
    for (int64_t chunk = 0; chunk < size; chunk += sortScanBlock * scanItems) {
      int64_t first = chunk + threadIdx.x * scanItems;
      uint32_t values[scanItems], total;
      for (int k = 0; k < scanItems; ++k)
        values[k] = first + k < size ? counts[first + k] : 0;
      Scan(storage).ExclusiveSum(values, values, total);
      for (int k = 0; k < scanItems; ++k)
        if (first + k < size)
          counts[first + k] = before + values[k];
      before += total;
      __syncthreads(); // `storage` is used again
    }
  }
}

/// Each warp of a block has a part of its tile and goes through it in order.
template <typename Key>
__global__ void __launch_bounds__(sortBlock) moveKernel(const __grid_constant__ KeySortParams p) {
  constexpr int warps = sortBlock / 32;
  __shared__ uint32_t counts[warps][sortDigits];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int64_t block = blockIdx.x; block < p.rows * p.tiles; block += gridDim.x) {
    int64_t row = block / p.tiles, tile = block - row * p.tiles, start = row * p.size;
    int64_t first = tile * sortTile + warp * (sortItems * 32) + lane;
    const Key *in = static_cast<const Key *>(p.keys) + start;
    for (int w = 0; w < warps; ++w)
      counts[w][threadIdx.x] = 0;
    __syncthreads();
    Key keys[sortItems];
    uint32_t ranks[sortItems]; // among the warp's keys of the same digit
#pragma unroll
    for (int item = 0; item < sortItems; ++item) {
      int64_t i = first + item * 32;
      bool isKey = i < p.size;
      keys[item] = isKey ? in[i] : 0;
      uint32_t digit = isKey ? digitOf(keys[item], p.shift) : sortDigits;
      uint32_t same = __match_any_sync(0xffffffffu, digit);
      uint32_t before = isKey ? counts[warp][digit] : 0;
      ranks[item] = before + __popc(same & ((1u << lane) - 1));
      __syncwarp();
      if (isKey && lane == __ffs(same) - 1)
        counts[warp][digit] = before + __popc(same);
      __syncwarp();
    }
    __syncthreads();
    // Where each warp's keys of the thread's digit begin.
    uint32_t next = p.counts[(row * sortDigits + threadIdx.x) * p.tiles + tile];
    for (int w = 0; w < warps; ++w) {
      uint32_t count = counts[w][threadIdx.x];
      counts[w][threadIdx.x] = next;
      next += count;
    }
    __syncthreads();
#pragma unroll
    for (int item = 0; item < sortItems; ++item) {
      int64_t i = first + item * 32;
      if (i < p.size) {
        int64_t to = start + counts[warp][digitOf(keys[item], p.shift)] + ranks[item];
        static_cast<Key *>(p.sortedKeys)[to] = keys[item];
        p.sortedPositions[to] = p.positions ? p.positions[start + i] : uint32_t(i);
      }
    }
    __syncthreads(); // `counts` are used again
  }
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// A number that is less where the element comes before: nan is the greatest, -0 equals 0.
template <typename T> RONDO_DEVICE uint64_t keyOf(T value, bool isDescending) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(T) - 1));
  Bits bits;
  if constexpr (isFloatElement<T>) {
    std::memcpy(&bits, &value, sizeof(T));
    if (widen(value) == 0)
      bits = 0;
    bits = bits & sign ? Bits(~bits) : Bits(bits | sign);
    if (widen(value) != widen(value))
      bits = Bits(~Bits(0));
  } else {
    bits = std::is_signed_v<T> ? Bits(Bits(value) ^ sign) : Bits(value);
  }
  return isDescending ? Bits(~bits) : bits;
}

RONDO_DEVICE uint64_t loadKey(const RowSortParams &p, int64_t i) {
  return dispatch(p.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return keyOf(static_cast<const T *>(p.x)[i], p.isDescending);
  });
}

/// Of one that a row begins with offsets `row`: number `position` becomes the i-th.
RONDO_DEVICE void storeSorted(const RowSortParams &p, const int64_t (&row)[3], int64_t i,
                              uint32_t position) {
  int64_t from = row[0] + position * p.strides[0], to = row[1] + i * p.strides[1];
  dispatch(p.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    static_cast<T *>(p.values)[to] = static_cast<const T *>(p.x)[from];
  });
  p.indices[row[2] + i * p.strides[2]] = position;
}

template <int Threads>
__global__ void __launch_bounds__(Threads)
    rowsInBlockKernel(const __grid_constant__ RowSortParams p) {
  int64_t rows = p.rows.count, kept = p.kept.count / rows;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int64_t at[3];
    p.rows.offsets(row, at);
    sortInBlock<Threads>(
        int(p.keys.count / rows), [&](int i) { return loadKey(p, at[0] + i * p.strides[0]); },
        [&](int i, uint64_t, uint32_t position) {
          if (i < kept)
            storeSorted(p, at, i, position);
        });
  }
}

__global__ void __launch_bounds__(sortBlock) keyKernel(const __grid_constant__ RowSortParams p) {
  int64_t threads = int64_t(gridDim.x) * sortBlock;
  for (int64_t i = int64_t(blockIdx.x) * sortBlock + threadIdx.x; i < p.keys.count; i += threads) {
    int64_t element[2], row[3];
    p.keys.offsets(i, element);
    p.rows.offsets(element[0], row);
    uint64_t key = loadKey(p, row[0] + element[1] * p.strides[0]);
    if (p.isWide)
      static_cast<uint64_t *>(p.rowKeys)[i] = key;
    else
      static_cast<uint32_t *>(p.rowKeys)[i] = uint32_t(key);
  }
}

__global__ void __launch_bounds__(sortBlock) takeKernel(const __grid_constant__ RowSortParams p) {
  int64_t size = p.keys.count / p.rows.count, threads = int64_t(gridDim.x) * sortBlock;
  for (int64_t i = int64_t(blockIdx.x) * sortBlock + threadIdx.x; i < p.kept.count; i += threads) {
    int64_t element[2], row[3];
    p.kept.offsets(i, element);
    p.rows.offsets(element[0], row);
    storeSorted(p, row, element[1], p.positions[element[0] * size + element[1]]);
  }
}

template <typename Params> const void *symbol(void (*kernel)(Params)) {
  return reinterpret_cast<const void *>(kernel);
}

/// Calls `fn(std::integral_constant<int, sortThreads(size)>())`.
template <typename Fn> const void *dispatchThreads(int64_t size, Fn fn) {
  switch (sortThreads(size)) {
  case 8:
    return fn(std::integral_constant<int, 8>());
  case 32:
    return fn(std::integral_constant<int, 32>());
  case 128:
    return fn(std::integral_constant<int, 128>());
  default:
    return fn(std::integral_constant<int, 512>());
  }
}

} // namespace

const void *sorting::keysInBlock(bool isWide, int64_t size) {
  return dispatchThreads(size, [&](auto threads) {
    return isWide ? symbol(keysInBlockKernel<uint64_t, threads()>)
                  : symbol(keysInBlockKernel<uint32_t, threads()>);
  });
}
const void *sorting::countDigits(bool isWide) {
  return isWide ? symbol(countKernel<uint64_t>) : symbol(countKernel<uint32_t>);
}
const void *sorting::sumCounts() {
  return symbol(scanKernel);
}
const void *sorting::moveKeys(bool isWide) {
  return isWide ? symbol(moveKernel<uint64_t>) : symbol(moveKernel<uint32_t>);
}
const void *sorting::rowsInBlock(int64_t size) {
  return dispatchThreads(size, [](auto threads) { return symbol(rowsInBlockKernel<threads()>); });
}
const void *sorting::makeKeys() {
  return symbol(keyKernel);
}
const void *sorting::takeSorted() {
  return symbol(takeKernel);
}
