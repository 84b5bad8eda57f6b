//===- FusedAttention.h - Attention as libraries take it --------*- C++ -*-===//
//
// Libraries that compute attention at once take four dimensions: batches, heads, rows (queries or
// keys) and columns (of a head). Which op is one of theirs is found here, without a GPU and without
// a library.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "AttentionDevice.h"

#include "rondo/ir/Trace.h"

#include <array>

namespace rondo::cuda {

/// Everything that tells two attentions apart but addresses.
struct FusedAttention {
  /// Of four dimensions, in elements.
  using Sizes = std::array<int64_t, 4>;

  /// An operand or result of the op.
  struct Tensor {
    bool isResult = false;
    unsigned index = 0;
    Sizes shape = {}; ///< all 0: the op does not have it
    Sizes strides = {};

    friend auto operator<=>(const Tensor &, const Tensor &) = default;
  };

  DType dtype = DType::F16; ///< of all tensors but the logsumexp, which is of f32
  bool isBackward = false;
  bool causal = false;
  float scale = 1;
  std::array<Tensor, numAttentionTensors> tensors; ///< by AttentionTensor

  const Tensor &tensor(AttentionTensor which) const { return tensors[which]; }
  int64_t batches() const { return tensor(attentionQueries).shape[0]; }
  int64_t heads() const { return tensor(attentionQueries).shape[1]; }
  int64_t queries() const { return tensor(attentionQueries).shape[2]; }
  int64_t keys() const { return tensor(attentionKeys).shape[2]; }

  friend auto operator<=>(const FusedAttention &, const FusedAttention &) = default;
};

/// The attention that an op is: in f16 or bf16, without mask and dropout, with heads whose rows can
/// be read 16 bytes at once. Errors: why it is none, without a location.
llvm::Expected<FusedAttention> describeFusedAttention(const Trace &trace, OpId op);

} // namespace rondo::cuda
