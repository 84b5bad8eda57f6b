//===- KernelTypes.h - From the IR's types to the kernels' ------*- C++ -*-===//

#pragma once

#include "CUDAKernels.h"
#include "Layout.h"

#include "rondo/executors/LoopNest.h"
#include "rondo/executors/PointwiseTypes.h"
#include "rondo/executors/Shapes.h"

#include "rondo/ir/Diagnostic.h"

#include <array>

namespace rondo::cuda {

inline ElementType elementType(DType dtype) {
  static_assert(int(DType::F64) == int(ElementType::F64) &&
                int(DType::F16) == int(ElementType::F16));
  return ElementType(dtype);
}
/// Of what elements of `dtype` are computed with.
ComputeType computeType(DType dtype);

/// An error unless kernels compute with the dtypes of all operands and results: 8-bit floats are
/// not.
llvm::Error checkDTypes(const OpContext &op);

/// The dimensions of a tensor from the greatest stride to the least: in this order its elements are
/// visited as they lie in memory.
llvm::SmallVector<unsigned, 5> memoryOrder(llvm::ArrayRef<int64_t> strides);

/// The layout of tensors of `shape` with these strides, neighbouring dimensions merged where
/// possible, with the dimensions in `order` where it is given: elements are numbered in another
/// order then. Errors: more than maxDims dimensions remain.
template <int N>
llvm::Expected<Layout<N>> makeLayout(llvm::ArrayRef<int64_t> shape,
                                     const std::array<llvm::ArrayRef<int64_t>, N> &strides,
                                     llvm::ArrayRef<unsigned> order = {}) {
  llvm::SmallVector<int64_t, 5> ordered[N + 1];
  std::array<llvm::ArrayRef<int64_t>, N> views = strides;
  if (!order.empty()) {
    for (unsigned d : order) {
      ordered[N].push_back(shape[d]);
      for (int k = 0; k < N; ++k)
        ordered[k].push_back(strides[k][d]);
    }
    shape = ordered[N];
    for (int k = 0; k < N; ++k)
      views[k] = ordered[k];
  }
  LoopNest nest(shape, views);
  llvm::ArrayRef<int64_t> merged = nest.shape();
  if (merged.size() > maxDims)
    return makeError("has " + llvm::Twine(merged.size()) + " dimensions that cannot be merged; " +
                     "CUDA kernels walk through at most " + llvm::Twine(maxDims));
  Layout<N> layout;
  layout.count = 1;
  layout.rank = merged.size();
  for (int64_t size : merged)
    layout.count *= size;
  layout.isSmall = layout.count < (int64_t(1) << 31);
  for (int d = 0; d < layout.rank; ++d) {
    layout.shape[d] = merged[d];
    if (layout.isSmall && merged[d] > 0)
      layout.dividers[d] = Divider(uint32_t(merged[d]));
    for (int k = 0; k < N; ++k)
      layout.strides[k][d] = nest.strides(k)[d];
  }
  return layout;
}

/// Sizes and strides of a tensor's type, which has no symbols.
struct TensorSizes {
  DType dtype;
  llvm::SmallVector<int64_t, 5> shape, strides;

  explicit TensorSizes(const TensorType &type)
      : dtype(type.dtype), shape(constantDims(type.shape)), strides(constantDims(type.strides)) {}
  unsigned rank() const { return shape.size(); }
  int64_t count() const {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return count;
  }
  bool isRowMajor() const;
  /// For the kernels of a shape to which this one broadcasts.
  llvm::SmallVector<int64_t, 5> broadcastTo(llvm::ArrayRef<int64_t> target) const {
    return broadcastStrides({nullptr, dtype, shape, strides}, target);
  }
};

/// A number of a compute type.
union Number {
  int64_t i64 = 0;
  float f32;
  double f64;

  template <typename C> RONDO_DEVICE C get() const {
    if constexpr (std::is_same_v<C, double>)
      return f64;
    else if constexpr (std::is_same_v<C, float>)
      return f32;
    else
      return i64;
  }
};
/// The constant rounded to `as` and then a number of the compute type.
Number roundConstant(const ScalarConstant &constant, DType as, ComputeType compute);

/// A host scalar of `dtype`, i64, f64 or bool, as kernels get it: all bits of the one that the call
/// gave, 0 or 1 for a bool.
inline uint64_t scalarBits(Slot slot, DType dtype) {
  return dtype == DType::Bool ? uint64_t(slot.boolean) : uint64_t(slot.i64);
}

/// Of an op that writes one of its operands: does this run read, by another layout, bytes that it
/// writes? The kernels cannot: elements would be overwritten before they are read. Nothing is wrong
/// in a rehearsal.
llvm::Error checkOverlap(const CommandSink &sink, const TensorRef &written, const TensorRef &read);

} // namespace rondo::cuda
