//===- ElementRows.h - Reading, writing and copying elements ----*- C++ -*-===//
//
// Kernels compute with few types, int64, float and double, on rows that lie densely in a small
// buffer. What dtype and stride a tensor has matters only where a row is read or written.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"

#include "rondo/executors/PointwiseTypes.h"

#include <memory>

namespace rondo::host {

/// The most elements that are read or written at once.
inline constexpr int64_t rowCapacity = 512;

template <typename C> inline constexpr DType dtypeOf = DType::F32;
template <> inline constexpr DType dtypeOf<double> = DType::F64;
template <> inline constexpr DType dtypeOf<int64_t> = DType::I64;

/// Reads the `n` elements of `dtype` that start `offset` elements after `data` and lie `stride`
/// apart: converted to dtype `as` and then to C (int64_t, float or double). Returns where they are
/// then: in `buffer`, or where they were. 0 <= n <= rowCapacity; no 8-bit floats.
template <typename C>
const C *loadRow(DType dtype, DType as, const void *data, int64_t offset, int64_t stride, int64_t n,
                 C *buffer);
/// Writes `row`, converted to `dtype`.
template <typename C>
void storeRow(const C *row, DType dtype, void *data, int64_t offset, int64_t stride, int64_t n);

/// Writes `from`, which broadcasts to the shape of `to`, into `to`. Dtypes that differ are
/// converted between, and are no 8-bit floats. The two may overlap.
void copyElements(const TensorRef &from, const TensorRef &to);
/// Sets all bits of all elements to 0.
void zeroElements(const TensorRef &to);

/// A tensor that an op reads while it writes `written`, element by element in any order: the tensor
/// itself, broadcast to the shape of `written`, or a copy where elements would be overwritten
/// before they are read.
class ReadOperand {
public:
  ReadOperand(const TensorRef &tensor, const TensorRef &written);

  DType dtype() const { return dtype_; }
  const void *data() const { return data_; }
  /// For the shape of `written`.
  llvm::ArrayRef<int64_t> strides() const { return strides_; }

private:
  DType dtype_;
  const void *data_;
  llvm::SmallVector<int64_t, 5> strides_;
  std::unique_ptr<std::byte[]> copy_;
};

} // namespace rondo::host
