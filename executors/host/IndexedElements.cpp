//===- IndexedElements.cpp - Elements named by index tensors --------------===//

#include "IndexedElements.h"

#include "Rows.h"

#include <cstring>
#include <optional>

using namespace rondo;
using namespace rondo::host;

using Sizes = llvm::SmallVector<int64_t, 5>;

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

/// The offset of `index` along a dimension, or `nowhere`.
static int64_t offsetOf(int64_t index, int64_t size, int64_t stride) {
  return index >= 0 && index < size ? index * stride : nowhere;
}

Offsets host::allOffsets(const TensorRef &tensor) {
  Offsets result;
  result.reserve(tensor.numElements());
  forEachOffset<1>(tensor.shape, {tensor.strides},
                   [&](auto offsets) { result.push_back(offsets[0]); });
  return result;
}

Offsets host::elementOffsets(const TensorRef &index, int64_t dim, IndexedLayout target) {
  Offsets indices = toDense<int64_t>(index);
  Sizes strides(target.strides.begin(), target.strides.end());
  int64_t size = 1, stride = 0; // of a 0-d tensor
  if (!strides.empty()) {
    size_t d = dim < 0 ? dim + int64_t(strides.size()) : dim;
    size = target.shape[d];
    stride = std::exchange(strides[d], 0);
  }
  auto next = indices.begin();
  forEachOffset<1>(index.shape, {strides}, [&](auto offsets) {
    int64_t offset = offsetOf(*next, size, stride);
    *next++ = offset == nowhere ? nowhere : offsets[0] + offset;
  });
  return indices;
}

Offsets host::sliceOffsets(const TensorRef &index, int64_t dim, IndexedLayout target) {
  Offsets indices = toDense<int64_t>(index);
  size_t d = dim < 0 ? dim + int64_t(target.shape.size()) : dim;
  int64_t size = target.shape[d], stride = target.strides[d];
  Sizes shape(target.shape.begin(), target.shape.end());
  Sizes strides(target.strides.begin(), target.strides.end()), position(shape.size(), 0);
  shape[d] = indices.size();
  strides[d] = 0;
  position[d] = 1;
  Offsets result;
  forEachOffset<2>(shape, {strides, position}, [&](auto offsets) {
    int64_t offset = offsetOf(indices[offsets[1]], size, stride);
    result.push_back(offset == nowhere ? nowhere : offsets[0] + offset);
  });
  return result;
}

/// Makes `shape` the shape that it and `other`, which broadcast, have together.
static void broadcast(Sizes &shape, llvm::ArrayRef<int64_t> other) {
  if (other.size() > shape.size())
    shape.insert(shape.begin(), other.size() - shape.size(), 1);
  for (size_t d = 0; d < other.size(); ++d)
    if (other[d] != 1)
      shape[shape.size() - other.size() + d] = other[d];
}

/// Adds to `offsets`, one for each element of `shape`, what `index` broadcast to it contributes.
static void addIndex(Offsets &offsets, const TensorRef &index, llvm::ArrayRef<int64_t> shape,
                     int64_t size, int64_t stride) {
  Sizes strides = broadcastStrides(index, shape);
  Offsets indices = toDense<int64_t>({index.data, index.dtype, shape, strides});
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t offset = offsetOf(indices[i] < 0 ? indices[i] + size : indices[i], size, stride);
    offsets[i] = offset == nowhere || offsets[i] == nowhere ? nowhere : offsets[i] + offset;
  }
}

Offsets host::broadcastIndexOffsets(const HostArgs &args, unsigned first, IndexedLayout target,
                                    llvm::SmallVectorImpl<int64_t> &shape) {
  auto isIndexed = [&](unsigned d) {
    return first + d < args.numOperands() && args.has(first + d);
  };
  // What is moved: dimensions that no index names, and those of the indices where they stand.
  Sizes indexShape, strides, tableStrides; // tableStrides: in the offsets that the indices name
  std::optional<unsigned> position, last;
  bool neighbours = true;
  shape.clear();
  for (unsigned d = 0; d < target.shape.size(); ++d) {
    if (!isIndexed(d)) {
      shape.push_back(target.shape[d]);
      strides.push_back(target.strides[d]);
      continue;
    }
    broadcast(indexShape, args.operand(first + d).shape);
    neighbours &= !last || *last + 1 == d;
    last = d;
    if (!position)
      position = shape.size();
  }
  unsigned at = neighbours ? position.value_or(0) : 0;
  tableStrides.assign(shape.size(), 0);
  Sizes indexStrides = rowMajorStrides(indexShape);
  shape.insert(shape.begin() + at, indexShape.begin(), indexShape.end());
  strides.insert(strides.begin() + at, indexShape.size(), 0);
  tableStrides.insert(tableStrides.begin() + at, indexStrides.begin(), indexStrides.end());

  int64_t count = 1;
  for (int64_t size : indexShape)
    count *= size;
  Offsets table(count, 0), result;
  for (unsigned d = 0; d < target.shape.size(); ++d)
    if (isIndexed(d))
      addIndex(table, args.operand(first + d), indexShape, target.shape[d], target.strides[d]);
  forEachOffset<2>(shape, {strides, tableStrides}, [&](auto offsets) {
    int64_t indexed = table[offsets[1]];
    result.push_back(indexed == nowhere ? nowhere : offsets[0] + indexed);
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

/// The bytes of nan, or of 0 in a dtype that has no nan.
static std::array<std::byte, 8> missingElement(DType dtype) {
  std::array<std::byte, 8> bytes = {};
  dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (isFloatElement<T>) {
      T nan = convert<T>(std::numeric_limits<float>::quiet_NaN());
      std::memcpy(bytes.data(), &nan, sizeof(T));
    }
  });
  return bytes;
}

void host::take(const TensorRef &source, const Offsets &offsets, const TensorRef &out) {
  size_t size = dtypeSize(out.dtype);
  std::array<std::byte, 8> missing = missingElement(out.dtype);
  const std::byte *from = source.as<std::byte>();
  std::byte *to = out.as<std::byte>();
  auto next = offsets.begin();
  forEachOffset<1>(out.shape, {out.strides}, [&](auto at) {
    const std::byte *element = *next == nowhere ? missing.data() : from + *next * size;
    std::memcpy(to + at[0] * size, element, size);
    ++next;
  });
}

std::vector<std::byte> host::denseBytes(const TensorRef &tensor) {
  size_t size = dtypeSize(tensor.dtype);
  std::vector<std::byte> bytes(tensor.numElements() * size);
  const std::byte *from = tensor.as<std::byte>();
  std::byte *to = bytes.data();
  forEachOffset<1>(tensor.shape, {tensor.strides}, [&](auto at) {
    std::memcpy(to, from + at[0] * size, size);
    to += size;
  });
  return bytes;
}

void host::put(llvm::ArrayRef<std::byte> elements, const Offsets &offsets, const TensorRef &out) {
  size_t size = dtypeSize(out.dtype);
  std::byte *to = out.as<std::byte>();
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != nowhere)
      std::memcpy(to + offsets[i] * size, elements.data() + i * size, size);
}
