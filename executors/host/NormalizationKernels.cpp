//===- NormalizationKernels.cpp - Layer and RMS norm ----------------------===//
//
// Computed in f64; each result is rounded once to its dtype, the statistics to theirs (f32 for
// 16-bit inputs). The backwards use the statistics that they are given. Formulas: Ba et al., "Layer
// Normalization", 2016, and Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
//
// Batch norm has no host kernel.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"

#include <cmath>

using namespace rondo;
using namespace rondo::host;

namespace {

/// The last `numDims` dimensions are normalised; with `centred` (layer norm) around their mean.
struct Norm {
  unsigned numDims;
  bool centred;
  double eps = 0;
  llvm::SmallVector<bool, 3> mask = {}; ///< which gradients are results

  /// Elements of one row of `x`.
  int64_t size(const TensorRef &x) const {
    int64_t size = 1;
    for (int64_t d : x.shape.take_back(numDims))
      size *= d;
    return size;
  }
};

} // namespace

/// Operand `i`, or `size` times `otherwise` if it is absent.
static std::vector<double> denseOr(const HostArgs &args, unsigned i, int64_t size,
                                   double otherwise) {
  return args.has(i) ? toDense<double>(args.operand(i)) : std::vector<double>(size, otherwise);
}

/// Mean (0 unless centred) and 1 / sqrt(variance + eps) of the row.
static std::pair<double, double> statistics(const Norm &norm, llvm::ArrayRef<double> row) {
  double mean = 0, squares = 0, size = row.size();
  if (norm.centred) {
    for (double x : row)
      mean += x;
    mean /= size;
  }
  for (double x : row)
    squares += (x - mean) * (x - mean);
  return {mean, 1 / std::sqrt(squares / size + norm.eps)};
}

static void runForward(const Norm &norm, const HostArgs &args) {
  const TensorRef &x = args.operand(0);
  int64_t size = norm.size(x);
  std::vector<double> values = toDense<double>(x), means, rstds;
  std::vector<double> w = denseOr(args, 1, size, 1);
  std::vector<double> b(size, 0);
  if (norm.centred)
    b = denseOr(args, 2, size, 0);
  const TensorRef &rstd = args.result(norm.centred ? 2 : 1);
  int64_t rows = rstd.numElements();
  for (int64_t r = 0; r < rows; ++r) {
    llvm::MutableArrayRef<double> row(values.data() + r * size, size);
    auto [mean, scale] = statistics(norm, row);
    for (int64_t i = 0; i < size; ++i)
      row[i] = (row[i] - mean) * scale * w[i] + b[i];
    means.push_back(mean);
    rstds.push_back(scale);
  }
  fromDense<double>(values, args.result(0));
  if (norm.centred)
    fromDense<double>(means, args.result(1));
  fromDense<double>(rstds, rstd);
}

/// With y = (x - mean) * rstd and g = grad * w: the gradient of x is
/// rstd * (g - mean(g) - y * mean(g * y)), without mean(g) where the mean was not subtracted; that
/// of w is the sum of grad * y over the rows, that of b the sum of grad.
static void runBackward(const Norm &norm, const HostArgs &args) {
  const TensorRef &x = args.operand(1);
  unsigned statistic = norm.centred ? 3 : 2; // rstd
  int64_t size = norm.size(x), rows = args.operand(statistic).numElements();
  std::vector<double> grad = toDense<double>(args.operand(0)), values = toDense<double>(x);
  std::vector<double> means(rows, 0), rstds = toDense<double>(args.operand(statistic));
  if (norm.centred)
    means = toDense<double>(args.operand(2));
  std::vector<double> w = denseOr(args, statistic + 1, size, 1);
  std::vector<double> gradX(grad.size()), gradW(size), gradB(size);
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0, dot = 0;
    for (int64_t i = 0; i < size; ++i) {
      double g = grad[r * size + i], &y = values[r * size + i];
      y = (y - means[r]) * rstds[r];
      sum += g * w[i];
      dot += g * w[i] * y;
      gradW[i] += g * y;
      gradB[i] += g;
    }
    if (!norm.centred)
      sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      double g = grad[r * size + i] * w[i], y = values[r * size + i];
      gradX[r * size + i] = rstds[r] * (g - sum / double(size) - y * (dot / double(size)));
    }
  }
  unsigned result = 0;
  const std::vector<double> *gradients[] = {&gradX, &gradW, &gradB};
  for (unsigned i = 0; i < norm.mask.size(); ++i)
    if (norm.mask[i])
      fromDense<double>(*gradients[i], args.result(result++));
}

static unsigned numNormalised(const OpContext &op) {
  return op.dimsAttribute("normalized_shape").size();
}

template <bool Centred> static llvm::Expected<HostKernelFn> makeNorm(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  Norm norm{numNormalised(op), Centred, op.numberAttribute("eps")};
  return HostKernelFn([norm](const HostArgs &args) { runForward(norm, args); });
}

template <bool Centred> static llvm::Expected<HostKernelFn> makeNormBackward(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  Norm norm{numNormalised(op), Centred};
  for (const Attribute &wanted : *op.attribute("mask")->asList())
    norm.mask.push_back(*wanted.asBool());
  return HostKernelFn([norm](const HostArgs &args) { runBackward(norm, args); });
}

void host::addNormalizationKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "layer_norm", .make = makeNorm<true>});
  addKernel(executor, {.op = "layer_norm_backward", .make = makeNormBackward<true>});
  addKernel(executor, {.op = "rms_norm", .make = makeNorm<false>});
  addKernel(executor, {.op = "rms_norm_backward", .make = makeNormBackward<false>});
}
