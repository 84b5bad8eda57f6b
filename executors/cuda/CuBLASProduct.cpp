//===- CuBLASProduct.cpp - A product as cuBLASLt takes it -----------------===//

#include "CuBLASProduct.h"

#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

using namespace rondo;
using namespace rondo::cuda;

namespace {

using Layouts = llvm::SmallVector<MatrixLayout *, 4>;

} // namespace

static Layouts layoutsOf(MatrixProduct &product) {
  Layouts layouts = {&product.out, &product.a, &product.b};
  if (product.bias)
    layouts.push_back(&*product.bias);
  return layouts;
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// Leaves out batch dimensions of size 1 and merges neighbours that all tensors walk through with
/// one stride.
static void mergeBatches(MatrixProduct &product) {
  Layouts layouts = layoutsOf(product);
  llvm::SmallVector<int64_t, 5> shape;
  llvm::SmallVector<llvm::SmallVector<int64_t, 5>, 4> strides(layouts.size());
  for (size_t d = 0; d < product.out.shape.size(); ++d) {
    int64_t size = product.out.shape[d];
    if (size == 1)
      continue;
    bool merges = !shape.empty();
    for (size_t i = 0; i < layouts.size(); ++i)
      merges = merges && strides[i].back() == layouts[i]->strides[d] * size;
    if (merges)
      shape.back() *= size;
    else
      shape.push_back(size);
    for (size_t i = 0; i < layouts.size(); ++i) {
      if (merges)
        strides[i].pop_back();
      strides[i].push_back(layouts[i]->strides[d]);
    }
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    layouts[i]->shape = shape;
    layouts[i]->strides = strides[i];
  }
}

/// Makes rows of the innermost batch dimensions along which `b` stands still and the others go on
/// as from row to row.
static void foldIntoRows(MatrixProduct &product) {
  auto isRows = [](const MatrixLayout &layout) {
    return layout.rows == 1 || layout.strides.back() == layout.rows * layout.rowStride;
  };
  while (!product.out.shape.empty() && product.b.strides.back() == 0 && isRows(product.out) &&
         isRows(product.a) && (!product.bias || isRows(*product.bias))) {
    for (MatrixLayout *layout : layoutsOf(product)) {
      if (layout != &product.b) {
        if (layout->rows == 1)
          layout->rowStride = layout->strides.back();
        layout->rows *= layout->shape.back();
      }
      layout->shape.pop_back();
      layout->strides.pop_back();
    }
  }
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// Nothing if its columns are not dense, or overlap.
static std::optional<StoredMatrix> columnMajor(const MatrixLayout &matrix) {
  bool isDense = matrix.rows == 1 || matrix.rowStride == 1;
  bool isApart = matrix.columns == 1 || matrix.columnStride >= matrix.rows;
  if (!isDense || !isApart)
    return std::nullopt;
  return StoredMatrix{matrix.rows, matrix.columns,
                      matrix.columns == 1 ? matrix.rows : matrix.columnStride};
}

/// As it is or transposed.
static std::optional<StoredMatrix> factorOf(const MatrixLayout &matrix) {
  std::optional<StoredMatrix> plain = columnMajor(matrix),
                              transposed = columnMajor(matrix.transposed());
  if (transposed)
    transposed->isTransposed = true;
  bool isDenseRow = matrix.rows == 1 && matrix.columnStride == 1;
  return !plain || (transposed && isDenseRow) ? transposed : plain;
}

/// Is `bias` one element for each row? The library adds such a one without a factor, and not in
/// f64.
static bool isVector(const MatrixLayout &bias, double beta) {
  return bias.dtype != DType::F64 && beta == 1 && (bias.rows == 1 || bias.rowStride == 1) &&
         (bias.columns == 1 || bias.columnStride == 0) &&
         llvm::all_of(bias.strides, [](int64_t stride) { return stride == 0; });
}

static llvm::Error strange(const llvm::Twine &what) {
  return makeError(what + " has strides that cuBLASLt cannot express");
}

/// The column-major product `product`, without its calls.
static llvm::Expected<CuBLASProduct> describeColumnMajor(const MatrixProduct &product) {
  CuBLASProduct result;
  result.dtype = product.out.dtype;
  result.m = product.out.rows;
  result.n = product.out.columns;
  result.k = product.a.columns;
  result.alpha = product.alpha;
  std::optional<StoredMatrix> left = factorOf(product.a), right = factorOf(product.b),
                              out = columnMajor(product.out);
  if (!left)
    return strange("operand #" + llvm::Twine(product.aOperand));
  if (!right)
    return strange("operand #" + llvm::Twine(product.bOperand));
  if (!out)
    return strange("its result");
  result.left = *left;
  result.right = *right;
  result.out = *out;
  if (!product.bias)
    return result;
  if (isVector(*product.bias, product.beta)) {
    result.hasVector = true;
    return result;
  }
  result.addend = columnMajor(*product.bias);
  if (!result.addend)
    return makeError("operand #" + llvm::Twine(product.biasOperand) +
                     " is a bias that cuBLASLt cannot add");
  result.beta = product.beta;
  return result;
}

/// out^T = b^T @ a^T
static MatrixProduct swapped(const MatrixProduct &product) {
  MatrixProduct result = product;
  result.out = product.out.transposed();
  result.a = product.b.transposed();
  result.b = product.a.transposed();
  std::swap(result.aOperand, result.bOperand);
  if (product.bias)
    result.bias = product.bias->transposed();
  return result;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Gives the longest batch dimension to the library, and a call to every index of the others.
static llvm::Error addCalls(CuBLASProduct &result, const MatrixProduct &product) {
  llvm::ArrayRef<int64_t> shape = product.out.shape;
  size_t longest = std::max_element(shape.begin(), shape.end()) - shape.begin();
  int64_t numCalls = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    if (d != longest)
      numCalls *= shape[d];
  if (numCalls > maxCalls)
    return makeError("its batches have several strides, which needs " + llvm::Twine(numCalls) +
                     " calls of cuBLASLt");
  if (!shape.empty()) {
    result.batches = shape[longest];
    result.left.batchStride = product.a.strides[longest];
    result.right.batchStride = product.b.strides[longest];
    result.out.batchStride = product.out.strides[longest];
    if (result.addend)
      result.addend->batchStride = product.bias->strides[longest];
  }
  for (int64_t call = 0; call < numCalls; ++call) {
    CuBLASProduct::Offsets at;
    int64_t rest = call;
    for (size_t d = shape.size(); d-- > 0;) {
      if (d == longest)
        continue;
      int64_t index = rest % shape[d];
      rest /= shape[d];
      at.left += index * product.a.strides[d];
      at.right += index * product.b.strides[d];
      at.out += index * product.out.strides[d];
      if (result.addend)
        at.addend += index * product.bias->strides[d];
    }
    result.calls.push_back(at);
  }
  return llvm::Error::success();
}

/// A product without inner elements is 0, which needs no library where the result has no gaps.
static llvm::Expected<CuBLASProduct> describeZero(const MatrixProduct &product) {
  const MatrixLayout &out = product.out;
  int64_t last = (out.rows - 1) * out.rowStride + (out.columns - 1) * out.columnStride;
  CuBLASProduct result;
  result.dtype = out.dtype;
  for (size_t d = 0; d < out.shape.size(); ++d) {
    result.batches *= out.shape[d];
    last += (out.shape[d] - 1) * out.strides[d];
  }
  result.m = out.rows;
  result.n = out.columns;
  if (product.bias)
    return makeError("it has nothing to multiply, only a bias");
  if (last + 1 != result.batches * out.rows * out.columns)
    return strange("its result");
  return result;
}

static bool fits(const CuBLASProduct &product) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return std::max({product.m, product.n, product.k, product.batches}) <= most;
}

llvm::Expected<CuBLASProduct> rondo::cuda::describeProduct(const MatrixProduct &original) {
  MatrixProduct product = original;
  if (product.out.rows == 0 || product.out.columns == 0 ||
      llvm::is_contained(product.out.shape, 0)) {
    CuBLASProduct empty;
    empty.dtype = product.out.dtype;
    return empty;
  }
  if (product.a.columns == 0)
    return describeZero(product);
  mergeBatches(product);
  foldIntoRows(product);
  MatrixProduct transposed = swapped(product);
  llvm::Expected<CuBLASProduct> result = describeColumnMajor(transposed);
  if (!result) {
    llvm::Expected<CuBLASProduct> plain = describeColumnMajor(product);
    if (!plain) {
      llvm::consumeError(plain.takeError());
      return result;
    }
    llvm::consumeError(result.takeError());
    result = std::move(plain);
    result->isSwapped = false;
  }
  if (llvm::Error error = addCalls(*result, result->isSwapped ? transposed : product))
    return error;
  if (!fits(*result))
    return makeError("it has more rows, columns or matrices than cuBLASLt counts");
  return result;
}
