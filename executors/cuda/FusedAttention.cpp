//===- FusedAttention.cpp - Attention as libraries take it ----------------===//

#include "FusedAttention.h"

#include "rondo/executors/Shapes.h"
#include "rondo/executors/TypedArgs.h"

#include "rondo/ir/Diagnostic.h"

#include <cmath>
#include <limits>

using namespace rondo;
using namespace rondo::cuda;

using Sizes = FusedAttention::Sizes;

/// Elements of 16 bits that are read at once.
static constexpr int64_t vectorElements = 8;

/// `values` behind as many `front` as make four.
static Sizes fourOf(llvm::ArrayRef<int64_t> values, int64_t front) {
  Sizes sizes;
  sizes.fill(front);
  std::copy(values.begin(), values.end(), sizes.end() - values.size());
  return sizes;
}

namespace {

class AttentionDescriber {
public:
  AttentionDescriber(const OpContext &op, bool isBackward)
      : op_(op), firstInput_(isBackward ? 1 : 0), maskOperand_(isBackward ? 6 : 3) {
    result_.isBackward = isBackward;
  }

  llvm::Expected<FusedAttention> describe() {
    if (llvm::Error error = checkForm())
      return error;
    for (auto [tensor, index, isResult] : matrices())
      if (llvm::Error error = addMatrix(tensor, index, isResult))
        return error;
    if (llvm::Error error = addLogSumExp())
      return error;
    if (llvm::Error error = takeScale())
      return error;
    result_.causal = op_.boolAttribute("causal");
    return result_;
  }

private:
  struct Matrix {
    AttentionTensor tensor;
    unsigned index;
    bool isResult;
  };

  /// All tensors but mask and logsumexp.
  llvm::SmallVector<Matrix, 8> matrices() const {
    llvm::SmallVector<Matrix, 8> all = {{attentionQueries, firstInput_, false},
                                        {attentionKeys, firstInput_ + 1, false},
                                        {attentionValues, firstInput_ + 2, false}};
    if (!result_.isBackward) {
      all.push_back({attentionOut, 0, true});
      return all;
    }
    all.push_back({attentionGrad, 0, false});
    all.push_back({attentionOut, 4, false});
    all.push_back({attentionGradQueries, 0, true});
    all.push_back({attentionGradKeys, 1, true});
    all.push_back({attentionGradValues, 2, true});
    return all;
  }

  llvm::Error checkForm() {
    result_.dtype = op_.tensor(firstInput_)->dtype;
    if (result_.dtype != DType::F16 && result_.dtype != DType::BF16)
      return makeError("it is of " + dtypeName(result_.dtype) + ", not of f16 or bf16");
    if (op_.operand(maskOperand_))
      return makeError("it has a mask");
    if (op_.numberAttribute("dropout_p") != 0)
      return makeError("it has dropout");
    if (op_.tensor(firstInput_)->shape.size() > 4)
      return makeError("it has more than four dimensions");
    return llvm::Error::success();
  }

  const TensorType &type(unsigned index, bool isResult) const {
    return isResult ? *op_.results()[index]->asTensor() : *op_.tensor(index);
  }
  static std::string nameOf(unsigned index, bool isResult) {
    return (isResult ? "result #" : "operand #") + std::to_string(index);
  }

  llvm::Error addMatrix(AttentionTensor which, unsigned index, bool isResult) {
    FusedAttention::Tensor &tensor = result_.tensors[which];
    const TensorType &given = type(index, isResult);
    tensor = {isResult, index, fourOf(constantDims(given.shape), 1),
              fourOf(constantDims(given.strides), 1)};
    if (llvm::is_contained(tensor.shape, 0))
      return makeError(nameOf(index, isResult) + " has no elements");
    // A dimension of size 1 is not walked along: its stride is that of a row-major tensor.
    llvm::SmallVector<int64_t, 5> rowMajor = rowMajorStrides(tensor.shape);
    for (size_t d = 0; d < 4; ++d)
      if (tensor.shape[d] == 1)
        tensor.strides[d] = rowMajor[d];
    if (tensor.shape[3] % vectorElements != 0)
      return makeError(nameOf(index, isResult) + " has heads of " + llvm::Twine(tensor.shape[3]) +
                       " elements, which is no multiple of " + llvm::Twine(vectorElements));
    bool hasVectors = tensor.strides[3] == 1;
    for (size_t d = 0; d < 3; ++d)
      hasVectors &= tensor.strides[d] > 0 && tensor.strides[d] % vectorElements == 0;
    if (!hasVectors)
      return makeError(nameOf(index, isResult) + " has rows that cannot be read 16 bytes at once");
    return llvm::Error::success();
  }

  /// [..., L] or [..., L, 1], row-major: there is no room for padding.
  llvm::Error addLogSumExp() {
    bool isResult = !result_.isBackward;
    unsigned index = isResult ? 1 : 5;
    const TensorType &given = type(index, isResult);
    Sizes rows = {result_.batches(), result_.heads(), result_.queries(), 1};
    llvm::SmallVector<int64_t, 5> shape = constantDims(given.shape);
    llvm::SmallVector<int64_t, 5> strides = constantDims(given.strides);
    if (shape.size() + 1 == op_.tensor(firstInput_)->shape.size()) {
      shape.push_back(1);
      strides.push_back(1);
    }
    llvm::SmallVector<int64_t, 5> rowMajor = rowMajorStrides(shape);
    bool fits = shape.size() <= 4 && fourOf(shape, 1) == rows;
    for (size_t d = 0; d < shape.size(); ++d)
      fits &= shape[d] == 1 || strides[d] == rowMajor[d];
    if (!fits)
      return makeError(nameOf(index, isResult) + " is a logsumexp with padding or gaps");
    llvm::SmallVector<int64_t, 5> all = rowMajorStrides(rows);
    result_.tensors[attentionSums] = {isResult, index, rows, fourOf(all, 1)};
    return llvm::Error::success();
  }

  llvm::Error takeScale() {
    double headSize = double(result_.tensor(attentionQueries).shape[3]);
    double scale = op_.numberAttribute("scale", 1 / std::sqrt(headSize));
    if (!(std::fabs(scale) <= std::numeric_limits<float>::max()))
      return makeError("its scale is not finite in f32");
    result_.scale = float(scale);
    return llvm::Error::success();
  }

  const OpContext &op_;
  unsigned firstInput_, maskOperand_;
  FusedAttention result_;
};

} // namespace

llvm::Expected<FusedAttention> rondo::cuda::describeFusedAttention(const Trace &trace, OpId id) {
  OpView view(trace, id);
  bool isForward = view.op().name() == "scaled_dot_product_attention";
  if (!isForward && view.op().name() != "scaled_dot_product_attention_backward")
    return makeError("it is no attention");
  auto isCUDA = [](Device device) { return device.kind == DeviceKind::CUDA; };
  if (std::string why = findForeignType(view, isCUDA, "a CUDA device"); !why.empty())
    return makeError(why);
  OpContext op = view.context();
  return AttentionDescriber(op, !isForward).describe();
}
