//===- AttentionKernels.cpp - Scaled dot-product attention ----------------===//
//
// Computed in f64, matrix by matrix, and rounded once. With scores s = scale * q @ k^T + mask,
// where what the mask or `causal` forbids is -inf (causal: query i sees the keys j <= i), the
// attention weights are p = exp(s - logsumexp(s)), and 0 in a row in which everything is forbidden.
// Dropout keeps a weight with probability 1 - dropout_p and divides it by that; it draws as the op
// dropout does for a tensor of shape [..., L, S].
//
// The backward (Dao et al., "FlashAttention", 2022, appendix B.4) takes p from the logsumexp that
// it is given, so what it differentiates is what the forward computed:
//   dv = drop(p)^T @ grad        dp = drop(grad @ v^T)
//   ds = p * (dp - rowsum(grad * out))
//   dq = scale * ds @ k          dk = scale * ds^T @ q          dmask = ds
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"
#include "Matrices.h"
#include "Rows.h"

#include "rondo/executors/Philox.h"

using namespace rondo;
using namespace rondo::host;

using Scores = Matrix<double>;

static constexpr double minusInfinity = -std::numeric_limits<double>::infinity();
/// What the forward stores in the rows of logsumexp beyond L, as PyTorch does.
static constexpr double paddingLogSumExp = std::numeric_limits<double>::infinity();

namespace {

struct Attention {
  bool causal = false;
  double scale = 1;
  double dropout = 0; ///< probability to drop
  uint64_t offset = 0;
};

/// Operands of one run that forward and backward share; matrices of the same batches.
class AttentionInputs {
public:
  /// Queries are operand `first`, then keys and values; the mask is operand `maskOperand`, the RNG
  /// state the next one.
  AttentionInputs(const Attention &attention, const HostArgs &args, unsigned first,
                  unsigned maskOperand)
      : queries(matrices(args.operand(first))), keys(matrices(args.operand(first + 1))),
        values(matrices(args.operand(first + 2))), attention_(attention) {
    scoresShape = queries.shape;
    scoresShape.push_back(queries.rows);
    scoresShape.push_back(keys.rows);
    if (args.has(maskOperand))
      mask_ = broadcastLike(args.operand(maskOperand), scoresShape);
    if (attention.dropout > 0)
      rng_ = args.rng(maskOperand + 1);
  }

  /// Of the matrices at these offsets.
  Scores scores(const Matrix<double> &q, const Matrix<double> &k, int64_t maskOffset) const;
  /// Zeroes what dropout drops of `weights`, those of batch number `batch`, and scales the rest.
  void drop(Scores &weights, int64_t batch) const;
  llvm::ArrayRef<int64_t> maskStrides() const { return (mask_ ? *mask_ : queries).strides; }

  MatrixBatch queries, keys, values;
  llvm::SmallVector<int64_t, 5> scoresShape; ///< [..., L, S]

private:
  const Attention &attention_;
  std::optional<MatrixBatch> mask_;
  RNGState rng_;
};

} // namespace

Scores AttentionInputs::scores(const Matrix<double> &q, const Matrix<double> &k,
                               int64_t maskOffset) const {
  Scores scores = attention_.scale * (q * k.transpose());
  if (mask_) {
    Scores mask = load<double>(*mask_, maskOffset);
    if (mask_->dtype == DType::Bool)
      scores = (mask.array() != 0).select(scores, minusInfinity);
    else
      scores += mask;
  }
  if (attention_.causal)
    for (int64_t i = 0; i < scores.rows(); ++i)
      for (int64_t j = i + 1; j < scores.cols(); ++j)
        scores(i, j) = minusInfinity;
  return scores;
}

