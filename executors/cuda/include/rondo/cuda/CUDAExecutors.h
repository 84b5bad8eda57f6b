//===- CUDAExecutors.h - Who executes ops on a GPU --------------*- C++ -*-===//
//
//   cublas  products of matrices and what fits into their epilogues, by cuBLASLt
//   cuda    kernels of our own for all other ops (rondo/cuda/CUDAExecutor.h)
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Executor.h"

#include <memory>
#include <vector>

namespace rondo {

/// cuBLASLt as an executor, `cublas`. Errors: the library is not found, is too old, or this build
/// has no CUDA; the text names what was looked for.
llvm::Expected<std::unique_ptr<Executor>> createCuBLASExecutor();

/// The executors of this build in the order in which an op should be offered to them; those whose
/// library is missing are left out, and `remarks`, unless null, says which and why. Errors: a build
/// without CUDA.
llvm::Expected<std::vector<std::unique_ptr<Executor>>>
createCUDAExecutors(std::vector<std::string> *remarks = nullptr);

} // namespace rondo
