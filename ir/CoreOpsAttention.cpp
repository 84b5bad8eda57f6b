//===- CoreOpsAttention.cpp - Scaled dot-product attention ----------------===//
//
// Queries [..., L, E], keys [..., S, E], values [..., S, V]; result [..., L, V] and, for the
// backward, the log of the sum of exponentials of each row of scores. Random only when an RNG state
// is given, which dropout needs; the backward draws the forward's numbers again.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;
using C = DTypeClass;

/// The common checks of forward and backward. `q` is the operand of the queries; keys and values
/// follow it. `mask` and the RNG state after it may be absent.
static llvm::Error checkAttention(const Inference &in, unsigned q, unsigned mask) {
  for (unsigned i = q; i < q + 3; ++i) {
    RONDO_TRY(in.dtypeIn(i, C::Float));
    RONDO_TRY(in.dtypeIs(i, in.tensor(q).dtype));
    RONDO_TRY(in.rankIs(i, in.tensor(q).rank()));
  }
  RONDO_TRY(in.rankAtLeast(q, 2));
  llvm::ArrayRef<Dim> queries = in.tensor(q).shape, keys = in.tensor(q + 1).shape,
                      values = in.tensor(q + 2).shape;
  if (queries.drop_back(2) != keys.drop_back(2) || queries.back() != keys.back())
    return in.expectsOperand(q + 1, "to match the batch and last sizes of the queries, " +
                                        shapeText(queries));
  if (values.drop_back() != keys.drop_back())
    return in.expectsOperand(q + 2, "to match the keys but for the last size, " + shapeText(keys));
  if (const TensorType *type = in.optionalTensor(mask)) {
    if (type->dtype != DType::Bool)
      RONDO_TRY(in.dtypeIs(mask, in.tensor(q).dtype));
    Dims scores(queries.begin(), queries.end());
    scores.back() = keys[keys.size() - 2];
    RONDO_TRY(in.broadcastsTo(mask, scores));
  }
  if (in.op.numberAttribute("dropout_p") != 0 && !in.has(mask + 1))
    return expects(in.operandText(mask + 1) + " when 'dropout_p' is not 0, got none");
  return llvm::Error::success();
}

static Dims resultShape(const Inference &in, unsigned q) {
  Dims shape = in.tensor(q).shape;
  shape.back() = in.tensor(q + 2).shape.back();
  return shape;
}

static llvm::Error inferAttention(Inference &in) {
  RONDO_TRY(checkAttention(in, /*q=*/0, /*mask=*/3));
  RONDO_TRY(in.fresh(in.tensor(0).dtype, resultShape(in, 0)));
  Dims rows = in.tensor(0).shape;
  rows.pop_back();
  if (in.hasAttribute("logsumexp_shape")) {
    RONDO_LET(given, in.sizes("logsumexp_shape"));
    rows = std::move(given);
  }
  return in.fresh(statisticsDType(in.tensor(0).dtype), std::move(rows));
}

static llvm::Error inferAttentionBackward(Inference &in) {
  constexpr unsigned q = 1, out = 4, logsumexp = 5, mask = 6;
  RONDO_TRY(checkAttention(in, q, mask));
  RONDO_TRY(in.shapeIs(0, resultShape(in, q)));
  RONDO_TRY(in.shapeIs(out, resultShape(in, q)));
  RONDO_TRY(in.dtypeIs(logsumexp, statisticsDType(in.tensor(q).dtype)));
  for (unsigned i = q; i < q + 3; ++i)
    RONDO_TRY(in.fresh(in.tensor(i).dtype, in.tensor(i).shape));
  if (!in.op.boolAttribute("mask_grad"))
    return llvm::Error::success();
  const TensorType *type = in.optionalTensor(mask);
  if (!type || !isFloat(type->dtype))
    return in.expectsOperand(mask, "of a floating-point dtype when 'mask_grad' is true");
  return in.fresh(type->dtype, type->shape);
}

/// One number for each attention weight, if there is dropout; `q` is the operand that is the query.
static DrawsFn drawsPerWeight(unsigned q) {
  return [q](const OpContext &op) -> Dim {
    if (op.numberAttribute("dropout_p") == 0)
      return 0;
    llvm::ArrayRef<Dim> queries = op.tensor(q)->shape, keys = op.tensor(q + 1)->shape;
    Dim numWeights = keys[keys.size() - 2];
    for (const Dim &size : queries.drop_back())
      numWeights = numWeights * size;
    return numWeights;
  };
}

static OpDef &attentionAttributes(OpDef &def) {
  return def.attr("causal", Kind::Bool, false)
      .attr("dropout_p", Kind::Number, 0.0)
      .optional("scale", Kind::Number)
      .attr("offset", Kind::Int, 0)
      .between("dropout_p", 0, 1)
      .atLeast("offset", 0);
}

void rondo::addAttentionOps(OpTable &table) {
  OpDef forward("scaled_dot_product_attention",
                "softmax(scale * q @ transposed k + mask) @ v; scale 1/sqrt(E) unless given");
  table.add(attentionAttributes(forward.in("q, k, v, mask?, rng?:rng"))
                .optional("logsumexp_shape", Kind::IntList)
                .out("out, logsumexp")
                .random()
                .draws(drawsPerWeight(0))
                .infer(inferAttention));
  OpDef backward("scaled_dot_product_attention_backward",
                 "gradients of scaled_dot_product_attention; of the mask if mask_grad");
  table.add(attentionAttributes(backward.in("grad, q, k, v, out, logsumexp, mask?, rng?:rng"))
                .attr("mask_grad", Kind::Bool, false)
                .variadicOut("grad_q, grad_k, grad_v, grad_mask")
                .draws(drawsPerWeight(1))
                .infer(inferAttentionBackward));
}
