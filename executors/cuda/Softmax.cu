//===- Softmax.cu - Softmax and its gradients -----------------------------===//

#include "ExpSum.cuh"
#include "RowSet.cuh"
#include "SoftmaxDevice.h"

using namespace rondo::cuda;

namespace {

template <typename C>
__global__ void __launch_bounds__(rowBlock) softmaxKernel(const __grid_constant__ SoftmaxParams p) {
  forEachRow(p.set, [&](const RowCursor<2> &row) {
    ExpSum<C> sum = ExpSum<C>::none();
    visitRow<C, 0>(p.set, row, [&](int64_t, const C(&x)[1]) { sum.see(x[0]); });
    sum = combineLanes(p.set.lanes, sum, AddExpSums());
    C total = sum.softmaxSum();
    if (p.isLog) {
      C logTotal = ::log(total);
      mapRow<C, 1, 0>(p.set, row,
                      [&](int64_t, const C(&x)[1]) { return x[0] - sum.max - logTotal; });
    } else {
      bool isZero = p.isSafe && sum.isAllMinusInfinity();
      mapRow<C, 1, 0>(p.set, row, [&](int64_t, const C(&x)[1]) {
        return isZero ? C(0) : ::exp(x[0] - sum.max) / total;
      });
    }
  });
}

/// Of softmax: out * (grad - sum(grad * out)). Of log_softmax: grad - exp(out) * sum(grad).
template <typename C>
__global__ void __launch_bounds__(rowBlock)
    softmaxBackwardKernel(const __grid_constant__ SoftmaxBackwardParams p) {
  forEachRow(p.set, [&](const RowCursor<3> &row) {
    C sum = 0;
    if (p.isLog)
      visitRow<C, 0>(p.set, row, [&](int64_t, const C(&grad)[1]) { sum += grad[0]; });
    else
      visitRow<C, 0, 1>(p.set, row, [&](int64_t, const C(&in)[2]) { sum += in[0] * in[1]; });
    sum = sumLanes(p.set.lanes, sum);
    mapRow<C, 2, 0, 1>(p.set, row, [&](int64_t, const C(&in)[2]) {
      return p.isLog ? in[0] - ::exp(in[1]) * sum : in[1] * (in[0] - sum);
    });
  });
}

} // namespace

const void *softmax::forward(ComputeType type) {
  return type == ComputeType::F64 ? reinterpret_cast<const void *>(&softmaxKernel<double>)
                                  : reinterpret_cast<const void *>(&softmaxKernel<float>);
}
const void *softmax::backward(ComputeType type) {
  return type == ComputeType::F64 ? reinterpret_cast<const void *>(&softmaxBackwardKernel<double>)
                                  : reinterpret_cast<const void *>(&softmaxBackwardKernel<float>);
}
