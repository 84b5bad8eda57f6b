//===- LossKernels.cpp - Losses and their gradients -----------------------===//
//
// Computed in f64 and rounded once. Scores are [outer, classes, inner] around the dimension of
// classes (1, or 0 of a vector); targets are [outer, inner].
//
// A target class that is out of range and is not `ignore_index` makes its loss, and with it a sum
// or mean, nan, and adds nothing to a gradient.
//
// A loss of classes is -sum(c[k] * logp[k]) over the classes k. The coefficients c are, for a
// target that names class t, w[t] at t and 0 elsewhere; for one that gives probabilities p,
// w[k] * p[k]. Label smoothing takes (1 - s) times that and adds w[k] * s / classes. A term whose
// coefficient is 0 is 0 whatever logp is. "mean" divides by the sum of w[t] of the targets that
// count, or, for probabilities, by the number of targets (Szegedy et al., "Rethinking the Inception
// Architecture", 2016, for smoothing; PyTorch for the divisors).
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"
#include "Rows.h"

using namespace rondo;
using namespace rondo::host;

namespace {

enum class Reduction : uint8_t { None, Mean, Sum };

struct ClassLossOptions {
  Reduction reduction;
  int64_t ignoreIndex = -100;
  double smoothing = 0;
};

/// Targets and weights of one run, and the coefficients that follow from them.
class ClassTargets {
public:
  /// The operands from `first`: scores, target, weight.
  ClassTargets(const ClassLossOptions &options, const HostArgs &args, unsigned first)
      : axis(args.operand(first).shape, args.operand(first).rank() > 1 ? 1 : 0), options_(options),
        weights_(axis.size, 1) {
    const TensorRef &target = args.operand(first + 1);
    if (isFloat(target.dtype))
      probabilities_ = toDense<double>(target);
    else
      classes_ = toDense<int64_t>(target);
    givesProbabilities_ = isFloat(target.dtype);
    if (args.has(first + 2))
      weights_ = toDense<double>(args.operand(first + 2));
  }

  int64_t count() const { return axis.outer * axis.inner; }
  /// Index of the first score of target `t`; the others follow at distance axis.inner.
  int64_t firstScore(int64_t t) const { return axis.index(t / axis.inner, 0, t % axis.inner); }
  bool isIgnored(int64_t t) const {
    return !givesProbabilities_ && classes_[t] == options_.ignoreIndex;
  }
  /// False for a class that does not exist.
  bool isInRange(int64_t t) const {
    return givesProbabilities_ || (classes_[t] >= 0 && classes_[t] < axis.size);
  }
  /// What target `t` adds to the divisor of the mean.
  double divisor(int64_t t) const {
    if (givesProbabilities_)
      return 1;
    if (isIgnored(t))
      return 0;
    return isInRange(t) ? weights_[classes_[t]] : std::numeric_limits<double>::quiet_NaN();
  }
  double divisor() const {
    double sum = 0;
    for (int64_t t = 0; t < count(); ++t)
      sum += divisor(t);
    return sum;
  }
  /// Of class `k` for target `t`, which is in range and not ignored.
  double coefficient(int64_t t, int64_t k) const {
    double hard = givesProbabilities_ ? probabilities_[firstScore(t) + k * axis.inner]
                                      : double(classes_[t] == k);
    double smooth = options_.smoothing / double(axis.size);
    return weights_[k] * ((1 - options_.smoothing) * hard + smooth);
  }

  const Axis axis;

private:
  ClassLossOptions options_;
  std::vector<double> weights_, probabilities_;
  std::vector<int64_t> classes_;
  bool givesProbabilities_;
};

} // namespace

static Reduction reductionOf(const OpContext &op) {
  llvm::StringRef name = op.stringAttribute("reduction");
  return name == "none" ? Reduction::None : name == "sum" ? Reduction::Sum : Reduction::Mean;
}

static ClassLossOptions optionsOf(const OpContext &op) {
  return {reductionOf(op), op.intAttribute("ignore_index"), op.numberAttribute("label_smoothing")};
}

/// Replaces scores by their log_softmax.
static void takeLogSoftmax(std::vector<double> &scores, const Axis &axis) {
  axis.forEachRow([&](int64_t first) {
    double logSum = expSum(&scores[first], axis.size, axis.inner).logSumExp();
    for (int64_t k = 0; k < axis.size; ++k)
      scores[first + k * axis.inner] -= logSum;
  });
}

/// The losses of all targets, reduced, into result 0.
static void storeLoss(std::vector<double> losses, Reduction reduction, double divisor,
                      const TensorRef &result) {
  if (reduction != Reduction::None) {
    double sum = 0;
    for (double loss : losses)
      sum += loss;
    losses.assign(1, reduction == Reduction::Mean ? sum / divisor : sum);
  }
  fromDense<double>(losses, result);
}

