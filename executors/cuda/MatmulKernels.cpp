//===- MatmulKernels.cpp - Products of matrices ---------------------------===//
//
// For what no library takes: integers, and tensors of any strides. f16 and bf16 are multiplied and
// summed in f32, f32 and f64 in their own type, integers modulo 2^64; scaling and the bias come
// before the one rounding to the dtype of the result. As in PyTorch, a bias whose factor is 0 is
// not looked at, and bool has no products.
//
//===----------------------------------------------------------------------===//

#include "KernelTypes.h"
#include "MatmulDevice.h"

#include "rondo/executors/MatrixProduct.h"

using namespace rondo;
using namespace rondo::cuda;

static MatmulStrides stridesOf(const MatrixLayout &layout) {
  return {layout.rowStride, layout.columnStride};
}

/// All but the addresses.
static llvm::Expected<MatmulParams> paramsOf(const MatrixProduct &product) {
  const MatrixLayout &out = product.out, &bias = product.bias ? *product.bias : out;
  llvm::Expected<Layout<4>> batches =
      makeLayout<4>(out.shape, {out.strides, product.a.strides, product.b.strides, bias.strides});
  if (!batches)
    return batches.takeError();
  MatmulParams params;
  params.batches = *batches;
  params.outStrides = stridesOf(out);
  params.aStrides = stridesOf(product.a);
  params.bStrides = stridesOf(product.b);
  params.biasStrides = stridesOf(bias);
  params.rows = out.rows;
  params.columns = out.columns;
  params.inner = product.a.columns;
  params.alpha = product.alpha;
  params.beta = product.beta;
  params.type = elementType(out.dtype);
  return params;
}

static llvm::Expected<CUDAKernelFn> makeProduct(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  MatrixProduct product = *matrixProduct(op);
  if (product.out.dtype == DType::Bool)
    return makeError("has no CUDA kernel for dtype bool");
  llvm::Expected<MatmulParams> params = paramsOf(product);
  if (!params)
    return params.takeError();
  auto tiles = [](int64_t size) { return (size + matmulTile - 1) / matmulTile; };
  int64_t blocks = tiles(params->rows) * tiles(params->columns) * params->batches.count;
  CUDAKernelFn kernel;
  kernel.functions = {{matmulKernel(computeType(product.out.dtype))}};
  kernel.enqueue = [params = *params, blocks, a = product.aOperand, b = product.bOperand,
                    bias = product.bias ? std::optional(product.biasOperand) : std::nullopt](
                       const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (blocks == 0)
      return llvm::Error::success();
    MatmulParams run = params;
    run.out = args.result().data;
    run.a = args.operand(a).data;
    run.b = args.operand(b).data;
    run.bias = bias ? args.operand(*bias).data : nullptr;
    return work.launch(0, {.grid = {blocksFor(blocks, 1)}, .block = {matmulBlock}}, run);
  };
  return kernel;
}

void cuda::addMatmulKernels(CUDAExecutor &executor) {
  for (const char *op : {"mm", "bmm", "matmul", "addmm", "baddbmm", "linear"})
    addKernel(executor, {.op = op, .make = makeProduct});
}
