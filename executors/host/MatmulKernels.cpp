//===- MatmulKernels.cpp - Products of matrices ---------------------------===//
//
// f16 and bf16 are multiplied and summed in f32, f32 and f64 in their own type, integers modulo
// 2^64; scaling and the bias come before the one rounding to the dtype of the result. As in
// PyTorch, a bias whose factor is 0 is not looked at, and bool has no products.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"
#include "Matrices.h"

using namespace rondo;
using namespace rondo::host;

template <typename T> static T factor(double value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(toInteger(value));
  else
    return static_cast<T>(value);
}

template <typename T> static void compute(const MatrixProduct &product, const HostArgs &args) {
  MatrixBatch out(args.result().data, product.out);
  MatrixBatch a(args.operand(product.aOperand).data, product.a);
  MatrixBatch b(args.operand(product.bOperand).data, product.b);
  MatrixBatch bias = out; // not looked at unless there is one
  if (product.bias)
    bias = {args.operand(product.biasOperand).data, *product.bias};
  Matrix<T> left, right;
  int64_t leftOffset = -1, rightOffset = -1; // of what is loaded
  forEachOffset<4>(out.shape, {out.strides, a.strides, b.strides, bias.strides}, [&](auto offsets) {
    if (offsets[1] != leftOffset)
      left = load<T>(a, leftOffset = offsets[1]);
    if (offsets[2] != rightOffset)
      right = load<T>(b, rightOffset = offsets[2]);
    Matrix<T> result = left * right;
    if (product.alpha != 1)
      result *= factor<T>(product.alpha);
    if (product.bias)
      result += factor<T>(product.beta) * load<T>(bias, offsets[3]);
    store(result, out, offsets[0]);
  });
}

static void run(const MatrixProduct &product, const HostArgs &args) {
  if (product.out.dtype == DType::F64)
    compute<double>(product, args);
  else if (isFloat(product.out.dtype))
    compute<float>(product, args);
  else
    compute<uint64_t>(product, args);
}

static llvm::Expected<HostKernelFn> makeProduct(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  if (op.results()[0]->asTensor()->dtype == DType::Bool)
    return makeError("has no host kernel for dtype bool");
  return HostKernelFn([product = *matrixProduct(op)](const HostArgs &args) { run(product, args); });
}

void host::addMatmulKernels(HostExecutor &executor) {
  for (const char *op : {"mm", "bmm", "matmul", "addmm", "baddbmm", "linear"})
    addKernel(executor, {.op = op, .make = makeProduct});
}
