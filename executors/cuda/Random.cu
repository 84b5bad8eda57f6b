//===- Random.cu - Random numbers -----------------------------------------===//
//
// Numbers come from their position (rondo/executors/Philox.h). A thread draws those of one block of
// Philox, of which the first and last block of an op may have fewer.
//
//===----------------------------------------------------------------------===//

#include "Pointwise.cuh"
#include "RandomDevice.h"

#include "rondo/executors/Philox.h"

using namespace rondo;
using namespace rondo::cuda;

namespace {

//===----------------------------------------------------------------------===//
// Distributions
//===----------------------------------------------------------------------===//

// What element i is, given its word and its position: `draw` gives a number of the type that the
// kernel computes with, as the result's dtype holds it. Of one with `usesOperand` also given x.

/// Scaled in double and rounded once; a number that is rounded up to `high` becomes `low`.
struct Uniform {
  static constexpr bool usesOperand = false, hasMask = false;
  template <typename C>
  static __device__ C draw(const DrawParams &p, uint64_t, uint64_t, uint32_t word, C) {
    double u = philox::uniform(word, p.bits);
    // Not contracted: the host rounds twice.
    double value = roundElement(p.outType, __dadd_rn(p.a, __dmul_rn(u, p.b - p.a)));
    return C(value < p.b ? value : roundElement(p.outType, p.a));
  }
};

struct Normal {
  static constexpr bool usesOperand = false, hasMask = false;
  template <typename C>
  static __device__ C draw(const DrawParams &p, uint64_t seed, uint64_t n, uint32_t, C) {
    double value = __dadd_rn(p.a, __dmul_rn(p.b, philox::normal(seed, n)));
    return C(roundElement(p.outType, value));
  }
};

struct Integer {
  static constexpr bool usesOperand = false, hasMask = false;
  template <typename C>
  static __device__ C draw(const DrawParams &p, uint64_t seed, uint64_t n, uint32_t, C) {
    return philox::integer(seed, n, p.low, p.count);
  }
};

struct Bernoulli {
  static constexpr bool usesOperand = true, hasMask = false;
  template <typename C>
  static __device__ C draw(const DrawParams &, uint64_t, uint64_t, uint32_t word, C x) {
    return C(philox::happens(word, philox::threshold(double(x))));
  }
};

struct Dropout {
  static constexpr bool usesOperand = true, hasMask = true;
  static __device__ bool isKept(const DrawParams &p, uint32_t word) {
    return !philox::happens(word, p.threshold);
  }
  template <typename C>
  static __device__ C draw(const DrawParams &p, uint64_t, uint64_t, uint32_t word, C x) {
    return isKept(p, word) ? x * C(p.a) : C(0);
  }
};

template <typename C, typename Distribution>
__global__ void __launch_bounds__(randomBlock) drawKernel(const __grid_constant__ DrawParams p) {
  uint64_t seed = p.state->seed, base = p.state->offset + p.offset;
  int64_t before = int64_t(base & 3), count = p.layout.count; // numbers of the block before ours
  bool isDense = p.isDense && before == 0;
  int64_t vectors = (count + before + drawVector - 1) / drawVector;
  int64_t threads = int64_t(gridDim.x) * randomBlock;
  for (int64_t v = int64_t(blockIdx.x) * randomBlock + threadIdx.x; v < vectors; v += threads) {
    int64_t first = v * drawVector - before;
    uint64_t position = base + uint64_t(first);
    philox::Block block = philox::blockOf(seed, position);
    if (isDense && first + drawVector <= count) {
      C x[drawVector] = {}, out[drawVector];
      if constexpr (Distribution::usesOperand)
        loadVector(p.inType, p.inType, p.in, first, x);
#pragma unroll
      for (int j = 0; j < drawVector; ++j)
        out[j] = Distribution::draw(p, seed, position + j, block.words[j], x[j]);
      storeVector(p.outType, p.out, first, out);
      if constexpr (Distribution::hasMask) {
        Pack<bool, drawVector> mask;
#pragma unroll
        for (int j = 0; j < drawVector; ++j)
          mask.values[j] = Distribution::isKept(p, block.words[j]);
        static_cast<Pack<bool, drawVector> *>(p.mask)[v] = mask;
      }
      continue;
    }
#pragma unroll
    for (int j = 0; j < drawVector; ++j) {
      int64_t i = first + j, at[3];
      if (i < 0 || i >= count)
        continue;
      p.layout.offsets(i, at);
      C x = 0;
      if constexpr (Distribution::usesOperand)
        x = loadElement<C>(p.inType, p.inType, p.in, at[1]);
      storeElement<C>(p.outType, p.out, at[0],
                      Distribution::draw(p, seed, position + j, block.words[j], x));
      if constexpr (Distribution::hasMask)
        storeElement<C>(p.maskType, p.mask, at[2], C(Distribution::isKept(p, block.words[j])));
    }
  }
}

template <typename Params> const void *symbol(void (*kernel)(Params)) {
  return reinterpret_cast<const void *>(kernel);
}
template <typename Distribution> PointwiseKernels drawsFloats() {
  return {nullptr, symbol(drawKernel<float, Distribution>),
          symbol(drawKernel<double, Distribution>)};
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// What a category that was taken has for its weight.
constexpr double taken = -1;

__device__ double weightOf(double weight) {
  return weight > 0 ? weight : 0;
}

/// The first category at which the running sum of the weights exceeds `u` of their total. With no
/// weight left, the first that is not taken. `sums` are the running sums before each thread's
/// categories, `share` of them each, and the total.
__device__ int64_t choose(const double *weights, int64_t categories, int64_t share,
                          const double *sums, double u) {
  double total = sums[choiceBlock], bound = u * total;
  int64_t first = 0, end = categories;
  if (total > 0) {
    int low = 0, high = choiceBlock - 1; // the first part whose end exceeds the bound, or the last
    while (low < high) {
      int middle = (low + high) / 2;
      if (sums[middle + 1] > bound)
        high = middle;
      else
        low = middle + 1;
    }
    while (low > 0 && !(sums[low + 1] > sums[low])) // u * total was rounded up
      --low;
    first = low * share;
    end = first + share < categories ? first + share : categories;
    double running = sums[low];
    int64_t last = first;
    for (int64_t k = first; k < end; ++k) {
      if (!(weights[k] > 0))
        continue;
      last = k;
      running += weights[k];
      if (running > bound)
        break;
    }
    return last;
  }
  while (first + 1 < end && weights[first] == taken)
    ++first;
  return first;
}

/// Draw j of row r is number r * draws + j. Without replacement a category that was drawn loses
/// its weight.
__global__ void __launch_bounds__(choiceBlock)
    chooseKernel(const __grid_constant__ ChoiceParams p) {
  __shared__ double parts[choiceBlock], sums[choiceBlock + 1];
  __shared__ int64_t chosen;
  uint64_t seed = p.state->seed, base = p.state->offset + p.offset;
  int64_t share = (p.categories + choiceBlock - 1) / choiceBlock;
  int64_t first = threadIdx.x * share;
  int64_t end = first + share < p.categories ? first + share : p.categories;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    double *weights = p.copy + row * p.categories;
    for (int64_t k = threadIdx.x; k < p.categories; k += choiceBlock) {
      double weight =
          load<double>(p.type, p.weights, row * p.weightStrides[0] + k * p.weightStrides[1]);
      weights[k] = isfinite(weight) && weight > 0 ? weight : 0;
    }
    __syncthreads();
    auto sumPart = [&] {
      double sum = 0;
      for (int64_t k = first; k < end; ++k)
        sum += weightOf(weights[k]);
      parts[threadIdx.x] = sum;
    };
    auto sumParts = [&] {
      if (threadIdx.x != 0)
        return;
      double sum = 0;
      for (int t = 0; t < choiceBlock; ++t) {
        sums[t] = sum;
        sum += parts[t];
      }
      sums[choiceBlock] = sum;
    };
    auto drawAt = [&](int64_t j) {
      double u = philox::uniform(philox::word(seed, base + uint64_t(row * p.draws + j)), 32);
      int64_t k = choose(weights, p.categories, share, sums, u);
      p.out[row * p.outStrides[0] + j * p.outStrides[1]] = k;
      return k;
    };
    sumPart();
    __syncthreads();
    sumParts();
    __syncthreads();
    if (p.isReplacing) {
      for (int64_t j = threadIdx.x; j < p.draws; j += choiceBlock)
        drawAt(j);
    } else {
      for (int64_t j = 0; j < p.draws; ++j) {
        if (threadIdx.x == 0) {
          chosen = drawAt(j);
          weights[chosen] = taken;
        }
        __syncthreads();
        if (chosen >= first && chosen < end)
          sumPart();
        __syncthreads();
        sumParts();
      }
    }
    __syncthreads(); // `sums` are used again
  }
}

//===----------------------------------------------------------------------===//
// Generators, gradients
//===----------------------------------------------------------------------===//

__global__ void generatorKernel(const __grid_constant__ GeneratorParams p) {
  if (p.isSeed)
    *p.state = {p.seed, 0};
  else
    p.state->offset += p.count;
}

struct DropoutBackward {
  template <typename T> __device__ T operator()(T grad, T mask, T scale) const {
    return grad * mask * scale;
  }
};

} // namespace

PointwiseKernels drawing::uniform() {
  return drawsFloats<Uniform>();
}
PointwiseKernels drawing::normal() {
  return drawsFloats<Normal>();
}
PointwiseKernels drawing::integer() {
  const void *kernel = symbol(drawKernel<int64_t, Integer>);
  return {kernel, kernel, kernel};
}
PointwiseKernels drawing::bernoulli() {
  return drawsFloats<Bernoulli>();
}
PointwiseKernels drawing::dropout() {
  return drawsFloats<Dropout>();
}
const void *drawing::choose() {
  return symbol(chooseKernel);
}
const void *drawing::setGenerator() {
  return symbol(generatorKernel);
}
PointwiseKernels pointwise::dropoutBackward() {
  return onFloats<DropoutBackward, 3>();
}
