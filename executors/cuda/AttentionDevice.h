//===- AttentionDevice.h - Device code of attention -------------*- C++ -*-===//
//
// Two families of kernels. The general ones take every dtype, size and layout, f32 among them, and
// sum in the compute type. Those for tensor cores take f16 and bf16 rows that can be loaded 16
// bytes at once, with heads of at most 128; they sum in f32.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Layout.h"

namespace rondo::cuda {

/// Rows of queries, rows of keys and columns of heads that a block works on at once.
inline constexpr int attentionTile = 64;
inline constexpr int attentionBlock = 256;       ///< threads of a block of the general kernels
inline constexpr int tensorAttentionBlock = 128; ///< of those for tensor cores
inline constexpr int maxTensorHead = 128;        ///< the largest head of those for tensor cores

/// Sizes and strides of one of the matrices of a tensor, in elements.
struct AttentionMatrix {
  void *data = nullptr; ///< null: the op does not have it
  int64_t rows = 0, columns = 0, rowStride = 0, columnStride = 0;
  ElementType type = ElementType::F32;
  bool isVector = false; ///< elements 4n to 4n + 3 of a row can be loaded at once
};

/// The tensors of forward and backward.
enum AttentionTensor : int {
  attentionQueries,
  attentionKeys,
  attentionValues,
  attentionMask, ///< seen as [..., L, S]
  attentionOut,
  attentionSums, ///< logsumexp; a matrix has one column
  attentionGrad,
  attentionGradQueries,
  attentionGradKeys,
  attentionGradValues,
  numAttentionTensors
};

struct AttentionParams {
  Layout<numAttentionTensors> batches; ///< where the matrices of a batch begin
  AttentionMatrix tensors[numAttentionTensors];
  double scale = 1;
  bool causal = false;
  uint32_t dropThreshold = 0;    ///< philox::threshold; 0: no dropout
  double keepScale = 1;          ///< of what dropout keeps
  uint64_t offset = 0;           ///< of the op in the stream of random numbers
  const uint64_t *rng = nullptr; ///< seed and offset of the state
  void *delta = nullptr;         ///< rowsum(grad * out), [batches, L], of the compute type
};

/// The mask's gradient: which scores each of its elements was added to. Scores are numbered in
/// row-major order of [..., L, S].
struct AttentionMaskParams {
  AttentionParams attention;
  Layout<2> elements; ///< of the gradient: the first score of each, and where it is stored
  Layout<1> scores;   ///< of one element, from its first score
  void *data = nullptr;
  ElementType type = ElementType::F32;
  bool isBlockWide = false; ///< a block for each element, not a thread
};

/// `__global__` functions for numbers computed as C, in the order in which they are launched.
struct AttentionKernels {
  const void *forward, *delta, *gradKeys, *gradQueries, *gradMask;
  uint32_t sharedBytes; ///< of all but delta and gradMask
};
/// F32 or F64.
AttentionKernels attentionKernels(ComputeType compute);

/// The same for tensor cores; `delta` and `gradMask` are those of F32.
struct TensorAttentionKernels {
  const void *forward, *gradKeys, *gradQueries;
  uint32_t forwardBytes, gradKeysBytes, gradQueriesBytes; ///< shared memory
};
/// For F16 or BF16 and heads of this size at most.
TensorAttentionKernels tensorAttentionKernels(ElementType type, int64_t headSize);

} // namespace rondo::cuda
