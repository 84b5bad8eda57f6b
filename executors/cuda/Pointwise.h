//===- Pointwise.h - Ops that work element by element -----------*- C++ -*-===//

#pragma once

#include "KernelTypes.h"
#include "PointwiseDevice.h"

namespace rondo::cuda {

/// A pointwise op.
struct PointwiseSpec {
  llvm::StringRef op;
  PointwiseKernels kernels = {};
  PointwiseRule rule = {};
};

/// The kernel of `op`, whose result may be a new name of operand 0's storage. Errors: dtypes
/// without a kernel, too many dimensions.
llvm::Expected<CUDAKernelFn> makePointwise(const OpContext &op, const PointwiseSpec &spec);
/// The same, in `types`, of the function that `kernels` are.
llvm::Expected<CUDAKernelFn> makePointwise(const OpContext &op, const PointwiseKernels &kernels,
                                           const PointwiseTypes &types);
/// Adds the op, and with `inPlace` also the one with an underscore at the end of its name.
void addPointwise(CUDAExecutor &executor, const PointwiseSpec &spec, bool inPlace = false);

} // namespace rondo::cuda
