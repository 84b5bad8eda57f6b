//===- LoopNest.h - Loops over tensors of one shape -------------*- C++ -*-===//
//
// Visits the elements of several tensors of one shape in row-major order, a row at a time.
// Neighbouring dimensions that every tensor walks through with one stride are merged, so dense
// tensors of any rank are a single row.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cassert>
#include <cstdint>

namespace rondo {

class LoopNest {
public:
  /// `strides` has the strides in elements of each tensor, one for each size of `shape`; 0 repeats
  /// elements, and they may be negative.
  LoopNest(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<llvm::ArrayRef<int64_t>> strides)
      : shape_(1, 1), strides_(strides.size(), Sizes(1, 0)) {
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != 1)
        append(shape[d], strides, d);
  }

  /// Sizes of the merged dimensions, at least one, and the strides of tensor `k` along them.
  llvm::ArrayRef<int64_t> shape() const { return shape_; }
  llvm::ArrayRef<int64_t> strides(unsigned k) const { return strides_[k]; }

  /// Elements in every row.
  int64_t rowLength() const { return shape_.back(); }
  /// From an element of the row to the next, in tensor `k`.
  int64_t rowStride(unsigned k) const { return strides_[k].back(); }

  /// Calls `visit(offsets)` for every row: where it starts in each tensor, in elements. No row is
  /// visited when a size is 0.
  template <typename Visit> void forEachRow(Visit &&visit) const {
    for (int64_t size : shape_)
      if (size == 0)
        return;
    unsigned outer = shape_.size() - 1;
    Sizes index(outer, 0), offsets(strides_.size(), 0);
    while (true) {
      visit(llvm::ArrayRef<int64_t>(offsets));
      int d = int(outer) - 1;
      for (; d >= 0 && ++index[d] == shape_[d]; --d) {
        for (size_t k = 0; k < offsets.size(); ++k)
          offsets[k] -= strides_[k][d] * (shape_[d] - 1);
        index[d] = 0;
      }
      if (d < 0)
        return;
      for (size_t k = 0; k < offsets.size(); ++k)
        offsets[k] += strides_[k][d];
    }
  }

private:
  using Sizes = llvm::SmallVector<int64_t, 5>;

  /// Adds dimension `d` as the innermost one, merged with the one before where possible.
  void append(int64_t size, llvm::ArrayRef<llvm::ArrayRef<int64_t>> strides, size_t d) {
    bool merges = true;
    if (shape_.back() != 1)
      for (size_t k = 0; k < strides.size(); ++k)
        merges &= strides_[k].back() == strides[k][d] * size;
    if (merges)
      shape_.back() *= size;
    else
      shape_.push_back(size);
    for (size_t k = 0; k < strides.size(); ++k) {
      assert(strides[k].size() > d && "a stride for every size");
      if (merges)
        strides_[k].back() = strides[k][d];
      else
        strides_[k].push_back(strides[k][d]);
    }
  }

  Sizes shape_; ///< at least one dimension
  llvm::SmallVector<Sizes, 4> strides_;
};

} // namespace rondo
