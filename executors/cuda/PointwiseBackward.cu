//===- PointwiseBackward.cu - Gradients of functions of one number --------===//

#include "Pointwise.cuh"

using namespace rondo::cuda;

namespace {

/// Where x is nan the gradient passes, as in PyTorch.
struct ThresholdBackward {
  template <typename T> __device__ T operator()(T grad, T x, T threshold) const {
    return x <= threshold ? T(0) : grad;
  }
};
struct LeakyReluBackward {
  template <typename T> __device__ T operator()(T grad, T x, T slope) const {
    return x > 0 ? grad : slope * grad;
  }
};
struct SiluBackward {
  template <typename T> __device__ T operator()(T grad, T x) const {
    T sigmoid = T(1) / (T(1) + ::exp(-x));
    return grad * (sigmoid * (T(1) + x * (T(1) - sigmoid)));
  }
};
/// Of tanh's result, as is the next.
struct TanhBackward {
  template <typename T> __device__ T operator()(T grad, T out) const {
    return grad * (T(1) - out * out);
  }
};
struct SigmoidBackward {
  template <typename T> __device__ T operator()(T grad, T out) const {
    return grad * out * (T(1) - out);
  }
};

/// Of x * P(X <= x): P(X <= x) + x times the density at x.
struct GeluErfBackward {
  template <typename T> __device__ T operator()(T grad, T x) const {
    T cumulative = T(0.5) * (T(1) + ::erf(x * T(0.70710678118654752440))); // sqrt(1 / 2)
    T density = T(0.39894228040143267794) * ::exp(T(-0.5) * x * x);        // 1 / sqrt(2 pi)
    return grad * (cumulative + x * density);
  }
};
/// Of x / 2 * (1 + tanh(c * (x + k * x^3))).
struct GeluTanhBackward {
  template <typename T> __device__ T operator()(T grad, T x) const {
    T c = T(0.79788456080286535588), k = T(0.044715); // c = sqrt(2 / pi)
    T tanh = ::tanh(c * (x + k * x * x * x));
    T inner = c * (T(1) + T(3) * k * x * x);
    return grad * (T(0.5) * (T(1) + tanh) + T(0.5) * x * (T(1) - tanh * tanh) * inner);
  }
};

} // namespace

PointwiseKernels pointwise::thresholdBackward() {
  return onNumbers<ThresholdBackward, 3>();
}
PointwiseKernels pointwise::leakyReluBackward() {
  return onFloats<LeakyReluBackward, 3>();
}
PointwiseKernels pointwise::siluBackward() {
  return onFloats<SiluBackward, 2>();
}
PointwiseKernels pointwise::tanhBackward() {
  return onFloats<TanhBackward, 2>();
}
PointwiseKernels pointwise::sigmoidBackward() {
  return onFloats<SigmoidBackward, 2>();
}
PointwiseKernels pointwise::geluErfBackward() {
  return onFloats<GeluErfBackward, 2>();
}
PointwiseKernels pointwise::geluTanhBackward() {
  return onFloats<GeluTanhBackward, 2>();
}
