//===- Loss.cu - Losses and their gradients -------------------------------===//

#include "ExpSum.cuh"
#include "LossDevice.h"
#include "RowSet.cuh"

using namespace rondo::cuda;

namespace {

using P = ClassLossParams;
using Row = RowCursor<P::NumTensors>;

struct AddTotals {
  __device__ LossTotals operator()(LossTotals a, LossTotals b) const {
    return {a.loss + b.loss, a.divisor + b.divisor};
  }
};
__device__ LossTotals addInBlock(LossTotals totals) {
  return combineInBlock(totals, AddTotals());
}

/// The target of one row, and the coefficients of its scores.
template <typename C> struct Target {
  const ClassLossParams &p;
  int64_t index = 0; ///< the class
  bool isIgnored = false, isInRange = true;
  C weight = 1; ///< of the class
  C hard, smooth;

  __device__ Target(const ClassLossParams &p, const Row &row)
      : p(p), hard(C(1 - p.smoothing)), smooth(C(p.smoothing / double(p.set.row.count))) {
    if (p.givesProbabilities)
      return;
    index = loadOfRow<int64_t>(p.set, row, P::Target);
    isIgnored = index == p.ignoreIndex;
    isInRange = index >= 0 && index < p.set.row.count;
    if (p.set.data[P::Weight] && isInRange && !isIgnored)
      weight = loadAt(row, P::Weight);
  }
  __device__ bool counts() const { return isInRange && !isIgnored; }
  /// Is one coefficient at most not 0, that of the class?
  __device__ bool isOneHot() const { return !p.givesProbabilities && p.smoothing == 0; }
  /// What the target adds to the divisor of the mean.
  __device__ double divisor() const {
    return isIgnored ? 0 : isInRange ? double(weight) : notANumber<double>();
  }
  /// Of class `i`, from its probability and weight.
  __device__ C coefficient(int64_t i, C probability, C classWeight) const {
    C wanted = p.givesProbabilities ? probability : C(i == index);
    return (p.set.data[P::Weight] ? classWeight : C(1)) * (hard * wanted + smooth);
  }
  /// The element of tensor `k` for the class.
  __device__ C loadAt(const Row &row, int k) const {
    int64_t offsets[P::NumTensors];
    p.set.row.offsets(index, offsets);
    return loadElement<C>(p.set.types[k], p.set.as[k], p.set.data[k], row.starts[k] + offsets[k]);
  }
};

/// Calls `fn(score, coefficient)` for this thread's classes.
template <typename C, typename Fn>
__device__ void visitCoefficients(const ClassLossParams &p, const Row &row, const Target<C> &target,
                                  Fn fn) {
  if (p.givesProbabilities)
    visitRow<C, P::Scores, P::Target, P::Weight>(p.set, row, [&](int64_t i, const C(&in)[3]) {
      fn(in[0], target.coefficient(i, in[1], in[2]));
    });
  else
    visitRow<C, P::Scores, P::Weight>(p.set, row, [&](int64_t i, const C(&in)[2]) {
      fn(in[0], target.coefficient(i, C(0), in[1]));
    });
}

/// Of the scores of all threads' rows where they are logits.
template <typename C>
__device__ ExpSum<C> expSumOf(const ClassLossParams &p, const Row &row, bool counts) {
  ExpSum<C> sum = ExpSum<C>::none();
  if (!p.takesLogits)
    return sum;
  if (counts)
    visitRow<C, P::Scores>(p.set, row, [&](int64_t, const C(&x)[1]) { sum.see(x[0]); });
  return combineLanes(p.set.lanes, sum, AddExpSums());
}

template <typename C>
__global__ void __launch_bounds__(rowBlock)
    classLossKernel(const __grid_constant__ ClassLossParams p) {
  LossTotals totals{0, 0};
  forEachRow(p.set, [&](const Row &row) {
    Target<C> target(p, row);
    ExpSum<C> sum = expSumOf<C>(p, row, target.counts());
    C max = p.takesLogits ? sum.max : C(0), logTotal = p.takesLogits ? ::log(sum.softmaxSum()) : 0;
    C loss = 0;
    auto add = [&](C score, C coefficient) {
      if (coefficient != 0)
        loss -= coefficient * (score - max - logTotal);
    };
    if (!target.isOneHot()) {
      if (target.counts())
        visitCoefficients(p, row, target, add);
      loss = sumLanes(p.set.lanes, loss);
    } else if (target.counts() && row.lane == 0) {
      add(target.loadAt(row, P::Scores), target.weight);
    }
    if (!row.exists || row.lane != 0)
      return;
    if (!target.isIgnored && !target.isInRange)
      loss = notANumber<C>();
    if (p.reduction == LossReduction::None)
      storeElement<C>(p.set.types[P::Result], p.set.data[P::Result], row.starts[P::Result], loss);
    totals.loss += double(loss);
    totals.divisor += target.divisor();
  });
  totals = addInBlock(totals);
  if (p.totals && threadIdx.x == 0)
    p.totals[blockIdx.x] = totals;
}

/// A thread for each target, which is a class.
__global__ void __launch_bounds__(rowBlock)
    countTargetsKernel(const __grid_constant__ ClassLossParams p) {
  LossTotals totals{0, 0};
  for (int64_t i = int64_t(blockIdx.x) * rowBlock + threadIdx.x; i < p.set.rows.count;
       i += int64_t(gridDim.x) * rowBlock) {
    Row row;
    p.set.rows.offsets(i, row.starts);
    totals.divisor += Target<double>(p, row).divisor();
  }
  totals = addInBlock(totals);
  if (threadIdx.x == 0)
    p.totals[blockIdx.x] = totals;
}

__device__ LossTotals sumTotals(const LossTotals *totals, int count) {
  LossTotals sum{0, 0};
  for (int i = threadIdx.x; i < count; i += rowBlock)
    sum = AddTotals()(sum, totals[i]);
  return addInBlock(sum);
}

__global__ void __launch_bounds__(rowBlock)
    lossFinishKernel(const __grid_constant__ LossFinishParams p) {
  LossTotals totals = sumTotals(p.totals, p.numTotals);
  if (threadIdx.x != 0)
    return;
  if (p.loss)
    storeElement<double>(p.lossType, p.loss, 0,
                         p.isMean ? totals.loss / totals.divisor : totals.loss);
  if (p.divisor)
    storeElement<double>(p.divisorType, p.divisor, 0, totals.divisor);
}

/// What gradients of a mean are divided by.
__device__ double divisorOf(const ClassLossParams &p) {
  if (p.reduction != LossReduction::Mean)
    return 1;
  if (p.totalWeight)
    return loadElement<double>(p.totalWeightType, p.totalWeightType, p.totalWeight, 0);
  return p.givesProbabilities ? double(p.set.rows.count) : sumTotals(p.totals, p.numTotals).divisor;
}

/// Of the loss of log-probabilities -c, of logits softmax * sum(c) - c, times the incoming
/// gradient.
template <typename C>
__global__ void __launch_bounds__(rowBlock)
    classLossBackwardKernel(const __grid_constant__ ClassLossParams p) {
  double divisor = divisorOf(p);
  forEachRow(p.set, [&](const Row &row) {
    Target<C> target(p, row);
    ExpSum<C> sum = expSumOf<C>(p, row, target.counts());
    C incoming = C(loadOfRow<double>(p.set, row, P::Grad) / divisor);
    C all = target.weight; // the sum of the coefficients
    if (!target.isOneHot() && p.takesLogits) {
      C share = 0;
      if (target.counts())
        visitCoefficients(p, row, target, [&](C, C coefficient) { share += coefficient; });
      all = sumLanes(p.set.lanes, share);
    }
    C max = sum.max, scale = p.takesLogits ? all / sum.softmaxSum() : C(0);
    auto gradient = [&](C score, C coefficient) {
      if (!target.counts())
        return C(0);
      C pull = p.takesLogits ? ::exp(score - max) * scale : C(0);
      return incoming * (pull - coefficient);
    };
    if (target.isOneHot())
      mapRow<C, P::Result, P::Scores>(p.set, row, [&](int64_t i, const C(&in)[1]) {
        return gradient(in[0], i == target.index ? target.weight : C(0));
      });
    else if (p.givesProbabilities)
      mapRow<C, P::Result, P::Scores, P::Target, P::Weight>(
          p.set, row, [&](int64_t i, const C(&in)[3]) {
            return gradient(in[0], target.coefficient(i, in[1], in[2]));
          });
    else
      mapRow<C, P::Result, P::Scores, P::Weight>(p.set, row, [&](int64_t i, const C(&in)[2]) {
        return gradient(in[0], target.coefficient(i, C(0), in[1]));
      });
  });
}

template <typename C>
__global__ void __launch_bounds__(rowBlock)
    meanSquaresKernel(const __grid_constant__ MSELossParams p) {
  LossTotals totals{0, 0};
  for (int64_t i = int64_t(blockIdx.x) * rowBlock + threadIdx.x; i < p.layout.count;
       i += int64_t(gridDim.x) * rowBlock) {
    int64_t offsets[MSELossParams::NumTensors];
    p.layout.offsets(i, offsets);
    C x = loadElement<C>(p.xType, p.xType, p.x, offsets[MSELossParams::X]);
    C target = loadElement<C>(p.targetType, p.targetType, p.target, offsets[MSELossParams::Target]);
    C loss = (x - target) * (x - target);
    if (p.loss)
      storeElement<C>(p.lossType, p.loss, offsets[MSELossParams::Loss], loss);
    totals.loss += double(loss);
    totals.divisor += 1;
  }
  if (p.loss)
    return;
  totals = addInBlock(totals);
  if (threadIdx.x == 0)
    p.totals[blockIdx.x] = totals;
}

template <typename C>
__global__ void __launch_bounds__(rowBlock)
    meanSquaresBackwardKernel(const __grid_constant__ MSELossBackwardParams p) {
  using B = MSELossBackwardParams;
  for (int64_t i = int64_t(blockIdx.x) * rowBlock + threadIdx.x; i < p.layout.count;
       i += int64_t(gridDim.x) * rowBlock) {
    int64_t offsets[B::NumTensors];
    p.layout.offsets(i, offsets);
    C values[B::NumTensors - 1];
#pragma unroll
    for (int k = 0; k < B::NumTensors - 1; ++k)
      values[k] = loadElement<C>(p.types[k], p.types[k], p.data[k], offsets[k]);
    storeElement<C>(p.types[B::Result], p.result, offsets[B::Result],
                    C(p.factor) * (values[B::X] - values[B::Target]) * values[B::Grad]);
  }
}

} // namespace

const void *loss::ofClasses(ComputeType type) {
  return type == ComputeType::F64 ? reinterpret_cast<const void *>(&classLossKernel<double>)
                                  : reinterpret_cast<const void *>(&classLossKernel<float>);
}
const void *loss::ofClassesBackward(ComputeType type) {
  return type == ComputeType::F64 ? reinterpret_cast<const void *>(&classLossBackwardKernel<double>)
                                  : reinterpret_cast<const void *>(&classLossBackwardKernel<float>);
}
const void *loss::meanSquares(ComputeType type) {
  return type == ComputeType::F64 ? reinterpret_cast<const void *>(&meanSquaresKernel<double>)
                                  : reinterpret_cast<const void *>(&meanSquaresKernel<float>);
}
const void *loss::meanSquaresBackward(ComputeType type) {
  return type == ComputeType::F64
             ? reinterpret_cast<const void *>(&meanSquaresBackwardKernel<double>)
             : reinterpret_cast<const void *>(&meanSquaresBackwardKernel<float>);
}
const void *loss::countTargets() {
  return reinterpret_cast<const void *>(&countTargetsKernel);
}
const void *loss::finish() {
  return reinterpret_cast<const void *>(&lossFinishKernel);
}
