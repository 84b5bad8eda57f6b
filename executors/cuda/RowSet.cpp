//===- RowSet.cpp - Making kernels that work row by row -------------------===//

#include "RowSet.h"

using namespace rondo;
using namespace rondo::cuda;

bool cuda::isExactCast(DType type, DType as) {
  return type == as ||
         (isFloat(type) == isFloat(as) && as != DType::Bool && promote(type, as) == as);
}

RowTensor RowTensor::alongDim(const TensorSizes &tensor, unsigned dim) {
  RowTensor result;
  result.isPresent = true;
  result.dtype = result.as = tensor.dtype;
  result.rows = tensor.strides;
  if (tensor.rank() == 0) {
    result.row = {0};
    return result;
  }
  result.row = {tensor.strides[dim]};
  result.rows.erase(result.rows.begin() + dim);
  return result;
}

RowTensor RowTensor::ofRows(DType dtype, llvm::ArrayRef<int64_t> strides) {
  RowTensor result;
  result.isPresent = true;
  result.dtype = result.as = dtype;
  result.rows.assign(strides.begin(), strides.end());
  return result;
}

RowTensor RowTensor::ofPositions(DType dtype, llvm::ArrayRef<int64_t> strides) {
  RowTensor result;
  result.isPresent = true;
  result.dtype = result.as = dtype;
  result.row.assign(strides.begin(), strides.end());
  return result;
}
