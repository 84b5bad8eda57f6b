//===- CuDNNAttention.cpp - Attention as a graph of operations ------------===//
//
// cuDNN has kernels for certain graphs, which it knows by their form. Of the ops of
// executors/host/AttentionKernels.cpp, where the formulas are, these are (with [B, H, L, S]
// scores):
//
//   forward    s = scale * q @ k^T, masked       m = max(s)       e = exp(s - m)      l = sum(e)
//              logsumexp = m + log(l)            out = (e / l) @ v
//
//   backward   delta = sum(grad * out)           e = exp(scale * q @ k^T - logsumexp, masked)
//              grad_v = e^T @ grad               ds = scale * (grad @ v^T - delta) * e
//              grad_k = ds^T @ q                 grad_q = ds @ k
//
// The gradient of the queries is the result of a product, and not a sum in f32 that is rounded
// afterwards: of such a one cuDNN adds the parts in any order, with other bits in every run. Here
// it keeps ds, of B * H * L * S elements, in its workspace.
//
//===----------------------------------------------------------------------===//

#include "CuDNNGraph.h"

#include <limits>

using namespace rondo;
using namespace rondo::cuda;

using Sizes = FusedAttention::Sizes;

namespace {

class AttentionGraph {
public:
  AttentionGraph(CuDNNGraph &graph, const FusedAttention &attention)
      : graph_(graph), attention_(attention),
        type_(attention.dtype == DType::F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16),
        scores_{attention.batches(), attention.heads(), attention.queries(), attention.keys()},
        rows_{attention.batches(), attention.heads(), attention.queries(), 1} {}

  void addForward();
  void addBackward();

private:
  using Tensor = CuDNNGraph::Tensor;

  Tensor argument(AttentionTensor which) {
    return graph_.argument(attention_.tensor(which), type_);
  }
  Tensor transposed(AttentionTensor which) {
    return graph_.transposedArgument(attention_.tensor(which), type_);
  }
  Tensor logSumExp() { return graph_.argument(attention_.tensor(attentionSums), CUDNN_DATA_FLOAT); }
  Tensor scores() { return graph_.inner(scores_); }
  Tensor rows() { return graph_.inner(rows_); }
  Tensor masked(const Tensor &in);
  /// Of 16 bits, as a factor of a product.
  Tensor transposedScores(const Tensor &in);

  CuDNNGraph &graph_;
  const FusedAttention &attention_;
  cudnnDataType_t type_;
  Sizes scores_, rows_;
};

} // namespace

/// Row i keeps the columns j <= i.
CuDNNGraph::Tensor AttentionGraph::masked(const Tensor &in) {
  if (!attention_.causal)
    return in;
  Tensor row = graph_.indices(2, in), column = graph_.indices(3, in);
  Tensor isKept = graph_.pointwise(CUDNN_POINTWISE_CMP_GE, {row, column},
                                   graph_.inner(scores_, CUDNN_DATA_BOOLEAN));
  Tensor lowest = graph_.scalar(-std::numeric_limits<float>::infinity());
  return graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, {in, lowest, isKept}, scores());
}

CuDNNGraph::Tensor AttentionGraph::transposedScores(const Tensor &in) {
  Sizes shape = in.shape, strides = in.strides;
  std::swap(shape[2], shape[3]);
  std::swap(strides[2], strides[3]);
  return graph_.reshape(in, graph_.inner(shape, strides, type_));
}

void AttentionGraph::addForward() {
  Tensor queries = argument(attentionQueries), keys = transposed(attentionKeys),
         values = argument(attentionValues), out = argument(attentionOut), sums = logSumExp();
  Tensor product = graph_.matmul(queries, keys, scores());
  Tensor scaled =
      graph_.pointwise(CUDNN_POINTWISE_MUL, {product, graph_.scalar(attention_.scale)}, scores());
  Tensor score = masked(scaled);
  Tensor max = graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, score, rows());
  Tensor difference = graph_.pointwise(CUDNN_POINTWISE_SUB, {score, max}, scores());
  Tensor exponential = graph_.pointwise(CUDNN_POINTWISE_EXP, difference, scores());
  Tensor sum = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponential, rows());
  Tensor logarithm = graph_.pointwise(CUDNN_POINTWISE_LOG, sum, rows());
  graph_.pointwise(CUDNN_POINTWISE_ADD, {max, logarithm}, sums);
  Tensor weights =
      graph_.pointwise(CUDNN_POINTWISE_DIV, {exponential, sum}, graph_.inner(scores_, type_));
  graph_.matmul(weights, values, out);
}

void AttentionGraph::addBackward() {
  Tensor grad = argument(attentionGrad), queries = argument(attentionQueries),
         keys = transposed(attentionKeys), values = transposed(attentionValues),
         out = argument(attentionOut), sums = logSumExp(),
         gradQueries = argument(attentionGradQueries), gradKeys = argument(attentionGradKeys),
         gradValues = argument(attentionGradValues);
  Tensor scale = graph_.scalar(attention_.scale);

  Tensor both = graph_.pointwise(CUDNN_POINTWISE_MUL, {grad, out}, graph_.inner(out.shape));
  Tensor sum = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, both, rows());
  // The form has a factor here, that of dropout.
  Tensor delta =
      graph_.pointwise(CUDNN_POINTWISE_MUL, {sum, graph_.scalar(1)}, graph_.workspace(rows_));

  Tensor product = graph_.matmul(queries, keys, scores());
  Tensor scaled = graph_.pointwise(CUDNN_POINTWISE_MUL, {product, scale}, scores());
  Tensor difference = graph_.pointwise(CUDNN_POINTWISE_SUB, {scaled, sums}, scores());
  Tensor weights = graph_.pointwise(CUDNN_POINTWISE_EXP, masked(difference), scores());
  graph_.matmul(transposedScores(weights), grad, gradValues);

  Tensor gradWeights = graph_.matmul(grad, values, scores());
  Tensor centred = graph_.pointwise(CUDNN_POINTWISE_SUB, {gradWeights, delta}, scores());
  Tensor gradScores = graph_.pointwise(CUDNN_POINTWISE_MUL, {centred, weights}, scores());
  Tensor gradProduct = graph_.pointwise(CUDNN_POINTWISE_MUL, {gradScores, scale}, scores());
  graph_.matmul(transposedScores(gradProduct), queries, gradKeys);
  const FusedAttention::Tensor &given = attention_.tensor(attentionKeys);
  Tensor plainKeys = graph_.reshape(keys, graph_.inner(given.shape, given.strides, type_));
  graph_.matmul(gradProduct, plainKeys, gradQueries);
}

void rondo::cuda::addAttention(CuDNNGraph &graph, const FusedAttention &attention) {
  AttentionGraph builder(graph, attention);
  if (attention.isBackward)
    builder.addBackward();
  else
    builder.addForward();
}
