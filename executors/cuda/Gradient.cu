//===- Gradient.cu - Loss scaling and clipping ----------------------------===//
//
// Elements are computed in float, those of f64 in double, and rounded once when they are stored;
// norms are computed in double. Blocks know nothing of each other, and what they add to a norm is
// put together in one order, so that it has the same bits in every run.
//
//===----------------------------------------------------------------------===//

#include "BlockRanges.cuh"
#include "CombineLanes.cuh"
#include "GradientDevice.h"
#include "Pointwise.cuh"

using namespace rondo::cuda;

static_assert(gradientVector == pointwiseVector && gradientChunk % gradientVector == 0);
static_assert(gradientBlock == rowBlock, "norms are combined in a block");
static_assert(sizeof(UnscaleParams) <= 4096 && sizeof(ClipParams) <= 4096 &&
                  sizeof(PartialNormParams) <= 4096,
              "parameters of a kernel");

namespace {

/// Calls `fn(x)` with every element of this block's chunk, and stores what it leaves in x if the
/// group is written.
template <typename C, bool isWritten, typename Fn>
__device__ void forEachElement(const GradientGroup &group, Fn fn) {
  uint32_t gradient = itemOfBlock(group.firstBlock, group.numGradients);
  void *data = group.data[gradient];
  int64_t begin = int64_t(blockIdx.x - group.firstBlock[gradient]) * gradientChunk;
  int64_t left = group.counts[gradient] - begin;
  int64_t count = left < gradientChunk ? left : gradientChunk, scalar = 0;
  if (group.isVector[gradient]) {
    int64_t vectors = count / gradientVector;
    for (int64_t v = threadIdx.x; v < vectors; v += gradientBlock) {
      C x[gradientVector];
      loadVector(group.type, group.type, data, begin + v * gradientVector, x);
#pragma unroll
      for (int j = 0; j < gradientVector; ++j)
        fn(x[j]);
      if constexpr (isWritten)
        storeVector(group.type, data, begin + v * gradientVector, x);
    }
    scalar = vectors * gradientVector; // the rest
  }
  for (int64_t i = scalar + threadIdx.x; i < count; i += gradientBlock) {
    int64_t offsets[1] = {begin + i};
    if (group.layout.rank > 0)
      group.layout.offsets(begin + i, offsets);
    C x = loadElement<C>(group.type, group.type, data, offsets[0]);
    fn(x);
    if constexpr (isWritten)
      storeElement<C>(group.type, data, offsets[0], x);
  }
}

template <typename C>
__global__ void __launch_bounds__(gradientBlock)
    unscaleGradients(const __grid_constant__ UnscaleParams p) {
  C inverse = C(*p.inverse);
  bool areFinite = true;
  forEachElement<C, true>(p.gradients, [&](C &x) {
    areFinite &= bool(isfinite(x));
    x *= inverse;
  });
  if (!areFinite)
    *p.foundInf = 1; // by any thread of any block: all store the same
}

/// As torch.nn.utils.clip_grad_norm_: a nan goes from the norm to all elements.
template <typename C>
__global__ void __launch_bounds__(gradientBlock)
    clipGradients(const __grid_constant__ ClipParams p) {
  double factor = p.maxNorm / (load<double>(p.normType, p.norm, 0) + 1e-6);
  if (factor >= 1)
    return;
  forEachElement<C, true>(p.gradients, [&](C &x) { x *= C(factor); });
}

/// The sum, or the greatest, which is nan if one of them is.
struct CombineNorms {
  bool isGreatest;

  __device__ double operator()(double a, double b) const {
    if (!isGreatest)
      return a + b;
    return a != a || a > b ? a : b;
  }
};

template <typename C>
__global__ void __launch_bounds__(gradientBlock)
    partialNorm(const __grid_constant__ PartialNormParams p) {
  CombineNorms combine{p.isGreatest};
  double norm = 0;
  forEachElement<C, false>(p.gradients, [&](C element) {
    double x = element;
    norm = combine(norm, p.isGreatest ? ::fabs(x) : x * x);
  });
  norm = combineInBlock(norm, combine);
  if (threadIdx.x == 0)
    p.partials[blockIdx.x] = norm;
}

__global__ void __launch_bounds__(gradientBlock)
    globalNorm(const __grid_constant__ GlobalNormParams p) {
  CombineNorms combine{p.isGreatest};
  double norm = 0;
  for (int64_t i = threadIdx.x; i < p.count; i += gradientBlock)
    norm = combine(norm, p.partials[i]);
  norm = combineInBlock(norm, combine);
  if (threadIdx.x == 0)
    store(p.outType, p.out, 0, p.isGreatest ? norm : ::sqrt(norm));
}

/// As PyTorch's GradScaler: a scale that would grow beyond f32 stays as it is.
__global__ void updateScale(const __grid_constant__ UpdateScaleParams p) {
  double scale = *p.scale;
  int32_t successes = *p.tracker + 1;
  if (*p.foundInf != 0) {
    *p.scale = float(scale * p.backoff);
    successes = 0;
  } else if (successes == p.interval) {
    float grown = float(scale * p.growth);
    if (isfinite(grown))
      *p.scale = grown;
    successes = 0;
  }
  *p.tracker = successes;
}

} // namespace

const void *gradient::unscale(bool isF64) {
  return isF64 ? reinterpret_cast<const void *>(&unscaleGradients<double>)
               : reinterpret_cast<const void *>(&unscaleGradients<float>);
}
const void *gradient::clip(bool isF64) {
  return isF64 ? reinterpret_cast<const void *>(&clipGradients<double>)
               : reinterpret_cast<const void *>(&clipGradients<float>);
}
const void *gradient::partialNorm(bool isF64) {
  return isF64 ? reinterpret_cast<const void *>(&::partialNorm<double>)
               : reinterpret_cast<const void *>(&::partialNorm<float>);
}
const void *gradient::globalNorm() {
  return reinterpret_cast<const void *>(&::globalNorm);
}
const void *gradient::updateScale() {
  return reinterpret_cast<const void *>(&::updateScale);
}
