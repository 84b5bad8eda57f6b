//===- SoftmaxKernels.cpp - Softmax and its gradients ---------------------===//
//
// The operand of a forward is cast to the dtype of the result first, as PyTorch does. A row that is
// all -inf gives nan, and 0 in safe_softmax.
//
//===----------------------------------------------------------------------===//

#include "RowSet.h"
#include "SoftmaxDevice.h"

using namespace rondo;
using namespace rondo::cuda;

/// F64 if any of the tensors is f64.
static ComputeType computeTypeOf(llvm::ArrayRef<DType> dtypes) {
  return llvm::is_contained(dtypes, DType::F64) ? ComputeType::F64 : ComputeType::F32;
}

/// The tensors, of one shape, by rows along the op's `dim`.
template <int N>
static llvm::Expected<RowSetTypes<N>> makeRows(const OpContext &op,
                                               std::array<const TensorType *, N> types,
                                               std::optional<DType> as, ComputeType compute) {
  TensorSizes first(*types[0]);
  int64_t dim = op.intAttribute("dim");
  unsigned at = dim < 0 ? dim + std::max(first.rank(), 1U) : dim;
  llvm::SmallVector<int64_t, 5> rows = first.shape, row = {1};
  if (first.rank() > 0) {
    row = {rows[at]};
    rows.erase(rows.begin() + at);
  }
  std::array<RowTensor, N> tensors;
  for (int k = 0; k < N; ++k)
    tensors[k] = RowTensor::alongDim(TensorSizes(*types[k]), at);
  if (as)
    tensors[0].as = *as;
  llvm::SmallVector<unsigned, 3> all;
  for (int k = 0; k < N; ++k)
    all.push_back(k);
  return makeRowSet<N>(rows, row, tensors, compute, all);
}

static llvm::Expected<CUDAKernelFn> makeForward(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  const TensorType *out = op.results()[0]->asTensor();
  ComputeType compute = computeTypeOf(out->dtype);
  llvm::Expected<RowSetTypes<2>> rows = makeRows<2>(op, {op.tensor(0), out}, out->dtype, compute);
  if (!rows)
    return rows.takeError();
  SoftmaxParams params;
  params.isLog = op.spec().name == "log_softmax";
  params.isSafe = op.spec().name == "safe_softmax";
  CUDAKernelFn kernel;
  kernel.functions = {{softmax::forward(compute)}};
  kernel.enqueue = [rows = *rows, params](const CUDAWork &work, const TypedArgs &args) {
    SoftmaxParams run = params;
    run.set = rows.at({args.operand(0).data, args.result().data}, {0, 1});
    return run.set.rows.count * run.set.row.count == 0 ? llvm::Error::success()
                                                       : work.launch(0, rows.grid(), run);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeBackward(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  const TensorType *grad = op.tensor(0), *out = op.tensor(1), *result = op.results()[0]->asTensor();
  ComputeType compute = computeTypeOf({grad->dtype, out->dtype, result->dtype});
  llvm::Expected<RowSetTypes<3>> rows = makeRows<3>(op, {grad, out, result}, std::nullopt, compute);
  if (!rows)
    return rows.takeError();
  SoftmaxBackwardParams params;
  params.isLog = op.spec().name == "log_softmax_backward";
  CUDAKernelFn kernel;
  kernel.functions = {{softmax::backward(compute)}};
  kernel.enqueue = [rows = *rows, params](const CUDAWork &work, const TypedArgs &args) {
    SoftmaxBackwardParams run = params;
    run.set = rows.at({args.operand(0).data, args.operand(1).data, args.result().data}, {0, 1, 2});
    return run.set.rows.count * run.set.row.count == 0 ? llvm::Error::success()
                                                       : work.launch(0, rows.grid(), run);
  };
  return kernel;
}

void cuda::addSoftmaxKernels(CUDAExecutor &executor) {
  for (const char *op : {"softmax", "safe_softmax", "log_softmax"})
    addKernel(executor, {.op = op, .make = makeForward});
  for (const char *op : {"softmax_backward", "log_softmax_backward"})
    addKernel(executor, {.op = op, .make = makeBackward});
}
