//===- ElementRows.cpp - Reading, writing and copying elements ------------===//

#include "ElementRows.h"

#include "rondo/executors/LoopNest.h"

#include <algorithm>
#include <cstring>

using namespace rondo;
using namespace rondo::host;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Calls `fn(i, position of element i)` for n elements that lie `stride` apart. Neighbours have a
/// loop of their own, which compilers make vector code of.
template <typename Fn> static void forEachInRow(int64_t stride, int64_t n, Fn &&fn) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i)
      fn(i, i);
  } else {
    for (int64_t i = 0; i < n; ++i)
      fn(i, i * stride);
  }
}

/// Rounds the elements of `row` to `as`.
template <typename C> static void roundRow(DType as, C *row, int64_t n) {
  dispatch(as, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (!std::is_same_v<T, C>)
      for (int64_t i = 0; i < n; ++i)
        row[i] = convert<C>(convert<T>(row[i]));
  });
}

template <typename C>
const C *host::loadRow(DType dtype, DType as, const void *data, int64_t offset, int64_t stride,
                       int64_t n, C *buffer) {
  bool rounds = as != dtype && as != dtypeOf<C>;
  if (dtype == dtypeOf<C> && stride == 1 && !rounds)
    return static_cast<const C *>(data) + offset;
  // Not by way of C, which may make 0 of what is not 0.
  bool isTruth = rounds && as == DType::Bool;
  dispatch(dtype, [&](auto tag) {
    using From = typename decltype(tag)::Type;
    const From *from = static_cast<const From *>(data) + offset;
    if (stride == 0)
      std::fill_n(buffer, n, n == 0 ? C(0) : isTruth ? C(convert<bool>(*from)) : convert<C>(*from));
    else if (isTruth)
      forEachInRow(stride, n, [&](int64_t i, int64_t position) {
        buffer[i] = C(convert<bool>(from[position]));
      });
    else
      forEachInRow(stride, n,
                   [&](int64_t i, int64_t position) { buffer[i] = convert<C>(from[position]); });
  });
  if (rounds && !isTruth)
    roundRow(as, buffer, n);
  return buffer;
}

template <typename C>
void host::storeRow(const C *row, DType dtype, void *data, int64_t offset, int64_t stride,
                    int64_t n) {
  dispatch(dtype, [&](auto tag) {
    using To = typename decltype(tag)::Type;
    To *to = static_cast<To *>(data) + offset;
    forEachInRow(stride, n,
                 [&](int64_t i, int64_t position) { to[position] = convert<To>(row[i]); });
  });
}

template const int64_t *host::loadRow(DType, DType, const void *, int64_t, int64_t, int64_t,
                                      int64_t *);
template const float *host::loadRow(DType, DType, const void *, int64_t, int64_t, int64_t, float *);
template const double *host::loadRow(DType, DType, const void *, int64_t, int64_t, int64_t,
                                     double *);
template void host::storeRow(const int64_t *, DType, void *, int64_t, int64_t, int64_t);
template void host::storeRow(const float *, DType, void *, int64_t, int64_t, int64_t);
template void host::storeRow(const double *, DType, void *, int64_t, int64_t, int64_t);

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Calls `fn(TypeTag<T>())` for an unsigned T of `bytes` bytes.
template <typename Fn> static void dispatchSize(unsigned bytes, Fn &&fn) {
  switch (bytes) {
  case 1:
    return fn(TypeTag<uint8_t>());
  case 2:
    return fn(TypeTag<uint16_t>());
  case 4:
    return fn(TypeTag<uint32_t>());
  default:
    return fn(TypeTag<uint64_t>());
  }
}

/// Moves elements of one size, whatever they mean. Does not look for overlap.
static void moveElements(unsigned size, const void *from, llvm::ArrayRef<int64_t> fromStrides,
                         void *to, llvm::ArrayRef<int64_t> toStrides,
                         llvm::ArrayRef<int64_t> shape) {
  LoopNest nest(shape, {fromStrides, toStrides});
  int64_t n = nest.rowLength(), fromStride = nest.rowStride(0), toStride = nest.rowStride(1);
  dispatchSize(size, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    nest.forEachRow([&](llvm::ArrayRef<int64_t> offsets) {
      const T *source = static_cast<const T *>(from) + offsets[0];
      T *destination = static_cast<T *>(to) + offsets[1];
      if (fromStride == 1 && toStride == 1)
        std::memcpy(destination, source, n * sizeof(T));
      else
        for (int64_t i = 0; i < n; ++i)
          destination[i * toStride] = source[i * fromStride];
    });
  });
}

