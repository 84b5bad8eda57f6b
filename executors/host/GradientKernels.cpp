//===- GradientKernels.cpp - Loss scaling and clipping on the host --------===//
//
// Each element is computed in f64 and rounded once when it is stored.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"

#include <cmath>

using namespace rondo;
using namespace rondo::host;

static double elementOf(const TensorRef &tensor) {
  return toDense<double>(tensor).front();
}
static void setElement(const TensorRef &tensor, double value) {
  fromDense<double>({value}, tensor);
}

/// Every element of a gradient in place.
template <typename Fn> static void mapElements(const TensorRef &gradient, Fn fn) {
  std::vector<double> elements = toDense<double>(gradient);
  for (double &x : elements)
    x = fn(x);
  fromDense<double>(elements, gradient);
}

static llvm::Expected<HostKernelFn> makeUnscale(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([](const HostArgs &args) {
    double inverse = elementOf(args.operand(1));
    bool areFinite = true;
    for (unsigned i = 1; i < args.numResults(); ++i)
      mapElements(args.result(i), [&](double x) {
        areFinite &= std::isfinite(x);
        return x * inverse;
      });
    if (!areFinite)
      setElement(args.result(0), 1);
  });
}

/// A nan among the elements makes a norm of either kind nan.
static llvm::Expected<HostKernelFn> makeGlobalNorm(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  bool isGreatest = std::isinf(op.numberAttribute("p"));
  return HostKernelFn([isGreatest](const HostArgs &args) {
    double norm = 0;
    for (unsigned i = 0; i < args.numOperands(); ++i)
      for (double x : toDense<double>(args.operand(i))) {
        double size = std::fabs(x);
        if (!isGreatest)
          norm += x * x;
        else if (size > norm || std::isnan(size))
          norm = size;
      }
    setElement(args.result(), isGreatest ? norm : std::sqrt(norm));
  });
}

/// As torch.nn.utils.clip_grad_norm_: a nan goes from the norm to all elements.
static llvm::Expected<HostKernelFn> makeClip(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  double maxNorm = op.numberAttribute("max_norm");
  return HostKernelFn([maxNorm](const HostArgs &args) {
    double factor = maxNorm / (elementOf(args.operand(0)) + 1e-6);
    if (factor >= 1)
      return;
    for (unsigned i = 0; i < args.numResults(); ++i)
      mapElements(args.result(i), [factor](double x) { return x * factor; });
  });
}

/// As PyTorch's GradScaler: a scale that would grow beyond f32 stays as it is.
static llvm::Expected<HostKernelFn> makeUpdateScale(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  double growth = op.numberAttribute("growth_factor"),
         backoff = op.numberAttribute("backoff_factor");
  int64_t interval = op.intAttribute("growth_interval");
  return HostKernelFn([=](const HostArgs &args) {
    double scale = elementOf(args.operand(0));
    int64_t successes = int64_t(elementOf(args.operand(1))) + 1;
    if (elementOf(args.operand(2)) != 0) {
      setElement(args.result(0), scale * backoff);
      successes = 0;
    } else if (successes == interval) {
      if (auto grown = static_cast<float>(scale * growth); std::isfinite(grown))
        setElement(args.result(0), grown);
      successes = 0;
    }
    setElement(args.result(1), double(successes));
  });
}

void host::addGradientKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "unscale_", .make = makeUnscale});
  addKernel(executor, {.op = "global_norm", .make = makeGlobalNorm});
  addKernel(executor, {.op = "clip_", .make = makeClip});
  addKernel(executor, {.op = "update_scale_", .make = makeUpdateScale});
}
