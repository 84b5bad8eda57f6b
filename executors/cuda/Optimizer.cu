//===- Optimizer.cu - Parameter updates in place --------------------------===//
//
// A block computes in double what is common to all elements, and rounds it once to what elements
// are computed in.
//
//===----------------------------------------------------------------------===//

#include "OptimizerDevice.h"
#include "Pointwise.cuh"

using namespace rondo::cuda;

static_assert(optimizerVector == pointwiseVector);

namespace {

__device__ double read(const DeviceNumber &number) {
  if (number.address)
    return load<double>(number.type, number.address, 0);
  return number.type == ElementType::F64 ? numberOf<double>(number.bits)
                                         : double(int64_t(number.bits));
}

/// d = grad + weight_decay * param; param -= lr * d.
template <typename C> struct SGD {
  C rate, decay;

  __device__ void prepare(const SGDNumbers &numbers) {
    rate = C(read(numbers.lr));
    decay = C(numbers.decay);
  }
  __device__ void update(C (&x)[2]) const { x[0] -= rate * (x[1] + decay * x[0]); }
};

/// buffer = momentum * buffer + (1 - dampening) * d, and d becomes the buffer or, with nesterov, d
/// + momentum * buffer.
template <typename C> struct Momentum {
  C rate, decay, momentum, part;
  bool nesterov;

  __device__ void prepare(const SGDNumbers &numbers) {
    rate = C(read(numbers.lr));
    decay = C(numbers.decay);
    momentum = C(numbers.momentum);
    part = C(1 - numbers.dampening);
    nesterov = numbers.nesterov;
  }
  __device__ void update(C (&x)[3]) const {
    C step = x[1] + decay * x[0];
    x[2] = momentum * x[2] + part * step;
    x[0] -= rate * (nesterov ? step + momentum * x[2] : x[2]);
  }
};

/// Kingma and Ba, "Adam", 2015; decoupled: Loshchilov and Hutter, "Decoupled Weight Decay
/// Regularization", 2019. eps is added to the root of the corrected second moment.
template <typename C> struct Adam {
  C rate, shrink, decay, beta1, rest1, beta2, rest2, correction1, correction2, eps;

  __device__ void prepare(const AdamNumbers &numbers) {
    double lr = read(numbers.lr), step = read(numbers.step);
    rate = C(lr);
    shrink = C(numbers.decoupled ? 1 - lr * numbers.decay : 1);
    decay = C(numbers.decoupled ? 0 : numbers.decay);
    beta1 = C(numbers.beta1);
    rest1 = C(1 - numbers.beta1);
    beta2 = C(numbers.beta2);
    rest2 = C(1 - numbers.beta2);
    correction1 = C(1 - ::pow(numbers.beta1, step));
    correction2 = C(1 - ::pow(numbers.beta2, step));
    eps = C(numbers.eps);
  }
  __device__ void update(C (&x)[4]) const {
    C grad = x[1];
    if (decay != 0)
      grad += decay * x[0];
    x[2] = beta1 * x[2] + rest1 * grad;
    x[3] = beta2 * x[3] + rest2 * grad * grad;
    x[0] = shrink * x[0] - rate * (x[2] / correction1) / (::sqrt(x[3] / correction2) + eps);
  }
};

template <typename C, typename Update, int N, typename Numbers>
__global__ void __launch_bounds__(optimizerBlock)
    updateElements(const __grid_constant__ UpdateParams<N, Numbers> p) {
  if (p.numbers.foundInf && *p.numbers.foundInf != 0)
    return;
  __shared__ Update prepared;
  if (threadIdx.x == 0)
    prepared.prepare(p.numbers);
  __syncthreads();
  const Update update = prepared;
  int64_t thread = int64_t(blockIdx.x) * optimizerBlock + threadIdx.x;
  int64_t threads = int64_t(gridDim.x) * optimizerBlock, count = p.layout.count, scalar = 0;
  if (p.isDense) {
    int64_t vectors = count / optimizerVector;
    for (int64_t v = thread; v < vectors; v += threads) {
      C in[N][optimizerVector];
#pragma unroll
      for (int k = 0; k < N; ++k)
        loadVector(p.types[k], p.types[k], p.tensors[k], v * optimizerVector, in[k]);
#pragma unroll
      for (int j = 0; j < optimizerVector; ++j) {
        C x[N];
#pragma unroll
        for (int k = 0; k < N; ++k)
          x[k] = in[k][j];
        update.update(x);
#pragma unroll
        for (int k = 0; k < N; ++k)
          in[k][j] = x[k];
      }
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (k != 1)
          storeVector(p.types[k], p.tensors[k], v * optimizerVector, in[k]);
    }
    scalar = vectors * optimizerVector; // the rest
  }
  for (int64_t i = scalar + thread; i < count; i += threads) {
    int64_t offsets[N];
    p.layout.offsets(i, offsets);
    C x[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      x[k] = loadElement<C>(p.types[k], p.types[k], p.tensors[k], offsets[k]);
    update.update(x);
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (k != 1)
        storeElement<C>(p.types[k], p.tensors[k], offsets[k], x[k]);
  }
}

template <template <typename> typename Update, int N, typename Numbers>
const void *symbolFor(bool inDouble) {
  return inDouble
             ? reinterpret_cast<const void *>(&updateElements<double, Update<double>, N, Numbers>)
             : reinterpret_cast<const void *>(&updateElements<float, Update<float>, N, Numbers>);
}

} // namespace

const void *rondo::cuda::updateKernel(const SGDParams &, bool inDouble) {
  return symbolFor<SGD, 2, SGDNumbers>(inDouble);
}
const void *rondo::cuda::updateKernel(const MomentumParams &, bool inDouble) {
  return symbolFor<Momentum, 3, SGDNumbers>(inDouble);
}
const void *rondo::cuda::updateKernel(const AdamParams &, bool inDouble) {
  return symbolFor<Adam, 4, AdamNumbers>(inDouble);
}
