//===- ReductionSums.cu - Sums and products -------------------------------===//

#include "Reduction.cuh"

using namespace rondo::cuda;

namespace {

/// Or the mean.
template <typename C> struct Sum : ReducerBase<C> {
  struct State {
    C total;
  };
  __device__ State none() const { return {0}; }
  __device__ void see(State &state, C x, int64_t) const { state.total = wrapAdd(state.total, x); }
  __device__ State combine(State a, State b) const { return {wrapAdd(a.total, b.total)}; }
  __device__ C result(State state) const {
    if (!this->options.isMean)
      return state.total;
    return C(double(state.total) / double(this->options.count));
  }
};

template <typename C> struct Product : ReducerBase<C> {
  struct State {
    C product;
  };
  __device__ State none() const { return {1}; }
  __device__ void see(State &state, C x, int64_t) const {
    state.product = wrapMul(state.product, x);
  }
  __device__ State combine(State a, State b) const { return {wrapMul(a.product, b.product)}; }
  __device__ C result(State state) const { return state.product; }
};

} // namespace

ReductionKernels reduction::sum(ComputeType type) {
  return type == ComputeType::I64   ? kernelsOf<Sum<int64_t>>()
         : type == ComputeType::F64 ? kernelsOf<Sum<double>>()
                                    : kernelsOf<Sum<float>>();
}
ReductionKernels reduction::prod(ComputeType type) {
  return type == ComputeType::I64 ? kernelsOf<Product<int64_t>>() : kernelsOf<Product<double>>();
}
