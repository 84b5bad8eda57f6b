//===- Matmul.cu - Products of matrices of any strides --------------------===//
//
// A block goes along `inner` in steps of `depth`: it loads that much of its rows of a and of its
// columns of b into shared memory, in the order in which they lie in global memory, and every
// thread adds to 4 by 4 sums. Each sum is formed by one thread, in the order of the elements.
//
//===----------------------------------------------------------------------===//

#include "MatmulDevice.h"

using namespace rondo::cuda;

namespace {

constexpr int depth = 16;
constexpr int side = matmulTile / 4; ///< threads along each side of a tile
static_assert(side * side == matmulBlock);

template <typename C> using Tile = C[depth][matmulTile + 1]; // one more: other banks

/// Sums of products as the host forms them: of integers modulo 2^64.
__device__ float multiplyAdd(float a, float b, float sum) {
  return fmaf(a, b, sum);
}
__device__ double multiplyAdd(double a, double b, double sum) {
  return fma(a, b, sum);
}
__device__ int64_t multiplyAdd(int64_t a, int64_t b, int64_t sum) {
  return wrapAdd(sum, wrapMul(a, b));
}

/// tile[i][j] = element (firstDepth + i, firstLine + j) of a matrix with `inner` by `lines`
/// elements; 0 beyond its end.
template <typename C>
__device__ void loadTile(Tile<C> &tile, ElementType type, const void *data, int64_t offset,
                         int64_t depthStride, int64_t lineStride, int64_t firstDepth,
                         int64_t firstLine, int64_t inner, int64_t lines) {
  bool isLineFast = lineStride == 1 || depthStride != 1;
#pragma unroll
  for (int step = 0; step < depth * matmulTile / matmulBlock; ++step) {
    int at = step * matmulBlock + int(threadIdx.x);
    int i = isLineFast ? at / matmulTile : at % depth;
    int j = isLineFast ? at % matmulTile : at / depth;
    int64_t k = firstDepth + i, line = firstLine + j;
    tile[i][j] = k < inner && line < lines
                     ? load<C>(type, data, offset + k * depthStride + line * lineStride)
                     : C(0);
  }
}

template <typename C>
__device__ void addProducts(C (&sums)[4][4], const Tile<C> &left, const Tile<C> &right, int row,
                            int column) {
#pragma unroll 4
  for (int k = 0; k < depth; ++k) {
    C a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[i] = left[k][row + i * side];
      b[i] = right[k][column + i * side];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        sums[i][j] = multiplyAdd(a[i], b[j], sums[i][j]);
  }
}

/// One element of the result, from the sum of its products.
template <typename C>
__device__ void finish(const MatmulParams &p, const int64_t (&offsets)[4], int64_t i, int64_t j,
                       C sum) {
  if (p.alpha != 1)
    sum = wrapMul(sum, convert<C>(p.alpha));
  if (p.bias) {
    int64_t at = offsets[3] + i * p.biasStrides.rowStride + j * p.biasStrides.columnStride;
    sum = wrapAdd(sum, wrapMul(convert<C>(p.beta), load<C>(p.type, p.bias, at)));
  }
  store(p.type, p.out, offsets[0] + i * p.outStrides.rowStride + j * p.outStrides.columnStride,
        sum);
}

template <typename C>
__global__ void __launch_bounds__(matmulBlock)
    multiplyMatrices(const __grid_constant__ MatmulParams p) {
  __shared__ Tile<C> left, right;
  int row = int(threadIdx.x) / side, column = int(threadIdx.x) % side;
  int64_t tileRows = (p.rows + matmulTile - 1) / matmulTile;
  int64_t tileColumns = (p.columns + matmulTile - 1) / matmulTile;
  int64_t tiles = tileRows * tileColumns * p.batches.count;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int64_t offsets[4];
    p.batches.offsets(tile / (tileRows * tileColumns), offsets);
    int64_t firstRow = tile / tileColumns % tileRows * matmulTile;
    int64_t firstColumn = tile % tileColumns * matmulTile;
    C sums[4][4] = {};
    for (int64_t k = 0; k < p.inner; k += depth) {
      loadTile<C>(left, p.type, p.a, offsets[1], p.aStrides.columnStride, p.aStrides.rowStride, k,
                  firstRow, p.inner, p.rows);
      loadTile<C>(right, p.type, p.b, offsets[2], p.bStrides.rowStride, p.bStrides.columnStride, k,
                  firstColumn, p.inner, p.columns);
      __syncthreads();
      addProducts<C>(sums, left, right, row, column);
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        int64_t r = firstRow + row + i * side, c = firstColumn + column + j * side;
        if (r < p.rows && c < p.columns)
          finish(p, offsets, r, c, sums[i][j]);
      }
  }
}

template <typename C> const void *symbolOf() {
  return reinterpret_cast<const void *>(&multiplyMatrices<C>);
}

} // namespace

const void *rondo::cuda::matmulKernel(ComputeType type) {
  switch (type) {
  case ComputeType::I64:
    return symbolOf<int64_t>();
  case ComputeType::F64:
    return symbolOf<double>();
  case ComputeType::F32:
    break;
  }
  return symbolOf<float>();
}
