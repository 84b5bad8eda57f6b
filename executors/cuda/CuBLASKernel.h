//===- CuBLASKernel.h - A plan made ready to run ----------------*- C++ -*-===//

#pragma once

#include "CuBLASLibrary.h"
#include "CuBLASPlan.h"

#include "rondo/executors/Kernel.h"

namespace rondo::cuda {

/// A kernel for `plan`, whose values are those operands and results of an op that `operands` and
/// `results` name by position. The algorithms are chosen here: one for tensors at multiples of 16
/// bytes, one for any others, unless `algorithm` is given, with which runs fail that the library
/// refuses. `workspaceBytes` is what runs get. Errors: DeviceError, also where the library has no
/// algorithm.
llvm::Expected<KernelRef>
makeCuBLASKernel(std::shared_ptr<const CuBLASHandle> handle, const CuBLASPlan &plan,
                 llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<ValueId> results,
                 uint64_t workspaceBytes,
                 const std::optional<cublasLtMatmulAlgo_t> &algorithm = std::nullopt);

} // namespace rondo::cuda
