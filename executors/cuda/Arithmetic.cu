//===- Arithmetic.cu - Functions of two and more numbers ------------------===//

#include "Pointwise.cuh"

using namespace rondo::cuda;

namespace {

template <typename T> __device__ bool isNaN(T value) {
  return value != value;
}

struct Add {
  template <typename T> __device__ T operator()(T a, T b, T alpha) const {
    return wrapAdd(a, wrapMul(alpha, b));
  }
};
struct Sub {
  template <typename T> __device__ T operator()(T a, T b, T alpha) const {
    return wrapSub(a, wrapMul(alpha, b));
  }
};
struct Rsub {
  template <typename T> __device__ T operator()(T a, T b, T alpha) const {
    return wrapSub(b, wrapMul(alpha, a));
  }
};
struct Mul {
  template <typename T> __device__ T operator()(T a, T b) const { return wrapMul(a, b); }
};
struct Div {
  template <typename T> __device__ T operator()(T a, T b) const { return a / b; }
};

struct Pow {
  template <typename T> __device__ T operator()(T base, T exponent) const {
    return ::pow(base, exponent);
  }
  /// By repeated squaring, modulo 2^64; a negative power is the integer part of the real one, 0 for
  /// a base of 0.
  __device__ int64_t operator()(int64_t base, int64_t exponent) const {
    if (exponent < 0)
      return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
    uint64_t result = 1, square = uint64_t(base);
    for (uint64_t rest = uint64_t(exponent); rest != 0; rest >>= 1) {
      if (rest & 1)
        result *= square;
      square *= square;
    }
    return int64_t(result);
  }
};

/// With the sign of b, as Python's %. 0 for integers where b is 0.
struct Remainder {
  template <typename T> __device__ T operator()(T a, T b) const {
    T result = ::fmod(a, b);
    return result != 0 && (result < 0) != (b < 0) ? result + b : result;
  }
  __device__ int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0 || b == -1) // the least integer over -1 would overflow
      return 0;
    int64_t result = a % b;
    return result != 0 && (result < 0) != (b < 0) ? result + b : result;
  }
};
struct Atan2 {
  template <typename T> __device__ T operator()(T a, T b) const { return ::atan2(a, b); }
};

/// nan if either is, as PyTorch's.
struct Maximum {
  template <typename T> __device__ T operator()(T a, T b) const {
    return isNaN(a) || a > b ? a : b;
  }
};
struct Minimum {
  template <typename T> __device__ T operator()(T a, T b) const {
    return isNaN(a) || a < b ? a : b;
  }
};

struct Equal {
  template <typename T> __device__ bool operator()(T a, T b) const { return a == b; }
};
struct NotEqual {
  template <typename T> __device__ bool operator()(T a, T b) const { return a != b; }
};
struct Less {
  template <typename T> __device__ bool operator()(T a, T b) const { return a < b; }
};
struct LessEqual {
  template <typename T> __device__ bool operator()(T a, T b) const { return a <= b; }
};
struct Greater {
  template <typename T> __device__ bool operator()(T a, T b) const { return a > b; }
};
struct GreaterEqual {
  template <typename T> __device__ bool operator()(T a, T b) const { return a >= b; }
};

struct And {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return a & b; }
};
struct Or {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return a | b; }
};
struct Xor {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return a ^ b; }
};

struct Where {
  template <typename T> __device__ T operator()(T condition, T a, T b) const {
    return condition != 0 ? a : b;
  }
};
struct MaskedFill {
  template <typename T> __device__ T operator()(T x, T mask, T value) const {
    return mask != 0 ? value : x;
  }
};
struct Addcmul {
  template <typename T> __device__ T operator()(T x, T a, T b, T value) const {
    return wrapAdd(x, wrapMul(wrapMul(value, a), b));
  }
};
struct Addcdiv {
  template <typename T> __device__ T operator()(T x, T a, T b, T value) const {
    return x + value * a / b;
  }
};
/// From the nearer end, so that a weight of 1 gives exactly b.
struct Lerp {
  template <typename T> __device__ T operator()(T a, T b, T weight) const {
    return weight < T(0.5) ? a + weight * (b - a) : b - (b - a) * (T(1) - weight);
  }
};
/// A nan as a number or a bound gives nan.
struct Clamp {
  template <typename T> __device__ T operator()(T x, T min, T max) const {
    return Minimum()(Maximum()(x, min), max);
  }
};
struct Copy {
  template <typename T> __device__ T operator()(T x) const { return x; }
};
struct Accumulate {
  template <typename T> __device__ T operator()(T x, T src, T first) const {
    return first != 0 ? src : wrapAdd(x, src);
  }
};

} // namespace

PointwiseKernels pointwise::add() {
  return onNumbers<Add, 3>();
}
PointwiseKernels pointwise::sub() {
  return onNumbers<Sub, 3>();
}
PointwiseKernels pointwise::rsub() {
  return onNumbers<Rsub, 3>();
}
PointwiseKernels pointwise::mul() {
  return onNumbers<Mul, 2>();
}
PointwiseKernels pointwise::div() {
  return onFloats<Div, 2>();
}
PointwiseKernels pointwise::pow() {
  return onNumbers<Pow, 2>();
}
PointwiseKernels pointwise::remainder() {
  return onNumbers<Remainder, 2>();
}
PointwiseKernels pointwise::atan2() {
  return onFloats<Atan2, 2>();
}
PointwiseKernels pointwise::maximum() {
  return onNumbers<Maximum, 2>();
}
PointwiseKernels pointwise::minimum() {
  return onNumbers<Minimum, 2>();
}
PointwiseKernels pointwise::eq() {
  return onNumbers<Equal, 2>();
}
PointwiseKernels pointwise::ne() {
  return onNumbers<NotEqual, 2>();
}
PointwiseKernels pointwise::lt() {
  return onNumbers<Less, 2>();
}
PointwiseKernels pointwise::le() {
  return onNumbers<LessEqual, 2>();
}
PointwiseKernels pointwise::gt() {
  return onNumbers<Greater, 2>();
}
PointwiseKernels pointwise::ge() {
  return onNumbers<GreaterEqual, 2>();
}
PointwiseKernels pointwise::bitAnd() {
  return onIntegers<And, 2>();
}
PointwiseKernels pointwise::bitOr() {
  return onIntegers<Or, 2>();
}
PointwiseKernels pointwise::bitXor() {
  return onIntegers<Xor, 2>();
}
PointwiseKernels pointwise::where() {
  return onNumbers<Where, 3>();
}
PointwiseKernels pointwise::maskedFill() {
  return onNumbers<MaskedFill, 3>();
}
PointwiseKernels pointwise::addcmul() {
  return onNumbers<Addcmul, 4>();
}
PointwiseKernels pointwise::addcdiv() {
  return onFloats<Addcdiv, 4>();
}
PointwiseKernels pointwise::lerp() {
  return onFloats<Lerp, 3>();
}
PointwiseKernels pointwise::clamp() {
  return onNumbers<Clamp, 3>();
}
PointwiseKernels pointwise::clampMin() {
  return onNumbers<Maximum, 2>();
}
PointwiseKernels pointwise::clampMax() {
  return onNumbers<Minimum, 2>();
}
PointwiseKernels pointwise::copy() {
  return onNumbers<Copy, 1>();
}
PointwiseKernels pointwise::accumulate() {
  return onNumbers<Accumulate, 3>();
}
