//===- TensorTesting.h - Tensors for tests of kernels -----------*- C++ -*-===//
//
// Makes small tensors of given values in any layout and reads them back as doubles, in row-major
// order, so that a test can compare a kernel with a formula.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/RandomValues.h"
#include "support/RunOp.h"

#include "Elements.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rondo {

/// Where the elements of a tensor lie in its storage.
///   Contiguous  row-major
///   Transposed  column-major: the first dimension has stride 1
///   Expanded    as expanded from size 1: stride 0 along the first dimension
///   Sliced      every second element along each dimension of a larger poisoned tensor, not from
///               its start
enum class Layout { Contiguous, Transposed, Expanded, Sliced };

inline constexpr Layout allLayouts[] = {Layout::Contiguous, Layout::Transposed, Layout::Expanded,
                                        Layout::Sliced};

inline llvm::StringRef layoutName(Layout layout) {
  switch (layout) {
  case Layout::Contiguous:
    return "contiguous";
  case Layout::Transposed:
    return "transposed";
  case Layout::Expanded:
    return "expanded";
  case Layout::Sliced:
    return "sliced";
  }
  return "";
}

/// Row-major, of `values` converted to `dtype`.
inline Tensor tensorOf(DType dtype, llvm::ArrayRef<int64_t> shape,
                       const std::vector<double> &values) {
  Tensor tensor =
      poisonedTensor(TensorType(dtype, Dims(shape.begin(), shape.end()), Device::host()));
  EXPECT_EQ(tensor.numElements(), int64_t(values.size()));
  if (tensor.numElements() == int64_t(values.size()))
    host::fromDense<double>(values, tensor.ref());
  return tensor;
}

/// The elements in row-major order.
inline std::vector<double> valuesOf(const Tensor &tensor) {
  return host::toDense<double>(tensor.ref());
}
inline std::vector<double> valuesOf(const Value &value) {
  if (const Tensor *tensor = value.asTensor())
    return valuesOf(*tensor);
  ADD_FAILURE() << "expected a tensor, got " << value.description();
  return {};
}

/// Where the elements of a tensor lie in a storage of its own, in elements.
struct LayoutStrides {
  llvm::SmallVector<int64_t, 5> strides;
  int64_t first = 0, extent = 1;
};
inline LayoutStrides layoutStrides(llvm::ArrayRef<int64_t> shape, Layout layout) {
  unsigned rank = shape.size();
  LayoutStrides result;
  result.strides.resize(rank);
  int64_t step = layout == Layout::Sliced ? 2 : 1;
  for (unsigned i = 0; i < rank; ++i) {
    unsigned d = layout == Layout::Transposed ? i : rank - 1 - i;
    result.strides[d] = result.extent * step;
    if (layout == Layout::Expanded && d == 0) {
      result.strides[d] = 0;
      continue;
    }
    result.extent *= std::max<int64_t>(shape[d], 1) * step;
  }
  if (layout == Layout::Sliced) {
    result.first = 1;
    result.extent += 1;
  }
  return result;
}

/// The elements of `tensor` in another layout, in a storage of its own. Expanded repeats its first
/// index along dimension 0; the other layouts keep all values.
inline Tensor withLayout(const Tensor &tensor, Layout layout) {
  unsigned rank = tensor.rank();
  LayoutStrides place = layoutStrides(tensor.shape(), layout);
  size_t size = dtypeSize(tensor.dtype());
  Tensor result(poisonedStorage(place.extent * size), place.first * size, tensor.dtype(),
                tensor.shape(), place.strides);
  // Along a dimension of stride 0 the last write stays, so the source has that stride, too.
  TensorRef source = tensor.ref();
  llvm::SmallVector<int64_t, 5> sourceStrides(tensor.strides().begin(), tensor.strides().end());
  if (layout == Layout::Expanded && rank > 0)
    sourceStrides[0] = 0;
  source.strides = sourceStrides;
  if (tensor.dtype() == DType::I64) { // doubles do not hold all of them
    host::fromDense<int64_t>(host::toDense<int64_t>(source), result.ref());
  } else {
    host::fromDense<double>(host::toDense<double>(source), result.ref());
  }
  return result;
}

/// Returns true if the bytes of the storage that are of no element still hold the poison.
inline bool gapsArePoisoned(const Tensor &tensor) {
  size_t size = dtypeSize(tensor.dtype());
  std::vector<std::byte> gaps(tensor.storage()->data(),
                              tensor.storage()->data() + tensor.storage()->bytes());
  host::forEachOffset<1>(tensor.shape(), {tensor.strides()}, [&](std::array<int64_t, 1> offsets) {
    std::fill_n(gaps.begin() + tensor.byteOffset() + offsets[0] * int64_t(size), size,
                std::byte(0xff));
  });
  return llvm::all_of(gaps, [](std::byte byte) { return byte == std::byte(0xff); });
}

/// ‖actual − expected‖ / ‖expected‖, 0 if they are equal; nan where both are nan and infinities of
/// one sign count as equal, and infinity is returned where only one is, or the lengths differ.
inline double relativeError(const std::vector<double> &actual,
                            const std::vector<double> &expected) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (actual.size() != expected.size())
    return infinity;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    double a = actual[i], b = expected[i];
    if (std::isnan(a) && std::isnan(b))
      continue;
    if (std::isfinite(a) && std::isfinite(b)) {
      difference += (a - b) * (a - b);
      norm += b * b;
    } else if (a != b) {
      return infinity;
    }
  }
  if (difference == 0)
    return 0;
  return norm == 0 ? infinity : std::sqrt(difference / norm);
}

/// The greatest relativeError that rounding once to `dtype` explains, with room for a few more
/// operations: 0 for integers and bool.
inline double toleranceOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return 1e-14;
  case DType::F32:
    return 1e-6;
  case DType::F16:
    return 1e-3;
  case DType::BF16:
    return 8e-3;
  default:
    return 0;
  }
}

} // namespace rondo
