//===- Reduction.cuh - Kernels that make few elements of many ---*- C++ -*-===//
//
// A reducer says what is done with elements:
//
//   struct Reducer {
//     using Number = float;         // what elements are loaded as
//     struct State { ... };         // what is known of the elements seen
//     static constexpr bool needsFirst = false; // is `first` the first element of the result's?
//     ReductionOptions options; Number first;
//     State none() const;
//     void see(State &state, Number x, int64_t i) const;
//     State combine(State a, State b) const; // commutes
//     auto result(State state) const;        // int64_t, float or double
//   };
//
//===----------------------------------------------------------------------===//

#pragma once

#include "ReductionDevice.h"
#include "RowSet.cuh"

namespace rondo::cuda {

/// What reducers have in common.
template <typename C> struct ReducerBase {
  using Number = C;
  static constexpr bool needsFirst = false;
  ReductionOptions options;
  C first;
};

/// Calls `fn(TypeTag<T>())` for the types of isReductionVectorType.
template <typename C, typename Fn>
__device__ decltype(auto) dispatchReduced(ElementType type, Fn &&fn) {
  if constexpr (std::is_same_v<C, int64_t>)
    return type == ElementType::I64   ? fn(TypeTag<int64_t>())
           : type == ElementType::I32 ? fn(TypeTag<int32_t>())
                                      : fn(TypeTag<bool>());
  else if constexpr (std::is_same_v<C, double>)
    return type == ElementType::F64    ? fn(TypeTag<double>())
           : type == ElementType::BF16 ? fn(TypeTag<BFloat16>())
           : type == ElementType::F16  ? fn(TypeTag<Half>())
                                       : fn(TypeTag<float>());
  else
    return type == ElementType::BF16  ? fn(TypeTag<BFloat16>())
           : type == ElementType::F16 ? fn(TypeTag<Half>())
                                      : fn(TypeTag<float>());
}

/// Lane `lane` of the elements begin … end - 1, which are dense and aligned but at the end.
template <typename T, typename Reducer>
__device__ typename Reducer::State reduceVectors(const Reducer &reducer, const T *x, int64_t begin,
                                                 int64_t end, int lane, int lanes) {
  using C = typename Reducer::Number;
  constexpr int V = 16 / sizeof(T), numStates = V < 4 ? V : 4;
  typename Reducer::State states[numStates];
#pragma unroll
  for (auto &state : states)
    state = reducer.none();
  int64_t vectors = (end - begin) / V;
#pragma unroll 2
  for (int64_t v = lane; v < vectors; v += lanes) {
    int64_t i = begin + v * V;
    auto pack = *reinterpret_cast<const Pack<T, V> *>(x + i);
#pragma unroll
    for (int j = 0; j < V; ++j)
      reducer.see(states[j % numStates], convert<C>(pack.values[j]), i + j);
  }
  for (int64_t i = begin + vectors * V + lane; i < end; i += lanes)
    reducer.see(states[0], convert<C>(x[i]), i);
#pragma unroll
  for (int j = 1; j < numStates; ++j)
    states[0] = reducer.combine(states[0], states[j]);
  return states[0];
}

/// The same for any strides. `loadAt(offset)` gives an element.
template <typename Reducer, typename Load>
__device__ typename Reducer::State reduceStrided(const Reducer &reducer, const Layout<1> &reduced,
                                                 Load loadAt, int64_t begin, int64_t end, int lane,
                                                 int lanes) {
  typename Reducer::State state = reducer.none();
  int64_t stride = reduced.strides[0][0];
  if (reduced.rank == 1) {
#pragma unroll 4
    for (int64_t i = begin + lane; i < end; i += lanes)
      reducer.see(state, loadAt(i * stride), i);
    return state;
  }
  for (int64_t i = begin + lane; i < end; i += lanes) {
    int64_t offsets[1];
    reduced.offsets(i, offsets);
    reducer.see(state, loadAt(offsets[0]), i);
  }
  return state;
}

/// What a thread makes of its share of the elements of a result, which start at `base`.
template <typename Reducer>
__device__ typename Reducer::State reduceShare(const ReductionParams &p, const Reducer &reducer,
                                               int64_t base, int lane) {
  using C = typename Reducer::Number;
  int64_t begin = int64_t(blockIdx.y) * p.chunk, end = begin + p.chunk;
  end = end < p.reduced.count ? end : p.reduced.count;
  constexpr ComputeType compute = std::is_same_v<C, int64_t>  ? ComputeType::I64
                                  : std::is_same_v<C, double> ? ComputeType::F64
                                                              : ComputeType::F32;
  if (!isReductionVectorType(compute, p.xType) || p.as != p.xType)
    return reduceStrided(
        reducer, p.reduced,
        [&](int64_t offset) { return loadElement<C>(p.xType, p.as, p.x, base + offset); }, begin,
        end, lane, p.lanes.count);
  return dispatchReduced<C>(p.xType, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T *x = static_cast<const T *>(p.x) + base;
    if (p.isVector)
      return reduceVectors(reducer, x, begin, end, lane, p.lanes.count);
    return reduceStrided(
        reducer, p.reduced, [&](int64_t offset) { return convert<C>(x[offset]); }, begin, end, lane,
        p.lanes.count);
  });
}