void host::copyElements(const TensorRef &from, const TensorRef &to) {
  if (to.numElements() == 0)
    return;
  ReadOperand source(from, to);
  if (from.dtype == to.dtype) {
    if (source.data() != to.data || source.strides() != to.strides)
      moveElements(dtypeSize(to.dtype), source.data(), source.strides(), to.data, to.strides,
                   to.shape);
    return;
  }
  LoopNest nest(to.shape, {source.strides(), to.strides});
  auto convertRows = [&](auto compute) {
    using C = typename decltype(compute)::Type;
    C buffer[rowCapacity];
    nest.forEachRow([&](llvm::ArrayRef<int64_t> offsets) {
      for (int64_t begin = 0; begin < nest.rowLength(); begin += rowCapacity) {
        int64_t n = std::min(rowCapacity, nest.rowLength() - begin);
        const C *row =
            loadRow<C>(source.dtype(), source.dtype(), source.data(),
                       offsets[0] + begin * nest.rowStride(0), nest.rowStride(0), n, buffer);
        storeRow<C>(row, to.dtype, to.data, offsets[1] + begin * nest.rowStride(1),
                    nest.rowStride(1), n);
      }
    });
  };
  switch (computeDType(source.dtype())) {
  case DType::I64:
    return convertRows(TypeTag<int64_t>());
  case DType::F64:
    return convertRows(TypeTag<double>());
  default:
    return convertRows(TypeTag<float>());
  }
}

void host::zeroElements(const TensorRef &to) {
  uint64_t zero = 0;
  copyElements({&zero, to.dtype, {}, {}}, to);
}

//===----------------------------------------------------------------------===//
// Overlap
//===----------------------------------------------------------------------===//

/// The addresses from the first byte of `tensor` to past its last, in whichever direction it lies.
static std::pair<uintptr_t, uintptr_t> addressRange(const TensorRef &tensor) {
  int64_t first = 0, last = 1;
  for (unsigned d = 0; d < tensor.rank(); ++d) {
    if (tensor.shape[d] == 0)
      return {0, 0};
    int64_t extent = (tensor.shape[d] - 1) * tensor.strides[d];
    (extent < 0 ? first : last) += extent;
  }
  uintptr_t data = reinterpret_cast<uintptr_t>(tensor.data);
  int64_t size = dtypeSize(tensor.dtype);
  return {data + uintptr_t(first * size), data + uintptr_t(last * size)};
}

static bool overlap(const TensorRef &a, const TensorRef &b) {
  auto [aBegin, aEnd] = addressRange(a);
  auto [bBegin, bEnd] = addressRange(b);
  return aBegin < bEnd && bBegin < aEnd;
}

/// Returns true if element i of `written` lies where element i of the tensor at `data` does.
static bool isSameLayout(const void *data, DType dtype, llvm::ArrayRef<int64_t> strides,
                         const TensorRef &written) {
  if (data != written.data || dtypeSize(dtype) != dtypeSize(written.dtype))
    return false;
  for (size_t d = 0; d < strides.size(); ++d)
    if (strides[d] != written.strides[d] && written.shape[d] > 1)
      return false;
  return true;
}

ReadOperand::ReadOperand(const TensorRef &tensor, const TensorRef &written)
    : dtype_(tensor.dtype), data_(tensor.data), strides_(broadcastStrides(tensor, written.shape)) {
  if (!overlap(tensor, written) || isSameLayout(data_, dtype_, strides_, written))
    return;
  unsigned size = dtypeSize(dtype_);
  copy_ = std::make_unique<std::byte[]>(tensor.numElements() * size);
  llvm::SmallVector<int64_t, 5> dense(tensor.rank());
  int64_t stride = 1;
  for (size_t d = tensor.rank(); d-- > 0;) {
    dense[d] = stride;
    stride *= tensor.shape[d];
  }
  moveElements(size, data_, tensor.strides, copy_.get(), dense, tensor.shape);
  data_ = copy_.get();
  strides_ = broadcastStrides({copy_.get(), dtype_, tensor.shape, dense}, written.shape);
}
