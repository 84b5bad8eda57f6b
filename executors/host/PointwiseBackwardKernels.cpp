//===- PointwiseBackwardKernels.cpp - Gradients of pointwise ops ----------===//

#include "Pointwise.h"

#include <cmath>

using namespace rondo;
using namespace rondo::host;

/// Derivative of x * P(X <= x): P(X <= x) + x times the density at x.
template <typename T> static T geluDerivative(T x) {
  T cumulative = T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))); // sqrt(1 / 2)
  T density = T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);        // 1 / sqrt(2 pi)
  return cumulative + x * density;
}

/// Derivative of x / 2 * (1 + tanh(c * (x + k * x^3))).
template <typename T> static T geluTanhDerivative(T x) {
  T c = T(0.79788456080286535588), k = T(0.044715); // c = sqrt(2 / pi)
  T tanh = std::tanh(c * (x + k * x * x * x));
  T inner = c * (T(1) + T(3) * k * x * x);
  return T(0.5) * (T(1) + tanh) + T(0.5) * x * (T(1) - tanh * tanh) * inner;
}

template <typename T> static T siluDerivative(T x) {
  T sigmoid = T(1) / (T(1) + std::exp(-x));
  return sigmoid * (T(1) + x * (T(1) - sigmoid));
}

static llvm::Expected<HostKernelFn> makeGeluBackward(const OpContext &op) {
  PointwiseSpec spec{.op = "gelu_backward"};
  if (op.stringAttribute("approximate") == "tanh")
    spec.rows = onFloats<2>([](auto grad, auto x) { return grad * geluTanhDerivative(x); });
  else
    spec.rows = onFloats<2>([](auto grad, auto x) { return grad * geluDerivative(x); });
  return makePointwise(op, spec);
}

void host::addPointwiseBackwardKernels(HostExecutor &executor) {
  // Where x is nan the gradient passes, as in PyTorch.
  addPointwise(executor, {.op = "threshold_backward",
                          .rows = onNumbers<3>([](auto grad, auto x, auto threshold) {
                            return x <= threshold ? decltype(grad)(0) : grad;
                          }),
                          .parameters = {"threshold"}});
  addPointwise(executor, {.op = "leaky_relu_backward",
                          .rows = onFloats<3>([](auto grad, auto x, auto slope) {
                            return x > 0 ? grad : slope * grad;
                          }),
                          .parameters = {"slope"}});
  addPointwise(executor, {.op = "silu_backward", .rows = onFloats<2>([](auto grad, auto x) {
                                                   return grad * siluDerivative(x);
                                                 })});
  addPointwise(executor, {.op = "tanh_backward", .rows = onFloats<2>([](auto grad, auto out) {
                                                   return grad * (decltype(out)(1) - out * out);
                                                 })});
  addPointwise(executor, {.op = "sigmoid_backward", .rows = onFloats<2>([](auto grad, auto out) {
                                                      return grad * out * (decltype(out)(1) - out);
                                                    })});
  addKernel(executor, {.op = "gelu_backward", .make = makeGeluBackward, .isElementwise = true});
}
