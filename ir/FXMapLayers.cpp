//===- FXMapLayers.cpp - ATen's products, norms, convolutions and losses ----===//

#include "FXCall.h"
#include "FXOpMapping.h"

using namespace rondo;
using namespace rondo::fx;

static Attribute list(llvm::ArrayRef<int64_t> values) {
  return values;
}

/// The elements of a result whose bit in `mask` is set: the core op gives no others.
static llvm::SmallVector<unsigned, 4> maskedElements(const Attribute::List &mask) {
  llvm::SmallVector<unsigned, 4> elements;
  for (unsigned i = 0; i < mask.size(); ++i)
    if (*mask[i].asBool())
      elements.push_back(i);
  return elements;
}

/// `output_mask`, one bool for each of `count` gradients.
static Attribute::List outputMask(Call &call, unsigned count) {
  Attribute::List mask = call.booleans("output_mask");
  if (mask.size() != count)
    call.fail();
  return mask;
}

void rondo::fx::lowerAddmm(Call &call, llvm::StringRef core) {
  AttributeList attributes;
  for (llvm::StringRef factor : {"beta", "alpha"})
    if (std::optional<Attribute> number = call.optionalNumber(factor))
      attributes.emplace_back(factor, *number);
  call.emit(core, {call.tensor("self"), call.tensor("mat1"), call.tensor("mat2")}, attributes);
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

void rondo::fx::lowerLayerNorm(Call &call, llvm::StringRef core) {
  call.emit(
      core, {call.tensor("input"), call.optionalTensor("weight"), call.optionalTensor("bias")},
      {{"normalized_shape", list(call.integers("normalized_shape"))}, {"eps", call.number("eps")}});
}

void rondo::fx::lowerLayerNormBackward(Call &call, llvm::StringRef core) {
  Attribute::List mask = outputMask(call, 3);
  call.emit(core,
            {call.tensor("grad_out"), call.tensor("input"), call.tensor("mean"),
             call.tensor("rstd"), call.optionalTensor("weight"), call.optionalTensor("bias")},
            {{"normalized_shape", list(call.integers("normalized_shape"))}, {"mask", mask}},
            llvm::ArrayRef<unsigned>(maskedElements(mask)));
}

/// Without `eps` it depends on the dtype, so it stays with ATen.
void rondo::fx::lowerRMSNorm(Call &call, llvm::StringRef core) {
  call.emit(
      core, {call.tensor("input"), call.optionalTensor("weight")},
      {{"normalized_shape", list(call.integers("normalized_shape"))}, {"eps", call.number("eps")}});
}

void rondo::fx::lowerRMSNormBackward(Call &call, llvm::StringRef core) {
  Attribute::List mask = outputMask(call, 2);
  call.emit(core,
            {call.tensor("grad_out"), call.tensor("input"), call.tensor("rstd"),
             call.optionalTensor("weight")},
            {{"normalized_shape", list(call.integers("normalized_shape"))}, {"mask", mask}},
            llvm::ArrayRef<unsigned>(maskedElements(mask)));
}

void rondo::fx::lowerBatchNorm(Call &call, llvm::StringRef core) {
  call.emit(core,
            {call.tensor("input"), call.optionalTensor("weight"), call.optionalTensor("bias"),
             call.tensor("running_mean"), call.tensor("running_var")},
            {{"training", call.boolean("training")},
             {"momentum", call.number("momentum")},
             {"eps", call.number("eps")}});
}

void rondo::fx::lowerBatchNormBackward(Call &call, llvm::StringRef core) {
  Attribute::List mask = outputMask(call, 3);
  call.emit(core,
            {call.tensor("grad_out"), call.tensor("input"), call.optionalTensor("weight"),
             call.optionalTensor("running_mean"), call.optionalTensor("running_var"),
             call.optionalTensor("save_mean"), call.optionalTensor("save_invstd")},
            {{"training", call.boolean("train")}, {"eps", call.number("eps")}, {"mask", mask}},
            llvm::ArrayRef<unsigned>(maskedElements(mask)));
}

//===----------------------------------------------------------------------===//
// Convolution and embedding
//===----------------------------------------------------------------------===//

static AttributeList convolutionAttributes(Call &call) {
  return {{"stride", list(call.integers("stride"))},
          {"padding", list(call.integers("padding"))},
          {"dilation", list(call.integers("dilation"))},
          {"transposed", call.boolean("transposed")},
          {"output_padding", list(call.integers("output_padding"))},
          {"groups", call.integer("groups")}};
}

void rondo::fx::lowerConvolution(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("input"), call.tensor("weight"), call.optionalTensor("bias")},
            convolutionAttributes(call));
}

void rondo::fx::lowerConvolutionBackward(Call &call, llvm::StringRef core) {
  AttributeList attributes = convolutionAttributes(call);
  Attribute::List mask = outputMask(call, 3);
  attributes.emplace_back("mask", mask);
  if (!call.isAbsent("bias_sizes"))
    attributes.emplace_back("bias_sizes", list(call.integers("bias_sizes")));
  call.emit(core, {call.tensor("grad_output"), call.tensor("input"), call.tensor("weight")},
            attributes, llvm::ArrayRef<unsigned>(maskedElements(mask)));
}

void rondo::fx::lowerEmbedding(Call &call, llvm::StringRef core) {
  call.ignore("scale_grad_by_freq sparse"); // of its backward
  call.emit(core, {call.tensor("weight"), call.tensor("indices")},
            {{"padding_idx", call.integer("padding_idx", -1)}});
}

void rondo::fx::lowerEmbeddingBackward(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("grad_output"), call.tensor("indices")},
            {{"num_weights", call.integer("num_weights")},
             {"padding_idx", call.integer("padding_idx", -1)},
             {"scale_grad_by_freq", call.boolean("scale_grad_by_freq")}});
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// ATen's number for how a loss is reduced: the mean unless it says otherwise.
static Attribute reduction(Call &call) {
  static constexpr const char *words[] = {"none", "mean", "sum"};
  int64_t number = call.integer("reduction", 1);
  if (number >= 0 && number < 3)
    return words[number];
  call.fail();
  return words[0];
}

void rondo::fx::lowerNLLLoss(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("self"), call.tensor("target"), call.optionalTensor("weight")},
            {{"reduction", reduction(call)}, {"ignore_index", call.integer("ignore_index", -100)}});
}

void rondo::fx::lowerNLLLossBackward(Call &call, llvm::StringRef core) {
  call.emit(core,
            {call.tensor("grad_output"), call.tensor("self"), call.tensor("target"),
             call.optionalTensor("weight"), call.tensor("total_weight")},
            {{"reduction", reduction(call)}, {"ignore_index", call.integer("ignore_index", -100)}});
}

void rondo::fx::lowerMSELoss(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("self"), call.tensor("target")}, {{"reduction", reduction(call)}});
}

void rondo::fx::lowerMSELossBackward(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("grad_output"), call.tensor("self"), call.tensor("target")},
            {{"reduction", reduction(call)}});
}