template <typename Reducer> __device__ Reducer makeReducer(const ReductionParams &p, int64_t base) {
  using C = typename Reducer::Number;
  Reducer reducer;
  reducer.options = p.options;
  reducer.first = C(0);
  if (Reducer::needsFirst && p.reduced.count > 0)
    reducer.first = loadElement<C>(p.xType, p.as, p.x, base);
  return reducer;
}

template <typename Reducer>
__device__ void storeReduced(const ReductionParams &p, const Reducer &reducer, int64_t out,
                             typename Reducer::State state) {
  auto result = reducer.result(state);
  storeElement<decltype(result)>(p.outType, p.out, out, result);
}

template <typename Reducer>
__global__ void __launch_bounds__(rowBlock)
    reductionKernel(const __grid_constant__ ReductionParams p) {
  using State = typename Reducer::State;
  static_assert(sizeof(State) <= reductionStateBytes);
  int rows = p.lanes.rows(), lane = p.lanes.lane(threadIdx.x);
  for (int64_t first = int64_t(blockIdx.x) * rows; first < p.kept.count;
       first += int64_t(gridDim.x) * rows) {
    int64_t i = first + p.lanes.row(threadIdx.x), offsets[2];
    bool exists = i < p.kept.count;
    p.kept.offsets(exists ? i : first, offsets);
    Reducer reducer = makeReducer<Reducer>(p, offsets[0]);
    State state = exists ? reduceShare(p, reducer, offsets[0], lane) : reducer.none();
    state = combineLanes(p.lanes, state, [&](State a, State b) { return reducer.combine(a, b); });
    if (!exists || lane != 0)
      continue;
    if (p.partials)
      static_cast<State *>(p.partials)[blockIdx.y * p.kept.count + i] = state;
    else
      storeReduced(p, reducer, offsets[1], state);
  }
}

/// Combines the partial states of each result.
template <typename Reducer>
__global__ void __launch_bounds__(rowBlock)
    finishKernel(const __grid_constant__ ReductionParams p) {
  using State = typename Reducer::State;
  const Lanes &lanes = p.finishLanes;
  int rows = lanes.rows(), lane = lanes.lane(threadIdx.x);
  for (int64_t first = int64_t(blockIdx.x) * rows; first < p.kept.count;
       first += int64_t(gridDim.x) * rows) {
    int64_t i = first + lanes.row(threadIdx.x), offsets[2];
    bool exists = i < p.kept.count;
    p.kept.offsets(exists ? i : first, offsets);
    Reducer reducer = makeReducer<Reducer>(p, offsets[0]);
    State state = reducer.none();
    for (int64_t split = lane; exists && split < p.splits; split += lanes.count)
      state =
          reducer.combine(state, static_cast<const State *>(p.partials)[split * p.kept.count + i]);
    state = combineLanes(lanes, state, [&](State a, State b) { return reducer.combine(a, b); });
    if (exists && lane == 0)
      storeReduced(p, reducer, offsets[1], state);
  }
}

template <typename Reducer> ReductionKernels kernelsOf() {
  return {reinterpret_cast<const void *>(&reductionKernel<Reducer>),
          reinterpret_cast<const void *>(&finishKernel<Reducer>)};
}

} // namespace rondo::cuda
