//===- CUDAExecutors.h - Who executes ops on a GPU --------------*- C++ -*-===//
//
//   cudnn   scaled dot-product attention in f16 and bf16, where cuDNN has a plan for it
//   cublas  products of matrices and what fits into their epilogues, by cuBLASLt
//   cuda    kernels of our own for all other ops (rondo/cuda/CUDAExecutor.h)
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Executor.h"

#include <memory>
#include <vector>

namespace rondo {

/// cuDNN as an executor, `cudnn`: of the file that the environment variable RONDO_CUDNN_LIBRARY
/// names, or of libcudnn.so.9 where the loader finds it. Errors: the library is not found, is too
/// old, or this build has no CUDA or was made without cuDNN's header; the text names what was
/// looked for.
llvm::Expected<std::unique_ptr<Executor>> createCuDNNExecutor();

/// cuBLASLt as an executor, `cublas`. Errors: the library is not found, is too old, or this build
/// has no CUDA; the text names what was looked for.
llvm::Expected<std::unique_ptr<Executor>> createCuBLASExecutor();

/// The executors of this build in the order in which an op should be offered to them; those whose
/// library is missing are left out, and `remarks`, unless null, says which and why. Errors: a build
/// without CUDA.
llvm::Expected<std::vector<std::unique_ptr<Executor>>>
createCUDAExecutors(std::vector<std::string> *remarks = nullptr);

} // namespace rondo
