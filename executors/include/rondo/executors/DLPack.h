//===- DLPack.h - Tensors shared with other libraries -----------*- C++ -*-===//
//
// DLPack (github.com/dmlc/dlpack) is the C struct in which PyTorch, NumPy, JAX and others hand
// tensors to each other without a copy. Its structs are only named here: a program that includes
// dlpack.h uses that.
//
// Data are ready when all work submitted before is done: whoever imports or exports a tensor of
// CUDA orders the streams.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Tensor.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace rondo {

/// A tensor over the memory of `managed`, on `host:N` for kDLCPU and on `cuda:N` for kDLCUDA. Takes
/// `managed` over: its deleter is called by whichever thread drops the last reference to the
/// tensor's storage, which holds no more than the tensor's elements.
///
/// After an error `managed` is still the caller's. Errors: null; a device of another kind; a dtype
/// that DType has not, vectors; more than 64 dimensions; negative sizes or strides, sizes whose
/// bytes do not fit 63 bits; no data where there are elements; data that is not aligned to the
/// element size.
llvm::Expected<Tensor> importDLPack(DLManagedTensor *managed);
/// As above. Errors besides: a major version other than 1; a tensor that is flagged read-only,
/// which a Tensor cannot say.
llvm::Expected<Tensor> importDLPack(DLManagedTensorVersioned *managed);

/// Shares the tensor, which is not null, and keeps its storage until the deleter is called, by
/// whichever thread. The caller owns the result.
DLManagedTensor *exportDLPack(const Tensor &tensor);
/// As above, in version 1.0.
DLManagedTensorVersioned *exportDLPackVersioned(const Tensor &tensor);

} // namespace rondo
