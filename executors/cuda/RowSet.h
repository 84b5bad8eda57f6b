//===- RowSet.h - Making kernels that work row by row -----------*- C++ -*-===//

#pragma once

#include "KernelTypes.h"
#include "PointwiseDevice.h"
#include "RowSetDevice.h"

namespace rondo::cuda {

/// Are elements of `type` the same numbers after a cast to `as`?
bool isExactCast(DType type, DType as);

/// A tensor of a RowSet: its strides along the rows' dimensions and along those of a row.
struct RowTensor {
  bool isPresent = false;
  DType dtype = DType::F32, as = DType::F32; ///< elements are rounded to `as`
  llvm::SmallVector<int64_t, 5> rows, row;

  /// Of no tensor.
  RowTensor() = default;
  /// With its last `numDims` dimensions in the row.
  RowTensor(const TensorSizes &tensor, unsigned numDims)
      : isPresent(true), dtype(tensor.dtype), as(tensor.dtype) {
    llvm::ArrayRef<int64_t> strides = tensor.strides;
    rows.assign(strides.begin(), strides.end() - numDims);
    row.assign(strides.end() - numDims, strides.end());
  }
  /// With the one dimension `dim` in the row, counted from 0; a 0-d tensor is a row of one element.
  static RowTensor alongDim(const TensorSizes &tensor, unsigned dim);
  /// One element for each row, or for each position in a row.
  static RowTensor ofRows(DType dtype, llvm::ArrayRef<int64_t> strides);
  static RowTensor ofPositions(DType dtype, llvm::ArrayRef<int64_t> strides);
};

/// A RowSet but for addresses.
template <int N> struct RowSetTypes {
  RowSet<N> set;
  /// Could rows be visited as vectors, if addresses are aligned?
  bool canBeVector = false;

  /// The set of one run: with addresses, null for a tensor that is not there. Of the tensors that
  /// vectors are of, those in `vectors` at least are aligned where the set is one of vectors.
  RowSet<N> at(const std::array<void *, N> &addresses, llvm::ArrayRef<unsigned> vectors) const {
    RowSet<N> run = set;
    run.isVector = canBeVector;
    for (int k = 0; k < N; ++k)
      run.data[k] = addresses[k];
    for (unsigned k : vectors)
      run.isVector &= isVectorAligned(addresses[k], set.types[k]);
    return run;
  }
  CUDAGrid grid() const {
    return {{blocksFor(set.rows.count, set.lanes.rows()), 1, 1}, {rowBlock, 1, 1}, 0};
  }

  /// May `address` be null, or is it aligned to a vector?
  static bool isVectorAligned(const void *address, ElementType type) {
    size_t bytes = std::min<size_t>(16, dtypeSize(DType(type)) * pointwiseVector);
    return reinterpret_cast<uintptr_t>(address) % bytes == 0;
  }
};

/// Of tensors whose rows are along the shape `row` and lie along the shape `rows`. The tensors in
/// `vectors` are those that kernels visit along the rows. Rows are numbered as those of tensor
/// `main` lie in memory. Errors: too many dimensions.
template <int N>
llvm::Expected<RowSetTypes<N>> makeRowSet(llvm::ArrayRef<int64_t> rows, llvm::ArrayRef<int64_t> row,
                                          std::array<RowTensor, N> tensors, ComputeType compute,
                                          llvm::ArrayRef<unsigned> vectors, unsigned main = 0) {
  std::array<llvm::ArrayRef<int64_t>, N> alongRows, alongRow;
  for (int k = 0; k < N; ++k) {
    tensors[k].rows.resize(rows.size(), 0);
    tensors[k].row.resize(row.size(), 0);
    alongRows[k] = tensors[k].rows;
    alongRow[k] = tensors[k].row;
  }
  RowSetTypes<N> types;
  RowSet<N> &set = types.set;
  llvm::Expected<Layout<N>> rowsLayout =
      makeLayout<N>(rows, alongRows, memoryOrder(alongRows[main]));
  if (!rowsLayout)
    return rowsLayout.takeError();
  llvm::Expected<Layout<N>> rowLayout = makeLayout<N>(row, alongRow);
  if (!rowLayout)
    return rowLayout.takeError();
  set.rows = *rowsLayout;
  set.row = *rowLayout;
  for (int k = 0; k < N; ++k) {
    set.types[k] = elementType(tensors[k].dtype);
    set.as[k] =
        isExactCast(tensors[k].dtype, tensors[k].as) ? set.types[k] : elementType(tensors[k].as);
  }
  int64_t betweenRows = set.rows.strides[main][set.rows.rank - 1];
  int64_t betweenElements = set.row.strides[main][set.row.rank - 1];
  bool isAcross = set.rows.count > 1 && set.row.count > 1 && betweenRows < betweenElements;
  set.lanes = isAcross ? Lanes::acrossRows(set.rows.count) : Lanes::alongRow(set.row.count);
  types.canBeVector =
      set.lanes.adjacent && set.row.rank == 1 && set.row.count % pointwiseVector == 0;
  for (unsigned k : vectors) {
    if (!tensors[k].isPresent)
      continue;
    types.canBeVector &= set.row.strides[k][0] == 1 && isVectorType(compute, set.types[k]);
    for (int d = 0; d < set.rows.rank; ++d)
      types.canBeVector &= set.rows.strides[k][d] % pointwiseVector == 0;
  }
  return types;
}

} // namespace rondo::cuda
