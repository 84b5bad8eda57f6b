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

namespace {

/// out = alpha * (a @ b) + beta * bias
struct Product {
  MatrixBatch out = {}, a = {}, b = {};
  std::optional<MatrixBatch> bias = std::nullopt;
  double alpha = 1, beta = 1;
};

} // namespace

template <typename T> static T factor(double value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(toInteger(value));
  else
    return static_cast<T>(value);
}

template <typename T> static void compute(const Product &product) {
  llvm::ArrayRef<int64_t> shape = product.out.shape;
  MatrixBatch a = product.a.broadcastTo(shape), b = product.b.broadcastTo(shape);
  bool hasBias = product.bias && product.beta != 0;
  MatrixBatch bias = hasBias ? *product.bias : product.out;
  Matrix<T> left, right;
  int64_t leftOffset = -1, rightOffset = -1; // of what is loaded
  forEachOffset<4>(shape, {product.out.strides, a.strides, b.strides, bias.strides},
                   [&](auto offsets) {
                     if (offsets[1] != leftOffset)
                       left = load<T>(a, leftOffset = offsets[1]);
                     if (offsets[2] != rightOffset)
                       right = load<T>(b, rightOffset = offsets[2]);
                     Matrix<T> result = left * right;
                     if (product.alpha != 1)
                       result *= factor<T>(product.alpha);
                     if (hasBias)
                       result += factor<T>(product.beta) * load<T>(bias, offsets[3]);
                     store(result, product.out, offsets[0]);
                   });
}

static void run(const Product &product) {
  if (product.out.dtype == DType::F64)
    compute<double>(product);
  else if (isFloat(product.out.dtype))
    compute<float>(product);
  else
    compute<uint64_t>(product);
}

/// The kernel that runs what `describe` makes of its arguments.
template <typename Describe>
static llvm::Expected<HostKernelFn> makeProduct(const OpContext &op, Describe describe) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  if (op.results()[0]->asTensor()->dtype == DType::Bool)
    return makeError("has no host kernel for dtype bool");
  return HostKernelFn([describe](const HostArgs &args) { run(describe(args)); });
}

/// mm, bmm
static llvm::Expected<HostKernelFn> makePlain(const OpContext &op) {
  return makeProduct(op, [](const HostArgs &args) {
    return Product{matrices(args.result()), matrices(args.operand(0)), matrices(args.operand(1))};
  });
}

/// addmm, baddbmm
static llvm::Expected<HostKernelFn> makeWithBias(const OpContext &op) {
  double alpha = op.numberAttribute("alpha", 1), beta = op.numberAttribute("beta", 1);
  return makeProduct(op, [alpha, beta](const HostArgs &args) {
    return Product{matrices(args.result()),
                   matrices(args.operand(1)),
                   matrices(args.operand(2)),
                   broadcastLike(args.operand(0), args.result().shape),
                   alpha,
                   beta};
  });
}

/// A vector on the left is a row, on the right a column; the result lacks that dimension.
static llvm::Expected<HostKernelFn> makeMatmul(const OpContext &op) {
  return makeProduct(op, [](const HostArgs &args) {
    const TensorRef &a = args.operand(0), &b = args.operand(1), &out = args.result();
    Product product;
    product.a = a.rank() == 1 ? rowVectors(a) : matrices(a);
    product.b = b.rank() == 1 ? rowVectors(b).transposed() : matrices(b);
    if (a.rank() > 1 && b.rank() > 1) {
      product.out = matrices(out);
    } else if (a.rank() > 1) {
      product.out = rowVectors(out).transposed();
    } else if (b.rank() > 1) {
      product.out = rowVectors(out);
    } else {
      product.out.data = out.data;
      product.out.dtype = out.dtype;
    }
    return product;
  });
}

static llvm::Expected<HostKernelFn> makeLinear(const OpContext &op) {
  return makeProduct(op, [](const HostArgs &args) {
    const TensorRef &x = args.operand(0), &out = args.result();
    bool isVector = x.rank() == 1;
    Product product{isVector ? rowVectors(out) : matrices(out),
                    isVector ? rowVectors(x) : matrices(x), matrices(args.operand(1)).transposed()};
    if (args.has(2)) {
      product.bias = rowVectors(args.operand(2)).broadcastTo(product.out.shape);
      product.bias->rows = product.out.rows;
    }
    return product;
  });
}

void host::addMatmulKernels(HostExecutor &executor) {
  for (const char *op : {"mm", "bmm"})
    addKernel(executor, {.op = op, .make = makePlain});
  for (const char *op : {"addmm", "baddbmm"})
    addKernel(executor, {.op = op, .make = makeWithBias});
  addKernel(executor, {.op = "matmul", .make = makeMatmul});
  addKernel(executor, {.op = "linear", .make = makeLinear});
}
