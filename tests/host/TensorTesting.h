//===- TensorTesting.h - Tensors for tests of kernels -----------*- C++ -*-===//
//
// Makes small tensors of given values in any layout and reads them back as doubles, in row-major
// order, so that a test can compare a kernel with a formula.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Elements.h"
#include "RunOp.h"

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

/// The elements of `tensor` in another layout, in a storage of its own. Expanded repeats its first
/// index along dimension 0; the other layouts keep all values.
inline Tensor withLayout(const Tensor &tensor, Layout layout) {
  unsigned rank = tensor.rank();
  llvm::SmallVector<int64_t, 5> strides(rank);
  int64_t step = layout == Layout::Sliced ? 2 : 1, extent = 1, first = 0;
  bool columns = layout == Layout::Transposed;
  for (unsigned i = 0; i < rank; ++i) {
    unsigned d = columns ? i : rank - 1 - i;
    strides[d] = extent * step;
    if (layout == Layout::Expanded && d == 0) {
      strides[d] = 0;
      continue;
    }
    extent *= std::max<int64_t>(tensor.shape()[d], 1) * step;
  }
  if (layout == Layout::Sliced) {
    first = 1;
    extent += 1;
  }
  size_t size = dtypeSize(tensor.dtype());
  Tensor result(poisonedStorage(extent * size), first * size, tensor.dtype(), tensor.shape(),
                strides);
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

/// `n` numbers from [-2, 2), the same for the same seed (SplitMix64, Steele et al., OOPSLA 2014).
inline std::vector<double> randomValues(size_t n, uint64_t seed) {
  std::vector<double> values(n);
  for (double &value : values) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    value = double(z >> 11) * 0x1p-51 - 2;
  }
  return values;
}

} // namespace rondo
