//===- Copy.cu - Copies and fills -----------------------------------------===//

#include "CopyDevice.h"

using namespace rondo::cuda;

namespace {

/// 16 bytes that are moved at once.
using Wide = uint4;

__device__ int64_t firstElement() {
  return int64_t(blockIdx.x) * copyBlock + threadIdx.x;
}
/// From an element of a thread to its next.
__device__ int64_t gridStride() {
  return int64_t(gridDim.x) * copyBlock;
}

template <typename T>
__global__ void __launch_bounds__(copyBlock) moveElements(const __grid_constant__ MoveParams p) {
  for (int64_t i = firstElement(); i < p.layout.count; i += gridStride()) {
    int64_t offsets[2];
    p.layout.offsets(i, offsets);
    static_cast<T *>(p.to)[offsets[1]] = static_cast<const T *>(p.from)[offsets[0]];
  }
}

template <typename T> __device__ T repeatedBits(uint64_t bits) {
  if constexpr (sizeof(T) == 16) {
    uint32_t low = uint32_t(bits), high = uint32_t(bits >> 32);
    return make_uint4(low, high, low, high);
  } else {
    return T(bits);
  }
}

template <typename T>
__global__ void __launch_bounds__(copyBlock) fillElements(const __grid_constant__ FillParams p) {
  T element = repeatedBits<T>(p.bits);
  for (int64_t i = firstElement(); i < p.layout.count; i += gridStride()) {
    int64_t offsets[1];
    p.layout.offsets(i, offsets);
    static_cast<T *>(p.to)[offsets[0]] = element;
  }
}

template <typename T>
__global__ void __launch_bounds__(copyBlock) rollElements(const __grid_constant__ RollParams p) {
  int64_t count = p.toLayout.count;
  for (int64_t i = firstElement(); i < count; i += gridStride()) {
    int64_t from[1], to[1];
    p.fromLayout.offsets(i < p.shift ? i - p.shift + count : i - p.shift, from);
    p.toLayout.offsets(i, to);
    static_cast<T *>(p.to)[to[0]] = static_cast<const T *>(p.from)[from[0]];
  }
}

/// Row and column of element `i`.
__device__ void positionInMatrix(const TriangleParams &p, int64_t i, int64_t &row,
                                 int64_t &column) {
  if (p.layout.isSmall) {
    uint32_t line = p.columnDivider.quotient(uint32_t(i));
    column = uint32_t(i) - line * p.columnDivider.divisor;
    row = line - p.rowDivider.quotient(line) * p.rowDivider.divisor;
  } else {
    int64_t line = i / p.columns;
    column = i - line * p.columns;
    row = line % p.rows;
  }
}

template <typename T>
__global__ void __launch_bounds__(copyBlock)
    copyTriangles(const __grid_constant__ TriangleParams p) {
  for (int64_t i = firstElement(); i < p.layout.count; i += gridStride()) {
    int64_t row, column, offsets[2];
    positionInMatrix(p, i, row, column);
    p.layout.offsets(i, offsets);
    bool isKept = p.lower ? column <= row + p.diagonal : column >= row + p.diagonal;
    static_cast<T *>(p.to)[offsets[1]] = isKept ? static_cast<const T *>(p.from)[offsets[0]] : T(0);
  }
}

template <typename Params> const void *symbolOf(void (*function)(Params)) {
  return reinterpret_cast<const void *>(function);
}

} // namespace

const void *rondo::cuda::moveKernel(unsigned bytes) {
  return bytes == 1   ? symbolOf(moveElements<uint8_t>)
         : bytes == 2 ? symbolOf(moveElements<uint16_t>)
         : bytes == 4 ? symbolOf(moveElements<uint32_t>)
         : bytes == 8 ? symbolOf(moveElements<uint64_t>)
                      : symbolOf(moveElements<Wide>);
}
const void *rondo::cuda::fillKernel(unsigned bytes) {
  return bytes == 1   ? symbolOf(fillElements<uint8_t>)
         : bytes == 2 ? symbolOf(fillElements<uint16_t>)
         : bytes == 4 ? symbolOf(fillElements<uint32_t>)
         : bytes == 8 ? symbolOf(fillElements<uint64_t>)
                      : symbolOf(fillElements<Wide>);
}
const void *rondo::cuda::rollKernel(unsigned bytes) {
  return bytes == 1   ? symbolOf(rollElements<uint8_t>)
         : bytes == 2 ? symbolOf(rollElements<uint16_t>)
         : bytes == 4 ? symbolOf(rollElements<uint32_t>)
                      : symbolOf(rollElements<uint64_t>);
}
const void *rondo::cuda::triangleKernel(unsigned bytes) {
  return bytes == 1   ? symbolOf(copyTriangles<uint8_t>)
         : bytes == 2 ? symbolOf(copyTriangles<uint16_t>)
         : bytes == 4 ? symbolOf(copyTriangles<uint32_t>)
                      : symbolOf(copyTriangles<uint64_t>);
}