void AttentionInputs::drop(Scores &weights, int64_t batch) const {
  if (attention_.dropout <= 0)
    return;
  uint32_t threshold = philox::threshold(attention_.dropout);
  uint64_t next = rng_.offset + attention_.offset + uint64_t(batch) * uint64_t(weights.size());
  for (int64_t i = 0; i < weights.rows(); ++i)
    for (int64_t j = 0; j < weights.cols(); ++j, ++next) {
      bool dropped = philox::happens(philox::word(rng_.seed, next), threshold);
      weights(i, j) = dropped ? 0 : weights(i, j) / (1 - attention_.dropout);
    }
}

//===----------------------------------------------------------------------===//
// The log of sums
//===----------------------------------------------------------------------===//

/// True if a tensor of this shape has one logsumexp for each row of queries: [..., L], padded to
/// [..., at least L], or [..., L, 1].
static bool holdsLogSumExp(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> queries) {
  llvm::ArrayRef<int64_t> batch = queries.drop_back(2);
  int64_t length = queries[batch.size()];
  if (shape.size() == queries.size() - 1)
    return shape.drop_back() == batch && shape.back() >= length;
  return shape.size() == queries.size() && shape.drop_back(2) == batch && shape.back() == 1 &&
         shape[batch.size()] >= length;
}

/// As matrices of one column.
static MatrixBatch logSumExpColumns(const TensorRef &tensor, unsigned queriesRank) {
  return tensor.rank() == queriesRank ? matrices(tensor) : rowVectors(tensor).transposed();
}

static llvm::Expected<Attention> attentionOf(const OpContext &op, unsigned queries,
                                             const TensorType &logSumExp) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::SmallVector<int64_t, 5> shape = constantDims(op.tensor(queries)->shape);
  if (!holdsLogSumExp(constantDims(logSumExp.shape), shape))
    return makeError("has no host kernel for logsumexp of type " + Type(logSumExp).str());
  Attention attention;
  attention.causal = op.boolAttribute("causal");
  attention.scale = op.numberAttribute("scale", 1 / std::sqrt(double(shape.back())));
  attention.dropout = op.numberAttribute("dropout_p");
  attention.offset = op.intAttribute("offset");
  return attention;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Replaces scores by attention weights; stores the logsumexp of each row.
static void takeWeights(Scores &scores, Matrix<double> &logSumExp) {
  for (int64_t i = 0; i < scores.rows(); ++i) {
    ExpSum sum = expSum(scores.data() + i * scores.cols(), scores.cols(), 1);
    if (sum.isAllMinusInfinity()) {
      scores.row(i).setZero();
      logSumExp(i, 0) = minusInfinity;
      continue;
    }
    for (int64_t j = 0; j < scores.cols(); ++j)
      scores(i, j) = std::exp(scores(i, j) - sum.max) / sum.sum;
    logSumExp(i, 0) = sum.logSumExp();
  }
}

static void runForward(const Attention &attention, const HostArgs &args) {
  AttentionInputs in(attention, args, /*first=*/0, /*maskOperand=*/3);
  MatrixBatch out = matrices(args.result(0));
  MatrixBatch sums = logSumExpColumns(args.result(1), args.operand(0).rank());
  int64_t batch = 0;
  forEachOffset<6>(out.shape,
                   {out.strides, in.queries.strides, in.keys.strides, in.values.strides,
                    in.maskStrides(), sums.strides},
                   [&](auto at) {
                     Scores weights = in.scores(load<double>(in.queries, at[1]),
                                                load<double>(in.keys, at[2]), at[4]);
                     Matrix<double> logSumExp =
                         Matrix<double>::Constant(sums.rows, 1, paddingLogSumExp);
                     takeWeights(weights, logSumExp);
                     in.drop(weights, batch++);
                     Matrix<double> result = weights * load<double>(in.values, at[3]);
                     store(result, out, at[0]);
                     store(logSumExp, sums, at[5]);
                   });
}

