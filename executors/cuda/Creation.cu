//===- Creation.cu - Tensors made from numbers ----------------------------===//

#include "CreationDevice.h"

using namespace rondo::cuda;

namespace {

__device__ int64_t elementAt(int64_t i, int64_t start, int64_t step) {
  return wrapAdd(start, wrapMul(i, step));
}
/// Rounded after the product, too, so that truncated numbers are the host's.
__device__ double elementAt(int64_t i, double start, double step) {
  return __dadd_rn(start, __dmul_rn(double(i), step));
}

template <typename C>
__global__ void __launch_bounds__(creationBlock) arange(const __grid_constant__ ArangeParams<C> p) {
  int64_t first = int64_t(blockIdx.x) * creationBlock + threadIdx.x;
  for (int64_t i = first; i < p.count; i += int64_t(gridDim.x) * creationBlock)
    store<C>(p.type, p.out, i * p.stride, elementAt(i, p.start, p.step));
}

__global__ void __launch_bounds__(creationBlock) eye(const __grid_constant__ EyeParams p) {
  int64_t first = int64_t(blockIdx.x) * creationBlock + threadIdx.x;
  for (int64_t i = first; i < p.rows * p.columns; i += int64_t(gridDim.x) * creationBlock) {
    int64_t row = i / p.columns, column = i - row * p.columns;
    store<int64_t>(p.type, p.out, row * p.rowStride + column * p.columnStride, row == column);
  }
}

} // namespace

template <typename C> const void *rondo::cuda::arangeKernel() {
  return reinterpret_cast<const void *>(&arange<C>);
}
template const void *rondo::cuda::arangeKernel<int64_t>();
template const void *rondo::cuda::arangeKernel<double>();

const void *rondo::cuda::eyeKernel() {
  return reinterpret_cast<const void *>(&eye);
}
