//===- ReductionNorms.cu - Norms, variances and logsumexp -----------------===//

#include "ExpSum.cuh"
#include "Reduction.cuh"

using namespace rondo::cuda;

namespace {

/// From sums over the differences to the first element, so that a mean far from 0 costs no digits.
struct Variance : ReducerBase<double> {
  static constexpr bool needsFirst = true;
  struct State {
    double sum, squares;
  };
  __device__ State none() const { return {0, 0}; }
  __device__ void see(State &state, double x, int64_t) const {
    double difference = x - first;
    state.sum += difference;
    state.squares += difference * difference;
  }
  __device__ State combine(State a, State b) const {
    return {a.sum + b.sum, a.squares + b.squares};
  }
  __device__ double result(State state) const {
    double count = options.count, divisor = count - options.correction;
    double squares = state.squares - state.sum * state.sum / count;
    return (squares < 0 ? 0 : squares) / (divisor > 0 ? divisor : 0);
  }
};

struct Norm : ReducerBase<double> {
  struct State {
    double value;
  };
  __device__ State none() const {
    return {options.norm == NormKind::Least ? infinityOf<double>() : 0};
  }
  __device__ void see(State &state, double x, int64_t) const { state = combine(state, {term(x)}); }
  __device__ State combine(State a, State b) const {
    if (options.norm == NormKind::Greatest)
      return {a.value != a.value || a.value > b.value ? a.value : b.value};
    if (options.norm == NormKind::Least)
      return {a.value != a.value || a.value < b.value ? a.value : b.value};
    return {a.value + b.value};
  }
  __device__ double result(State state) const {
    return options.norm == NormKind::Euclidean ? ::sqrt(state.value)
           : options.norm == NormKind::Power   ? ::pow(state.value, 1 / options.power)
                                               : state.value;
  }

private:
  __device__ double term(double x) const {
    switch (options.norm) {
    case NormKind::NonZeros:
      return x != 0;
    case NormKind::Euclidean:
      return x * x;
    case NormKind::Power:
      return ::pow(::fabs(x), options.power);
    default:
      return ::fabs(x);
    }
  }
};

template <typename C> struct LogSumExp : ReducerBase<C> {
  using State = ExpSum<C>;
  __device__ State none() const { return State::none(); }
  __device__ void see(State &state, C x, int64_t) const { state.see(x); }
  __device__ State combine(State a, State b) const { return AddExpSums()(a, b); }
  __device__ C result(State state) const { return ::log(state.sum) + state.max; }
};

} // namespace

ReductionKernels reduction::var() {
  return kernelsOf<Variance>();
}
ReductionKernels reduction::norm() {
  return kernelsOf<Norm>();
}
ReductionKernels reduction::logSumExp(ComputeType type) {
  return type == ComputeType::F64 ? kernelsOf<LogSumExp<double>>() : kernelsOf<LogSumExp<float>>();
}
