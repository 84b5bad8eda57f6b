//===- Unary.cu - Functions of one number ---------------------------------===//

#include "Pointwise.cuh"

using namespace rondo::cuda;

namespace {

/// Applies `fn` to floats; integers stay as they are.
template <typename T, typename Fn> __device__ T onFraction(T x, Fn fn) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return fn(x);
}

struct Neg {
  template <typename T> __device__ T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return wrapSub(T(0), x);
    else
      return -x;
  }
};
struct Abs {
  template <typename T> __device__ T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x < 0 ? wrapSub(T(0), x) : x;
    else
      return ::fabs(x);
  }
};
struct Sign {
  template <typename T> __device__ T operator()(T x) const { return T((x > 0) - (x < 0)); }
};
struct Floor {
  template <typename T> __device__ T operator()(T x) const {
    return onFraction(x, [](auto y) { return ::floor(y); });
  }
};
struct Ceil {
  template <typename T> __device__ T operator()(T x) const {
    return onFraction(x, [](auto y) { return ::ceil(y); });
  }
};
/// Halves to even.
struct Round {
  template <typename T> __device__ T operator()(T x) const {
    return onFraction(x, [](auto y) { return ::rint(y); });
  }
};
struct Relu {
  template <typename T> __device__ T operator()(T x) const { return x <= 0 ? T(0) : x; }
};
struct LogicalNot {
  __device__ int64_t operator()(int64_t x) const { return x == 0; }
};
struct BitwiseNot {
  __device__ int64_t operator()(int64_t x) const { return ~x; }
};
struct IsNaN {
  template <typename T> __device__ bool operator()(T x) const { return x != x; }
};
struct IsInf {
  template <typename T> __device__ bool operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return false;
    else
      return ::isinf(x);
  }
};

struct Exp {
  template <typename T> __device__ T operator()(T x) const { return ::exp(x); }
};
struct Log {
  template <typename T> __device__ T operator()(T x) const { return ::log(x); }
};
struct Log1p {
  template <typename T> __device__ T operator()(T x) const { return ::log1p(x); }
};
struct Expm1 {
  template <typename T> __device__ T operator()(T x) const { return ::expm1(x); }
};
struct Sqrt {
  template <typename T> __device__ T operator()(T x) const { return ::sqrt(x); }
};
struct Rsqrt {
  template <typename T> __device__ T operator()(T x) const { return T(1) / ::sqrt(x); }
};
struct Reciprocal {
  template <typename T> __device__ T operator()(T x) const { return T(1) / x; }
};
struct Sin {
  template <typename T> __device__ T operator()(T x) const { return ::sin(x); }
};
struct Cos {
  template <typename T> __device__ T operator()(T x) const { return ::cos(x); }
};
struct Tanh {
  template <typename T> __device__ T operator()(T x) const { return ::tanh(x); }
};
struct Sigmoid {
  template <typename T> __device__ T operator()(T x) const { return T(1) / (T(1) + ::exp(-x)); }
};
struct Erf {
  template <typename T> __device__ T operator()(T x) const { return ::erf(x); }
};
struct Silu {
  template <typename T> __device__ T operator()(T x) const { return x / (T(1) + ::exp(-x)); }
};
struct Softplus {
  template <typename T> __device__ T operator()(T x, T beta, T threshold) const {
    return beta * x > threshold ? x : ::log1p(::exp(beta * x)) / beta;
  }
};
struct LeakyRelu {
  template <typename T> __device__ T operator()(T x, T slope) const {
    return x > 0 ? x : slope * x;
  }
};

// x * P(X <= x), exactly by the error function, or by the approximation with tanh of Hendrycks and
// Gimpel, arXiv:1606.08415.
struct GeluTanh {
  template <typename T> __device__ T operator()(T x) const {
    T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x); // sqrt(2 / pi)
    return T(0.5) * x * (T(1) + ::tanh(inner));
  }
};
struct GeluErf {
  template <typename T> __device__ T operator()(T x) const {
    return T(0.5) * x * (T(1) + ::erf(x * T(0.70710678118654752440))); // sqrt(1 / 2)
  }
};

} // namespace

PointwiseKernels pointwise::neg() {
  return onNumbers<Neg, 1>();
}
PointwiseKernels pointwise::abs() {
  return onNumbers<Abs, 1>();
}
PointwiseKernels pointwise::sign() {
  return onNumbers<Sign, 1>();
}
PointwiseKernels pointwise::floor() {
  return onNumbers<Floor, 1>();
}
PointwiseKernels pointwise::ceil() {
  return onNumbers<Ceil, 1>();
}
PointwiseKernels pointwise::round() {
  return onNumbers<Round, 1>();
}
PointwiseKernels pointwise::relu() {
  return onNumbers<Relu, 1>();
}
PointwiseKernels pointwise::logicalNot() {
  return onIntegers<LogicalNot, 1>();
}
PointwiseKernels pointwise::bitwiseNot() {
  return onIntegers<BitwiseNot, 1>();
}
PointwiseKernels pointwise::isnan() {
  return onNumbers<IsNaN, 1>();
}
PointwiseKernels pointwise::isinf() {
  return onNumbers<IsInf, 1>();
}
PointwiseKernels pointwise::exp() {
  return onFloats<Exp, 1>();
}
PointwiseKernels pointwise::log() {
  return onFloats<Log, 1>();
}
PointwiseKernels pointwise::log1p() {
  return onFloats<Log1p, 1>();
}
PointwiseKernels pointwise::expm1() {
  return onFloats<Expm1, 1>();
}
PointwiseKernels pointwise::sqrt() {
  return onFloats<Sqrt, 1>();
}
PointwiseKernels pointwise::rsqrt() {
  return onFloats<Rsqrt, 1>();
}
PointwiseKernels pointwise::reciprocal() {
  return onFloats<Reciprocal, 1>();
}
PointwiseKernels pointwise::sin() {
  return onFloats<Sin, 1>();
}
PointwiseKernels pointwise::cos() {
  return onFloats<Cos, 1>();
}
PointwiseKernels pointwise::tanh() {
  return onFloats<Tanh, 1>();
}
PointwiseKernels pointwise::sigmoid() {
  return onFloats<Sigmoid, 1>();
}
PointwiseKernels pointwise::erf() {
  return onFloats<Erf, 1>();
}
PointwiseKernels pointwise::silu() {
  return onFloats<Silu, 1>();
}
PointwiseKernels pointwise::softplus() {
  return onFloats<Softplus, 3>();
}
PointwiseKernels pointwise::leakyRelu() {
  return onFloats<LeakyRelu, 2>();
}
PointwiseKernels pointwise::geluTanh() {
  return onFloats<GeluTanh, 1>();
}
PointwiseKernels pointwise::geluErf() {
  return onFloats<GeluErf, 1>();
}