static void runForward(const ClassLossOptions &options, bool takesLogits, const HostArgs &args) {
  ClassTargets targets(options, args, 0);
  const Axis &axis = targets.axis;
  std::vector<double> logp = toDense<double>(args.operand(0));
  if (takesLogits)
    takeLogSoftmax(logp, axis);
  std::vector<double> losses(targets.count(), 0);
  for (int64_t t = 0; t < targets.count(); ++t) {
    if (targets.isIgnored(t))
      continue;
    if (!targets.isInRange(t)) {
      losses[t] = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    for (int64_t k = 0; k < axis.size; ++k)
      if (double c = targets.coefficient(t, k); c != 0)
        losses[t] -= c * logp[targets.firstScore(t) + k * axis.inner];
  }
  double divisor = targets.divisor();
  storeLoss(std::move(losses), options.reduction, divisor, args.result());
  if (args.numResults() > 1)
    fromDense<double>(divisor, args.result(1));
}

/// Gradients of the loss of log-probabilities, -c, or of logits, softmax * sum(c) - c, times the
/// incoming gradient; with "mean" over the divisor, which nll_loss_backward is given.
static void runBackward(const ClassLossOptions &options, bool takesLogits, const HostArgs &args) {
  ClassTargets targets(options, args, 1);
  const Axis &axis = targets.axis;
  std::vector<double> grad = toDense<double>(args.operand(0));
  std::vector<double> scores = toDense<double>(args.operand(1)), result(scores.size(), 0);
  if (takesLogits)
    takeLogSoftmax(scores, axis);
  double divisor = 1;
  if (options.reduction == Reduction::Mean)
    divisor = takesLogits ? targets.divisor() : toDense<double>(args.operand(4)).front();
  for (int64_t t = 0; t < targets.count(); ++t) {
    if (targets.isIgnored(t) || !targets.isInRange(t))
      continue;
    double incoming = grad[options.reduction == Reduction::None ? t : 0] / divisor;
    double sum = 0;
    for (int64_t k = 0; k < axis.size; ++k)
      sum += targets.coefficient(t, k);
    for (int64_t k = 0; k < axis.size; ++k) {
      int64_t i = targets.firstScore(t) + k * axis.inner;
      double pull = takesLogits ? std::exp(scores[i]) * sum : 0;
      result[i] = incoming * (pull - targets.coefficient(t, k));
    }
  }
  fromDense<double>(result, args.result());
}

using RunClassLoss = void (*)(const ClassLossOptions &, bool takesLogits, const HostArgs &);

template <RunClassLoss Run, bool TakesLogits>
static llvm::Expected<HostKernelFn> makeClassLoss(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn(
      [options = optionsOf(op)](const HostArgs &args) { Run(options, TakesLogits, args); });
}

/// `tensor` broadcast to `shape`.
static std::vector<double> denseBroadcast(const TensorRef &tensor, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 5> strides = broadcastStrides(tensor, shape);
  return toDense<double>({tensor.data, tensor.dtype, shape, strides});
}

static llvm::SmallVector<int64_t, 5> broadcastShape(const TensorRef &a, const TensorRef &b) {
  const TensorRef &longer = a.rank() >= b.rank() ? a : b, &shorter = a.rank() >= b.rank() ? b : a;
  llvm::SmallVector<int64_t, 5> shape(longer.shape.begin(), longer.shape.end());
  size_t added = longer.rank() - shorter.rank();
  for (size_t d = 0; d < shorter.rank(); ++d)
    if (shorter.shape[d] != 1)
      shape[added + d] = shorter.shape[d];
  return shape;
}

static llvm::Expected<HostKernelFn> makeMSELoss(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([reduction = reductionOf(op)](const HostArgs &args) {
    llvm::SmallVector<int64_t, 5> shape = broadcastShape(args.operand(0), args.operand(1));
    std::vector<double> losses = denseBroadcast(args.operand(0), shape);
    std::vector<double> target = denseBroadcast(args.operand(1), shape);
    for (size_t i = 0; i < losses.size(); ++i)
      losses[i] = (losses[i] - target[i]) * (losses[i] - target[i]);
    double count = losses.size();
    storeLoss(std::move(losses), reduction, count, args.result());
  });
}

static llvm::Expected<HostKernelFn> makeMSELossBackward(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([reduction = reductionOf(op)](const HostArgs &args) {
    std::vector<double> grad = toDense<double>(args.operand(0)),
                        x = toDense<double>(args.operand(1)),
                        target = toDense<double>(args.operand(2));
    double factor = reduction == Reduction::Mean ? 2 / double(x.size()) : 2;
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = factor * (x[i] - target[i]) * grad[reduction == Reduction::None ? i : 0];
    fromDense<double>(x, args.result());
  });
}

void host::addLossKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "nll_loss", .make = makeClassLoss<runForward, false>});
  addKernel(executor, {.op = "nll_loss_backward", .make = makeClassLoss<runBackward, false>});
  addKernel(executor, {.op = "cross_entropy", .make = makeClassLoss<runForward, true>});
  addKernel(executor, {.op = "cross_entropy_backward", .make = makeClassLoss<runBackward, true>});
  addKernel(executor, {.op = "mse_loss", .make = makeMSELoss});
  addKernel(executor, {.op = "mse_loss_backward", .make = makeMSELossBackward});
}
