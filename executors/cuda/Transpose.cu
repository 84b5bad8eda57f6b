//===- Transpose.cu - Copies that exchange two dimensions -----------------===//
//
// Tiles of matrices pass through shared memory, so that both reading and writing are along what
// lies densely.
//
//===----------------------------------------------------------------------===//

#include "CopyDevice.h"

using namespace rondo::cuda;

namespace {

template <typename T>
__global__ void __launch_bounds__(transposeTile *transposeRows)
    transposeMatrices(const __grid_constant__ TransposeParams p) {
  __shared__ T tile[transposeTile][transposeTile + 1]; // a column's elements in different banks
  int64_t rowTiles = (p.rows + transposeTile - 1) / transposeTile;
  int64_t columnTiles = (p.columns + transposeTile - 1) / transposeTile;
  for (int64_t t = blockIdx.x; t < p.matrices.count * rowTiles * columnTiles; t += gridDim.x) {
    int64_t rowOfTiles = t / columnTiles, matrix = rowOfTiles / rowTiles;
    int64_t firstRow = (rowOfTiles - matrix * rowTiles) * transposeTile;
    int64_t firstColumn = (t - rowOfTiles * columnTiles) * transposeTile;
    int64_t offsets[2];
    p.matrices.offsets(matrix, offsets);
    const T *from = static_cast<const T *>(p.from) + offsets[0];
    T *to = static_cast<T *>(p.to) + offsets[1];
    int64_t column = firstColumn + threadIdx.x;
    for (int r = threadIdx.y; r < transposeTile; r += transposeRows)
      if (firstRow + r < p.rows && column < p.columns)
        tile[r][threadIdx.x] = from[(firstRow + r) * p.fromStride + column];
    __syncthreads();
    int64_t row = firstRow + threadIdx.x;
    for (int c = threadIdx.y; c < transposeTile; c += transposeRows)
      if (firstColumn + c < p.columns && row < p.rows)
        to[(firstColumn + c) * p.toStride + row] = tile[threadIdx.x][c];
    __syncthreads();
  }
}

template <typename T> const void *symbol() {
  return reinterpret_cast<const void *>(&transposeMatrices<T>);
}

} // namespace

const void *rondo::cuda::transposeKernel(unsigned bytes) {
  return bytes == 1   ? symbol<uint8_t>()
         : bytes == 2 ? symbol<uint16_t>()
         : bytes == 4 ? symbol<uint32_t>()
                      : symbol<uint64_t>();
}
