//===- SoftmaxKernels.cpp - Softmax and its gradients ---------------------===//
//
// Computed in f64 and rounded once. The operand of a forward is cast to the dtype of the result
// first, as PyTorch does. A row that is all -inf gives nan, and 0 in safe_softmax.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"
#include "Rows.h"

using namespace rondo;
using namespace rondo::host;

/// The elements of `x` after a cast to `dtype`.
static std::vector<double> castTo(DType dtype, const TensorRef &x) {
  return dispatchFloat(dtype, [&](auto tag) {
    std::vector<typename decltype(tag)::Type> cast = toDense<typename decltype(tag)::Type>(x);
    std::vector<double> values(cast.size());
    for (size_t i = 0; i < cast.size(); ++i)
      values[i] = convert<double>(cast[i]);
    return values;
  });
}

/// A kernel that replaces, row by row, what `loadRows` gives: `compute(rows, first, axis)`.
template <typename Compute>
static llvm::Expected<HostKernelFn> makeForward(const OpContext &op, Compute compute) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([compute, dim = op.intAttribute("dim")](const HostArgs &args) {
    const TensorRef &out = args.result();
    std::vector<double> rows = castTo(out.dtype, args.operand(0));
    Axis axis(out.shape, dim);
    axis.forEachRow([&](int64_t first) { compute(&rows[first], axis.size, axis.inner); });
    fromDense<double>(rows, out);
  });
}

static llvm::Expected<HostKernelFn> makeSoftmax(const OpContext &op) {
  bool safe = op.spec().name == "safe_softmax";
  return makeForward(op, [safe](double *row, int64_t size, int64_t stride) {
    ExpSum sum = expSum(row, size, stride);
    for (int64_t i = 0; i < size; ++i) {
      double &x = row[i * stride];
      x = safe && sum.isAllMinusInfinity() ? 0 : std::exp(x - sum.max) / sum.sum;
    }
  });
}

static llvm::Expected<HostKernelFn> makeLogSoftmax(const OpContext &op) {
  return makeForward(op, [](double *row, int64_t size, int64_t stride) {
    ExpSum sum = expSum(row, size, stride);
    double logSum = std::log(sum.sum);
    for (int64_t i = 0; i < size; ++i)
      row[i * stride] = row[i * stride] - sum.max - logSum;
  });
}

/// Of softmax: out * (grad - sum(grad * out)). Of log_softmax: grad - exp(out) * sum(grad).
static llvm::Expected<HostKernelFn> makeBackward(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  bool isLog = op.spec().name == "log_softmax_backward";
  return HostKernelFn([isLog, dim = op.intAttribute("dim")](const HostArgs &args) {
    std::vector<double> grad = toDense<double>(args.operand(0)),
                        out = toDense<double>(args.operand(1));
    Axis axis(args.result().shape, dim);
    axis.forEachRow([&](int64_t first) {
      int64_t end = first + axis.size * axis.inner;
      double sum = 0;
      for (int64_t i = first; i < end; i += axis.inner)
        sum += isLog ? grad[i] : grad[i] * out[i];
      for (int64_t i = first; i < end; i += axis.inner)
        grad[i] = isLog ? grad[i] - std::exp(out[i]) * sum : out[i] * (grad[i] - sum);
    });
    fromDense<double>(grad, args.result());
  });
}

void host::addSoftmaxKernels(HostExecutor &executor) {
  for (const char *op : {"softmax", "safe_softmax"})
    addKernel(executor, {.op = op, .make = makeSoftmax});
  addKernel(executor, {.op = "log_softmax", .make = makeLogSoftmax});
  for (const char *op : {"softmax_backward", "log_softmax_backward"})
    addKernel(executor, {.op = op, .make = makeBackward});
}
