//===- EmbeddingKernels.cpp - Embedding, its gradient, one_hot ------------===//
//
// What an index out of range means is said in IndexedElements.h. Negative ones are out of range.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "IndexKernels.h"
#include "IndexedElements.h"

using namespace rondo;
using namespace rondo::host;

static llvm::Expected<HostKernelFn> makeEmbedding(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([](const HostArgs &args) {
    const TensorRef &weights = args.operand(0), &indices = args.operand(1);
    // The rows come one after the other, in row-major order of the indices.
    Offsets flat = toDense<int64_t>(indices);
    int64_t count = flat.size(), stride = 1;
    TensorRef list{flat.data(), DType::I64, count, stride};
    take(weights, sliceOffsets(list, 0, {weights.shape, weights.strides}), args.result());
  });
}

/// Rows are summed in f64. The row `padding_idx` stays 0; with scale_grad_by_freq a row is divided
/// by how often the indices name it.
static llvm::Expected<HostKernelFn> makeEmbeddingBackward(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([padding = op.intAttribute("padding_idx", -1),
                       scale = op.boolAttribute("scale_grad_by_freq")](const HostArgs &args) {
    const TensorRef &out = args.result();
    int64_t rows = out.shape[0], columns = out.shape[1];
    std::vector<double> grad = toDense<double>(args.operand(0)), sums(rows * columns, 0);
    std::vector<int64_t> indices = toDense<int64_t>(args.operand(1)), counts(rows, 0);
    auto isCounted = [&](int64_t row) { return row >= 0 && row < rows && row != padding; };
    for (size_t i = 0; i < indices.size(); ++i) {
      int64_t row = indices[i];
      if (!isCounted(row))
        continue;
      ++counts[row];
      for (int64_t j = 0; j < columns; ++j)
        sums[row * columns + j] += grad[i * columns + j];
    }
    if (scale)
      for (int64_t i = 0; i < rows * columns; ++i)
        sums[i] /= double(std::max<int64_t>(counts[i / columns], 1));
    fromDense<double>(sums, out);
  });
}

static llvm::Expected<HostKernelFn> makeOneHot(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([](const HostArgs &args) {
    const TensorRef &out = args.result();
    int64_t classes = out.shape.back();
    std::vector<int64_t> indices = toDense<int64_t>(args.operand(0));
    std::vector<int64_t> values(indices.size() * classes, 0);
    for (size_t i = 0; i < indices.size(); ++i)
      if (indices[i] >= 0 && indices[i] < classes)
        values[i * classes + indices[i]] = 1;
    fromDense<int64_t>(values, out);
  });
}

void host::addEmbeddingKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "embedding", .make = makeEmbedding});
  addKernel(executor, {.op = "embedding_backward", .make = makeEmbeddingBackward});
  addKernel(executor, {.op = "one_hot", .make = makeOneHot});
}
