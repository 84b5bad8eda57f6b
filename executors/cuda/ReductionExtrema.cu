//===- ReductionExtrema.cu - Greatest and least elements ------------------===//
//
// A nan comes before all numbers. Of equal elements the first counts.
//
//===----------------------------------------------------------------------===//

#include "Reduction.cuh"

using namespace rondo::cuda;

namespace {

template <typename C> struct ExtremumBase : ReducerBase<C> {
  /// Does `a` come before `b`?
  __device__ bool isBetter(C a, C b) const {
    if (b != b)
      return false;
    return a != a || (this->options.isGreatest ? a > b : a < b);
  }
  __device__ C initial() const {
    if constexpr (std::is_same_v<C, int64_t>)
      return this->options.initialInteger;
    else
      return C(this->options.initialFloat);
  }
};

template <typename C> struct Extremum : ExtremumBase<C> {
  struct State {
    C value;
  };
  __device__ State none() const { return {this->initial()}; }
  __device__ void see(State &state, C x, int64_t) const {
    if (this->isBetter(x, state.value))
      state.value = x;
  }
  __device__ State combine(State a, State b) const {
    return this->isBetter(b.value, a.value) ? b : a;
  }
  __device__ C result(State state) const { return state.value; }
};

/// The position of the extremum.
template <typename C> struct ArgExtremum : ExtremumBase<C> {
  struct State {
    C value;
    int64_t index; ///< -1 if no element was seen
  };
  __device__ State none() const { return {0, -1}; }
  __device__ void see(State &state, C x, int64_t i) const {
    if (state.index < 0 || this->isBetter(x, state.value))
      state = {x, i};
  }
  __device__ State combine(State a, State b) const {
    if (a.index < 0 || b.index < 0)
      return a.index < 0 ? b : a;
    if (this->isBetter(b.value, a.value))
      return b;
    if (this->isBetter(a.value, b.value))
      return a;
    return a.index < b.index ? a : b;
  }
  __device__ int64_t result(State state) const { return state.index; }
};

template <template <typename> typename Reducer> ReductionKernels select(ComputeType type) {
  return type == ComputeType::I64   ? kernelsOf<Reducer<int64_t>>()
         : type == ComputeType::F64 ? kernelsOf<Reducer<double>>()
                                    : kernelsOf<Reducer<float>>();
}

} // namespace

ReductionKernels reduction::extremum(ComputeType type) {
  return select<Extremum>(type);
}
ReductionKernels reduction::argExtremum(ComputeType type) {
  return select<ArgExtremum>(type);
}
