//===- EmbeddingKernels.cpp - Embedding, its gradient, one_hot ------------===//
//
// What an index out of range means is said in IndexDevice.h. Negative ones are out of range.
//
//===----------------------------------------------------------------------===//

#include "Indexing.h"

using namespace rondo;
using namespace rondo::cuda;

static llvm::Expected<CUDAKernelFn> makeEmbedding(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes weights(*op.tensor(0)), out(*op.results()[0]->asTensor());
  llvm::Expected<IndexedMove> move =
      IndexedMove::get(IndexedDims::ofRows(op, weights, out), out.dtype);
  if (!move)
    return move.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{indexing::take()}};
  kernel.enqueue = [move = *move](const CUDAWork &work, const TypedArgs &args) {
    return move.take(work, 0, args, args.operand(0).data, args.result().data);
  };
  return kernel;
}

/// Rows are summed in f64. The row `padding_idx` stays 0; with scale_grad_by_freq a row is divided
/// by how often the indices name it.
static llvm::Expected<CUDAKernelFn> makeEmbeddingBackward(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes grad(*op.tensor(0)), out(*op.results()[0]->asTensor());
  llvm::Expected<IndexedMove> zero =
      IndexedMove::get(IndexedDims::ofAll(out.shape, out.strides, out.strides), out.dtype);
  if (!zero)
    return zero.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{indexing::take()}};
  WorkspaceParts parts;
  llvm::Expected<SliceSum> sum = SliceSum::get(IndexedDims::ofRows(op, out, grad), out.dtype,
                                               {.isMean = op.boolAttribute("scale_grad_by_freq"),
                                                .dropped = op.intAttribute("padding_idx", -1)},
                                               parts, kernel.functions);
  if (!sum)
    return sum.takeError();
  kernel.workspaceBytes = parts.bytes();
  kernel.enqueue = [zero = *zero, sum = *sum](const CUDAWork &work,
                                              const TypedArgs &args) -> llvm::Error {
    if (llvm::Error error = zero.zero(work, 0, args, args.result().data))
      return error;
    return sum.enqueue(work, args, args.operand(0).data, args.result().data);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeOneHot(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes index(*op.tensor(0)), out(*op.results()[0]->asTensor());
  llvm::SmallVector<int64_t, 5> indexStrides = index.strides, classStrides(out.rank(), 0);
  indexStrides.push_back(0);
  classStrides.back() = 1;
  OneHotParams params;
  params.isI64 = index.dtype == DType::I64;
  llvm::Expected<Layout<3>> layout =
      makeLayout<3>(out.shape, {out.strides, indexStrides, classStrides});
  if (!layout)
    return layout.takeError();
  params.layout = *layout;
  CUDAKernelFn kernel;
  kernel.functions = {{indexing::oneHot()}};
  kernel.enqueue = [params](const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (params.layout.count == 0)
      return llvm::Error::success();
    OneHotParams run = params;
    run.indices = args.operand(0).data;
    run.out = args.result().as<int64_t>();
    return work.launch(0, indexGrid(run.layout.count), run);
  };
  return kernel;
}

void cuda::addEmbeddingKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "embedding", .make = makeEmbedding});
  addKernel(executor, {.op = "embedding_backward", .make = makeEmbeddingBackward});
  addKernel(executor, {.op = "one_hot", .make = makeOneHot});
}
