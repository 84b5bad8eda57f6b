//===- MatrixProduct.cpp - Products of batches of matrices ----------------===//

#include "rondo/executors/MatrixProduct.h"

#include "rondo/executors/Shapes.h"

using namespace rondo;

MatrixLayout MatrixLayout::ofMatrices(DType dtype, llvm::ArrayRef<int64_t> shape,
                                      llvm::ArrayRef<int64_t> strides) {
  assert(shape.size() >= 2 && "no matrices");
  MatrixLayout result = ofRowVectors(dtype, shape, strides);
  result.rows = result.shape.pop_back_val();
  result.rowStride = result.strides.pop_back_val();
  return result;
}

MatrixLayout MatrixLayout::ofRowVectors(DType dtype, llvm::ArrayRef<int64_t> shape,
                                        llvm::ArrayRef<int64_t> strides) {
  assert(!shape.empty() && "no vectors");
  MatrixLayout result;
  result.dtype = dtype;
  result.shape.append(shape.begin(), shape.end() - 1);
  result.strides.append(strides.begin(), strides.end() - 1);
  result.columns = shape.back();
  result.columnStride = strides.back();
  return result;
}

MatrixLayout MatrixLayout::transposed() const {
  MatrixLayout result = *this;
  std::swap(result.rows, result.columns);
  std::swap(result.rowStride, result.columnStride);
  return result;
}

MatrixLayout MatrixLayout::broadcastTo(llvm::ArrayRef<int64_t> batch) const {
  MatrixLayout result = *this;
  result.strides = broadcastStrides({nullptr, dtype, shape, strides}, batch);
  result.shape.assign(batch.begin(), batch.end());
  return result;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static MatrixLayout matricesOf(const TensorType &type) {
  return MatrixLayout::ofMatrices(type.dtype, constantDims(type.shape), constantDims(type.strides));
}

static MatrixLayout rowVectorsOf(const TensorType &type) {
  return MatrixLayout::ofRowVectors(type.dtype, constantDims(type.shape),
                                    constantDims(type.strides));
}

/// mm, bmm
static MatrixProduct plainProduct(const OpContext &op, const TensorType &out) {
  MatrixProduct product;
  product.out = matricesOf(out);
  product.a = matricesOf(*op.tensor(0));
  product.b = matricesOf(*op.tensor(1));
  return product;
}

/// addmm, baddbmm
static MatrixProduct productWithBias(const OpContext &op, const TensorType &out) {
  MatrixProduct product;
  product.out = matricesOf(out);
  product.a = matricesOf(*op.tensor(product.aOperand = 1));
  product.b = matricesOf(*op.tensor(product.bOperand = 2));
  product.alpha = op.numberAttribute("alpha", 1);
  product.beta = op.numberAttribute("beta", 1);
  if (product.beta != 0) {
    const TensorType &bias = *op.tensor(product.biasOperand = 0);
    auto shape = constantDims(bias.shape), strides = constantDims(bias.strides);
    auto outShape = constantDims(out.shape);
    product.bias = MatrixLayout::ofMatrices(
        bias.dtype, outShape, broadcastStrides({nullptr, bias.dtype, shape, strides}, outShape));
  }
  return product;
}

/// A vector on the left is a row, on the right a column; the result lacks that dimension.
static MatrixProduct matmulProduct(const OpContext &op, const TensorType &out) {
  const TensorType &a = *op.tensor(0), &b = *op.tensor(1);
  MatrixProduct product;
  product.a = a.rank() == 1 ? rowVectorsOf(a) : matricesOf(a);
  product.b = b.rank() == 1 ? rowVectorsOf(b).transposed() : matricesOf(b);
  if (a.rank() > 1 && b.rank() > 1)
    product.out = matricesOf(out);
  else if (a.rank() > 1)
    product.out = rowVectorsOf(out).transposed();
  else if (b.rank() > 1)
    product.out = rowVectorsOf(out);
  else
    product.out.dtype = out.dtype;
  return product;
}

static MatrixProduct linearProduct(const OpContext &op, const TensorType &out) {
  bool isVector = op.tensor(0)->rank() == 1;
  MatrixProduct product;
  product.out = isVector ? rowVectorsOf(out) : matricesOf(out);
  product.a = isVector ? rowVectorsOf(*op.tensor(0)) : matricesOf(*op.tensor(0));
  product.b = matricesOf(*op.tensor(1)).transposed();
  if (const TensorType *bias = op.tensor(product.biasOperand = 2)) {
    product.bias = rowVectorsOf(*bias).broadcastTo(product.out.shape);
    product.bias->rows = product.out.rows;
  }
  return product;
}

std::optional<MatrixProduct> rondo::matrixProduct(const OpContext &op) {
  llvm::StringRef name = op.spec().name;
  const TensorType *out = op.results().empty() ? nullptr : op.results()[0]->asTensor();
  if (!out)
    return std::nullopt;
  MatrixProduct product;
  if (name == "mm" || name == "bmm")
    product = plainProduct(op, *out);
  else if (name == "addmm" || name == "baddbmm")
    product = productWithBias(op, *out);
  else if (name == "matmul")
    product = matmulProduct(op, *out);
  else if (name == "linear")
    product = linearProduct(op, *out);
  else
    return std::nullopt;
  product.a = product.a.broadcastTo(product.out.shape);
  product.b = product.b.broadcastTo(product.out.shape);
  return product;
}
