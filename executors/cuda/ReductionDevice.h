//===- ReductionDevice.h - Device code of reductions ------------*- C++ -*-===//
//
// A reduction is one kernel, or two where the results are few and the elements many: then blocks
// share the elements of a result, and a second kernel combines what they have made of them.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "RowSetDevice.h"

namespace rondo::cuda {

/// Which number a reduction of ReductionKernels::norm is.
enum class NormKind : uint8_t { NonZeros, Absolute, Euclidean, Greatest, Least, Power };

struct ReductionOptions {
  int64_t count = 0;     ///< elements for each result
  bool isMean = false;   ///< of a sum
  double correction = 0; ///< of a variance
  NormKind norm = NormKind::Euclidean;
  double power = 2; ///< of a norm
  // Of an extremum.
  bool isGreatest = false;
  int64_t initialInteger = 0; ///< the result for no elements
  double initialFloat = 0;
};

/// At most this many bytes hold what has been made of some of the elements.
inline constexpr int64_t reductionStateBytes = 16;
inline constexpr int64_t maxReductionSplits = 1024;

struct ReductionParams {
  Layout<1> reduced; ///< of x: the elements that make one result
  Layout<2> kept;    ///< of x and the result
  const void *x = nullptr;
  void *out = nullptr;
  ElementType xType = ElementType::F32, as = ElementType::F32, outType = ElementType::F32;
  Lanes lanes, finishLanes;
  /// The elements of a result are dense and, as x, aligned to 16 bytes.
  bool isVector = false;
  int64_t splits = 1; ///< blocks that share the elements of a result: the grid's second dimension
  int64_t chunk = 0;  ///< elements for each of them
  void *partials = nullptr; ///< [splits, results] states; null for one split
  ReductionOptions options;
};

/// The two kernels; null for none.
struct ReductionKernels {
  const void *reduce = nullptr, *finish = nullptr;
};

/// Can kernels that compute with this type load elements of `type` 16 bytes at once?
RONDO_DEVICE constexpr bool isReductionVectorType(ComputeType compute, ElementType type) {
  switch (compute) {
  case ComputeType::I64:
    return type == ElementType::I64 || type == ElementType::I32 || type == ElementType::Bool;
  case ComputeType::F32:
    return type == ElementType::F32 || type == ElementType::BF16 || type == ElementType::F16;
  case ComputeType::F64:
    return type == ElementType::F64 || type == ElementType::F32 || type == ElementType::BF16 ||
           type == ElementType::F16;
  }
  return false;
}

namespace reduction {
// ReductionSums.cu
ReductionKernels sum(ComputeType type);
ReductionKernels prod(ComputeType type); // I64 and F64
// ReductionNorms.cu
ReductionKernels var();                       // F64
ReductionKernels norm();                      // F64
ReductionKernels logSumExp(ComputeType type); // F32 and F64
// ReductionExtrema.cu
ReductionKernels extremum(ComputeType type);
ReductionKernels argExtremum(ComputeType type);
} // namespace reduction

/// Running sums along lines of x. Lines are cut into chunks: `totals` of those come first.
struct CumsumParams {
  Layout<2> lines; ///< of x and the result: where lines start
  int64_t length = 0, xStride = 0, outStride = 0;
  const void *x = nullptr;
  void *out = nullptr;
  ElementType xType = ElementType::F32, outType = ElementType::F32; ///< elements are rounded to it
  int64_t chunks = 1, chunk = 0; ///< the grid's second dimension; elements of each
  void *totals = nullptr;        ///< [lines, chunks]; null for one chunk
};

namespace reduction {
// ReductionCumsum.cu: of double, or of int64_t.
const void *chunkTotals(bool isFloat);
const void *cumsum(bool isFloat);
/// For many lines beside each other: a thread for each.
const void *cumsumPerThread(bool isFloat);
} // namespace reduction

} // namespace rondo::cuda
