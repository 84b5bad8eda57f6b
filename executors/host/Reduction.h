//===- Reduction.h - Loops of reductions ------------------------*- C++ -*-===//

#pragma once

#include "ElementRows.h"

#include "rondo/executors/LoopNest.h"
#include "rondo/executors/Shapes.h"

namespace rondo::host {

/// The elements that make one element of a result.
template <typename C> class ReducedElements {
public:
  ReducedElements(const LoopNest &nest, const TensorRef &x, DType as, int64_t offset, C *buffer)
      : nest_(nest), x_(x), as_(as), offset_(offset), buffer_(buffer) {}

  /// Calls `fn(element)` in row-major order.
  template <typename Fn> void forEach(Fn &&fn) const {
    forEachPart([&](const C *row, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        fn(row[i]);
    });
  }

  /// The sum of `fn(element)`: of partial sums, so that rounding errors stay small.
  template <typename Fn> C sum(Fn &&fn) const {
    C total = 0;
    forEachPart([&](const C *row, int64_t n) {
      C part = 0;
      for (int64_t i = 0; i < n; ++i)
        part = wrapAdd(part, fn(row[i]));
      total = wrapAdd(total, part);
    });
    return total;
  }

private:
  template <typename Fn> void forEachPart(Fn &&fn) const {
    nest_.forEachRow([&](llvm::ArrayRef<int64_t> offsets) {
      int64_t stride = nest_.rowStride(0);
      for (int64_t begin = 0; begin < nest_.rowLength(); begin += rowCapacity) {
        int64_t n = std::min(rowCapacity, nest_.rowLength() - begin);
        fn(loadRow<C>(x_.dtype, as_, x_.data, offset_ + offsets[0] + begin * stride, stride, n,
                      buffer_),
           n);
      }
    });
  }

  const LoopNest &nest_;
  const TensorRef &x_;
  DType as_;
  int64_t offset_;
  C *buffer_;
};

/// Sets every element of `out` to `compute(elements, count)`, where `elements` are those of `x`
/// that are reduced to it, rounded to `as`, and computed with in C: double or int64_t.
template <typename C, typename Compute>
void reduce(const ReducedDims &dims, const TensorRef &x, DType as, const TensorRef &out,
            Compute compute) {
  llvm::SmallVector<int64_t, 5> reducedShape, reducedStrides, keptShape, keptStrides, outStrides;
  int64_t count = 1;
  for (unsigned d : dims.reduced) {
    reducedShape.push_back(x.shape[d]);
    reducedStrides.push_back(x.strides[d]);
    count *= x.shape[d];
  }
  for (unsigned i = 0; i < dims.kept.size(); ++i) {
    unsigned d = dims.kept[i];
    keptShape.push_back(x.shape[d]);
    keptStrides.push_back(x.strides[d]);
    outStrides.push_back(out.strides[dims.keepdim ? d : i]);
  }
  LoopNest nest(reducedShape, {reducedStrides});
  C buffer[rowCapacity];
  forEachOffset<2>(keptShape, {keptStrides, outStrides}, [&](std::array<int64_t, 2> offsets) {
    C result = compute(ReducedElements<C>(nest, x, as, offsets[0], buffer), count);
    storeRow<C>(&result, out.dtype, out.data, offsets[1], 1, 1);
  });
}

} // namespace rondo::host