static llvm::Expected<HostKernelFn> makeAttention(const OpContext &op) {
  llvm::Expected<Attention> attention = attentionOf(op, 0, *op.results()[1]->asTensor());
  if (!attention)
    return attention.takeError();
  return HostKernelFn(
      [attention = *attention](const HostArgs &args) { runForward(attention, args); });
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// Adds a matrix of gradients of the scores, `offset` from the start of those of all batches seen
/// as `sums`, whose strides are 0 where the mask broadcasts.
static void addMaskGradient(std::vector<double> &sums, const MatrixBatch &layout,
                            const Scores &gradient, int64_t offset) {
  for (int64_t i = 0; i < gradient.rows(); ++i)
    for (int64_t j = 0; j < gradient.cols(); ++j)
      sums[offset + i * layout.rowStride + j * layout.columnStride] += gradient(i, j);
}

/// Replaces scores by attention weights, with the logsumexp of each row.
static void takeWeightsFrom(Scores &scores, const Matrix<double> &logSumExp) {
  for (int64_t i = 0; i < scores.rows(); ++i) {
    double sum = logSumExp(i, 0);
    if (sum == minusInfinity)
      scores.row(i).setZero();
    else
      scores.row(i) = (scores.row(i).array() - sum).exp();
  }
}

static void runBackward(const Attention &attention, const HostArgs &args) {
  AttentionInputs in(attention, args, /*first=*/1, /*maskOperand=*/6);
  MatrixBatch grads = matrices(args.operand(0)), outs = matrices(args.operand(4));
  MatrixBatch sums = logSumExpColumns(args.operand(5), args.operand(1).rank());
  MatrixBatch gradQ = matrices(args.result(0)), gradK = matrices(args.result(1)),
              gradV = matrices(args.result(2));
  // The gradient of the mask, row-major in its own shape.
  bool wantsMask = args.numResults() > 3;
  llvm::SmallVector<int64_t, 5> maskStrides;
  std::vector<double> gradMask;
  MatrixBatch maskLayout = in.queries; // not looked at unless wanted
  if (wantsMask) {
    const TensorRef &mask = args.operand(6);
    maskStrides = rowMajorStrides(mask.shape);
    gradMask.assign(mask.numElements(), 0);
    maskLayout = broadcastLike({nullptr, mask.dtype, mask.shape, maskStrides}, in.scoresShape);
  }
  int64_t batch = 0;
  forEachOffset<11>(
      in.queries.shape,
      {in.queries.strides, in.keys.strides, in.values.strides, in.maskStrides(), grads.strides,
       outs.strides, sums.strides, gradQ.strides, gradK.strides, gradV.strides, maskLayout.strides},
      [&](auto at) {
        Matrix<double> q = load<double>(in.queries, at[0]), k = load<double>(in.keys, at[1]),
                       v = load<double>(in.values, at[2]), grad = load<double>(grads, at[4]),
                       out = load<double>(outs, at[5]);
        Scores weights = in.scores(q, k, at[3]);
        takeWeightsFrom(weights, load<double>(sums, at[6]));
        Scores dropped = weights, dScores = grad * v.transpose();
        in.drop(dropped, batch);
        in.drop(dScores, batch++);
        dScores.colwise() -= grad.cwiseProduct(out).rowwise().sum();
        dScores.array() *= weights.array();
        store<double>(attention.scale * (dScores * k), gradQ, at[7]);
        store<double>(attention.scale * (dScores.transpose() * q), gradK, at[8]);
        store<double>(dropped.transpose() * grad, gradV, at[9]);
        if (wantsMask)
          addMaskGradient(gradMask, maskLayout, dScores, at[10]);
      });
  if (wantsMask)
    fromDense<double>(gradMask, args.result(3));
}

static llvm::Expected<HostKernelFn> makeAttentionBackward(const OpContext &op) {
  llvm::Expected<Attention> attention = attentionOf(op, 1, *op.tensor(5));
  if (!attention)
    return attention.takeError();
  return HostKernelFn(
      [attention = *attention](const HostArgs &args) { runBackward(attention, args); });
}

void host::addAttentionKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "scaled_dot_product_attention", .make = makeAttention});
  addKernel(executor,
            {.op = "scaled_dot_product_attention_backward", .make = makeAttentionBackward});
}
