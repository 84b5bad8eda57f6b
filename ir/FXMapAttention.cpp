//===- FXMapAttention.cpp - ATen's scaled dot-product attention -------------===//
//
// ATen has one op for each implementation: memory-efficient, cuDNN, flash. Besides the result and
// the log of the sum of exponentials each gives the seed and offset of its dropout mask, and some
// give lengths, all for its own backward. In Rondo the backward draws the mask again from the state
// that the forward drew it from. So these outputs go, and with them what was saved of them, as long
// as only backwards of attention take them; else the op stays opaque (LoweringState::keptOpaque).
//
//===----------------------------------------------------------------------===//

#include "FXCall.h"
#include "FXOpMapping.h"

using namespace rondo;
using namespace rondo::fx;

/// The attributes that forward and backward share, but for `offset`.
static AttributeList commonAttributes(Call &call, const Attribute &dropout) {
  AttributeList attributes{{"causal", call.boolean("is_causal")}, {"dropout_p", dropout}};
  if (std::optional<Attribute> scale = call.optionalNumber("scale"))
    attributes.emplace_back("scale", *scale);
  return attributes;
}

static Attribute dropoutOf(Call &call) {
  return call.optionalNumber("dropout_p").value_or(0.0);
}

/// Number of scores, each of which takes a random number: all sizes of the queries but the last,
/// times the number of keys.
static int64_t countScores(const TensorType &query, const TensorType &key) {
  if (query.rank() < 2 || key.rank() < 2)
    return 0;
  Dim count = numElements(llvm::ArrayRef<Dim>(query.shape).drop_back()) * key.shape[key.rank() - 2];
  return count.asConstant().value_or(0);
}

/// Says the shape of the log of sums, where an implementation pads it or adds a dimension.
static void addLogSumExpShape(Call &call, ValueId query, AttributeList &attributes) {
  const TensorType *sums = call.recorded(1);
  llvm::ArrayRef<Dim> rows = call.type(query).shape;
  if (sums && !rows.empty() && llvm::ArrayRef<Dim>(sums->shape) != rows.drop_back())
    attributes.emplace_back("logsumexp_shape", llvm::ArrayRef<Dim>(sums->shape));
}

void rondo::fx::lowerAttention(Call &call, llvm::StringRef core) {
  GraphLowering &lowering = call.lowering();
  uint32_t node = call.node().value - lowering.graph.numInputs;
  if (lowering.state.keptOpaque.count({lowering.side, node}) || call.boolean("return_debug_mask"))
    return call.fail();
  call.ignore("compute_log_sumexp"); // if false, the recorded shape says so
  ValueId query = call.tensor("query"), key = call.tensor("key"), value = call.tensor("value");
  ValueId mask = call.optionalTensor("attn_bias");
  Attribute dropout = dropoutOf(call);
  AttributeList attributes = commonAttributes(call, dropout);
  addLogSumExpShape(call, query, attributes);

  Attention attention;
  attention.side = lowering.side;
  attention.node = node;
  if (dropout.asNumber() != 0.0) {
    const TensorType &queries = call.type(query);
    std::tie(attention.state, attention.offset) =
        call.draw(queries.device, countScores(queries, call.type(key)));
    attributes.emplace_back("offset", attention.offset);
  }
  lowering.state.attentions.push_back(attention);
  static constexpr unsigned elements[] = {0, 1};
  call.emit(core, {query, key, value, mask, attention.state}, attributes,
            llvm::ArrayRef<unsigned>(elements), &lowering.state.attentions.back());
}

void rondo::fx::lowerAttentionBackward(Call &call, llvm::StringRef core) {
  ValueId mask = call.optionalTensor("attn_bias");
  llvm::SmallVector<ValueId, 8> operands;
  for (llvm::StringRef name : {"grad_out", "query", "key", "value", "out", "logsumexp"})
    operands.push_back(call.tensor(name));
  Attribute dropout = dropoutOf(call);
  AttributeList attributes = commonAttributes(call, dropout);
  // The memory-efficient one says which gradients it wants. The core op gives those of queries,
  // keys and values always.
  Attribute::List wanted = call.booleans("grad_input_mask");
  bool wantsMask = wanted.size() == 4 && *wanted[3].asBool();
  attributes.emplace_back("mask_grad", wantsMask);

  const Attention *attention = call.seed("philox_seed");
  call.ignore("philox_offset cum_seq_q cum_seq_k max_q max_k");
  ValueId state;
  if (dropout.asNumber() != 0.0) {
    // Numbers that are not known to be a forward's cannot be drawn again.
    if (!attention || call.failed())
      return call.fail();
    state = call.lowering().stateOf(*attention);
    attributes.emplace_back("offset", attention->offset);
  }
  operands.append({mask, state});
  static constexpr unsigned elements[] = {0, 1, 2, 3};
  call.emit(core, operands, attributes,
            llvm::ArrayRef<unsigned>(elements).take_front(wantsMask ? 4 : 3));
}
