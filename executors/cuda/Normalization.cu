//===- Normalization.cu - Layer and RMS norm ------------------------------===//

#include "NormalizationDevice.h"
#include "RowSet.cuh"

using namespace rondo::cuda;

namespace {

/// The deviations are squared in a pass of their own: their sum loses nothing to a large mean.
template <typename C>
__global__ void __launch_bounds__(rowBlock) normKernel(const __grid_constant__ NormParams p) {
  using P = NormParams;
  C size = C(p.set.row.count);
  bool hasW = p.set.data[P::W];
  forEachRow(p.set, [&](const RowCursor<P::NumTensors> &row) {
    C mean = 0, squares = 0;
    if (p.isCentred) {
      visitRow<C, P::X>(p.set, row, [&](int64_t, const C(&x)[1]) { mean += x[0]; });
      mean = sumLanes(p.set.lanes, mean) / size;
    }
    visitRow<C, P::X>(p.set, row,
                      [&](int64_t, const C(&x)[1]) { squares += (x[0] - mean) * (x[0] - mean); });
    squares = sumLanes(p.set.lanes, squares);
    C rstd = 1 / ::sqrt(squares / size + C(p.eps));
    mapRow<C, P::Out, P::X, P::W, P::B>(p.set, row, [&](int64_t, const C(&in)[3]) {
      C y = (in[0] - mean) * rstd;
      return (hasW ? y * in[1] : y) + in[2];
    });
    if (!row.exists || row.lane != 0)
      return;
    if (p.isCentred)
      storeElement<C>(p.set.types[P::Mean], p.set.data[P::Mean], row.starts[P::Mean], mean);
    storeElement<C>(p.set.types[P::Rstd], p.set.data[P::Rstd], row.starts[P::Rstd], rstd);
  });
}

template <typename C> struct GradientSums { C sum, dot; };
struct AddGradientSums {
  template <typename C>
  __device__ GradientSums<C> operator()(GradientSums<C> a, GradientSums<C> b) const {
    return {a.sum + b.sum, a.dot + b.dot};
  }
};

/// With y = (x - mean) * rstd and g = grad * w: rstd * (g - mean(g) - y * mean(g * y)), without
/// mean(g) where the mean was not subtracted.
template <typename C>
__global__ void __launch_bounds__(rowBlock)
    normBackwardKernel(const __grid_constant__ NormBackwardParams p) {
  using P = NormBackwardParams;
  C size = C(p.set.row.count);
  bool hasW = p.set.data[P::W];
  forEachRow(p.set, [&](const RowCursor<P::NumTensors> &row) {
    C mean = p.isCentred ? loadOfRow<C>(p.set, row, P::Mean) : C(0);
    C rstd = loadOfRow<C>(p.set, row, P::Rstd);
    GradientSums<C> sums{0, 0};
    visitRow<C, P::Grad, P::X, P::W>(p.set, row, [&](int64_t, const C(&in)[3]) {
      C g = hasW ? in[0] * in[2] : in[0];
      sums.sum += g;
      sums.dot += g * ((in[1] - mean) * rstd);
    });
    sums = combineLanes(p.set.lanes, sums, AddGradientSums());
    C meanSum = p.isCentred ? sums.sum / size : C(0), meanDot = sums.dot / size;
    mapRow<C, P::GradX, P::Grad, P::X, P::W>(p.set, row, [&](int64_t, const C(&in)[3]) {
      C g = hasW ? in[0] * in[2] : in[0];
      return rstd * (g - meanSum - (in[1] - mean) * rstd * meanDot);
    });
  });
}

template <typename C>
__device__ void storeGradients(const NormParameterParams &p, int64_t i, GradientSums<C> sums) {
  int64_t offsets[2];
  p.gradients.offsets(i, offsets);
  if (p.gradW)
    storeElement<C>(p.wType, p.gradW, offsets[0], sums.dot);
  if (p.gradB)
    storeElement<C>(p.bType, p.gradB, offsets[1], sums.sum);
}

/// The sums over the rows begin, begin + step, … of grad * y and grad at one position, which is at
/// `within` in each tensor. `loadAt(k, offset)` gives an element of tensor k.
template <typename C, int N, typename Load>
__device__ GradientSums<C> sumRows(const RowSet<N> &set, const int64_t (&within)[N], int64_t begin,
                                   int64_t end, int step, Load loadAt) {
  using P = NormBackwardParams;
  bool isCentred = set.data[P::Mean];
  GradientSums<C> sums{0, 0};
#pragma unroll 4
  for (int64_t r = begin; r < end; r += step) {
    int64_t starts[N];
    set.rows.offsets(r, starts);
    C grad = loadAt(P::Grad, starts[P::Grad] + within[P::Grad]);
    C x = loadAt(P::X, starts[P::X] + within[P::X]);
    C mean = isCentred ? loadAt(P::Mean, starts[P::Mean]) : C(0);
    sums.sum += grad;
    sums.dot += grad * ((x - mean) * loadAt(P::Rstd, starts[P::Rstd]));
  }
  return sums;
}

/// The sums over a chunk of the rows of grad * y, the gradient of w, and of grad, that of b.
template <typename C>
__global__ void __launch_bounds__(rowBlock)
    normParameterKernel(const __grid_constant__ NormParameterParams p) {
  using P = NormBackwardParams;
  const Lanes lanes{rowBlock / normColumns, /*adjacent=*/false};
  const RowSet<P::NumTensors> &set = p.set;
  int lane = lanes.lane(threadIdx.x);
  int64_t begin = int64_t(blockIdx.y) * p.chunk, end = begin + p.chunk;
  end = end < set.rows.count ? end : set.rows.count;
  for (int64_t first = int64_t(blockIdx.x) * normColumns; first < set.row.count;
       first += int64_t(gridDim.x) * normColumns) {
    int64_t i = first + lanes.row(threadIdx.x), within[P::NumTensors];
    bool exists = i < set.row.count;
    set.row.offsets(exists ? i : first, within);
    GradientSums<C> sums;
    if (p.isPlain)
      dispatchVector<C>(set.types[P::X], [&](auto tag) {
        using T = typename decltype(tag)::Type;
        sums = sumRows<C>(set, within, begin + lane, end, lanes.count, [&](int k, int64_t offset) {
          return k == P::Grad || k == P::X ? convert<C>(static_cast<const T *>(set.data[k])[offset])
                                           : static_cast<const C *>(set.data[k])[offset];
        });
      });
    else
      sums = sumRows<C>(set, within, begin + lane, end, lanes.count, [&](int k, int64_t offset) {
        return loadElement<C>(set.types[k], set.as[k], set.data[k], offset);
      });
    sums = combineLanes(lanes, sums, AddGradientSums());
    if (!exists || lane != 0)
      continue;
    if (!p.partials) {
      storeGradients(p, i, sums);
      continue;
    }
    C *partials = static_cast<C *>(p.partials) + int64_t(blockIdx.y) * 2 * set.row.count;
    partials[i] = sums.sum;
    partials[set.row.count + i] = sums.dot;
  }
}

template <typename C>
__global__ void __launch_bounds__(rowBlock)
    normParameterFinishKernel(const __grid_constant__ NormParameterParams p) {
  const Lanes lanes{rowBlock / normColumns, /*adjacent=*/false};
  int lane = lanes.lane(threadIdx.x);
  int64_t positions = p.set.row.count;
  for (int64_t first = int64_t(blockIdx.x) * normColumns; first < positions;
       first += int64_t(gridDim.x) * normColumns) {
    int64_t i = first + lanes.row(threadIdx.x);
    bool exists = i < positions;
    GradientSums<C> sums{0, 0};
    for (int64_t split = lane; exists && split < p.splits; split += lanes.count) {
      const C *partials = static_cast<const C *>(p.partials) + split * 2 * positions;
      sums.sum += partials[i];
      sums.dot += partials[positions + i];
    }
    sums = combineLanes(lanes, sums, AddGradientSums());
    if (exists && lane == 0)
      storeGradients(p, i, sums);
  }
}

} // namespace

const void *norm::forward(ComputeType type) {
  return type == ComputeType::F64 ? reinterpret_cast<const void *>(&normKernel<double>)
                                  : reinterpret_cast<const void *>(&normKernel<float>);
}
const void *norm::backward(ComputeType type) {
  return type == ComputeType::F64 ? reinterpret_cast<const void *>(&normBackwardKernel<double>)
                                  : reinterpret_cast<const void *>(&normBackwardKernel<float>);
}
const void *norm::parameterGradients(ComputeType type) {
  return type == ComputeType::F64 ? reinterpret_cast<const void *>(&normParameterKernel<double>)
                                  : reinterpret_cast<const void *>(&normParameterKernel<float>);
}
const void *norm::finishParameterGradients(ComputeType type) {
  return type == ComputeType::F64
             ? reinterpret_cast<const void *>(&normParameterFinishKernel<double>)
             : reinterpret_cast<const void *>(&normParameterFinishKernel<float>);
}
