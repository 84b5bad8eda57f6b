//===- IndexedElements.h - Elements named by index tensors ------*- C++ -*-===//
//
// An op that reads or updates by index is a list: for each element that it moves, in row-major
// order of what is moved, the offset in elements of its place in the indexed tensor. Indices are
// data and may be wrong, and a kernel cannot report it: an index that is out of range gives the
// offset `nowhere`. Reading from nowhere gives nan, or 0 in dtypes that have no nan; what is put
// nowhere is dropped.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"

#include "rondo/host/HostExecutor.h"

namespace rondo::host {

inline constexpr int64_t nowhere = -1;
using Offsets = std::vector<int64_t>;

/// Of the tensor that is indexed; both in elements.
struct IndexedLayout {
  llvm::ArrayRef<int64_t> shape, strides;
};

/// Every element of `tensor`.
Offsets allOffsets(const TensorRef &tensor);
/// gather, scatter: at every index tuple of `index`, with its value along `dim` (which may be
/// negative: from the end).
Offsets elementOffsets(const TensorRef &index, int64_t dim, IndexedLayout target);
/// index_select, index_copy: the indices of `dim` that `index`, of rank 0 or 1, names.
Offsets sliceOffsets(const TensorRef &index, int64_t dim, IndexedLayout target);
/// index, index_put: operands `first` and on index one dimension each, as ir/CoreOpsIndex.cpp
/// describes. Negative indices count from the end. `shape` receives that of what is moved.
Offsets broadcastIndexOffsets(const HostArgs &args, unsigned first, IndexedLayout target,
                              llvm::SmallVectorImpl<int64_t> &shape);

/// out = the elements of `source` at `offsets`, in order. Same dtype.
void take(const TensorRef &source, const Offsets &offsets, const TensorRef &out);
/// The elements of `tensor` in row-major order, as they lie in memory.
std::vector<std::byte> denseBytes(const TensorRef &tensor);
/// Stores `elements` of the dtype of `out` at `offsets` in it, in order: the last of those for one
/// place stays.
void put(llvm::ArrayRef<std::byte> elements, const Offsets &offsets, const TensorRef &out);

} // namespace rondo::host
