//===- CuBLASDescriptors.h - A plan in cuBLASLt's words ---------*- C++ -*-===//

#pragma once

#include "CuBLASLibrary.h"
#include "CuBLASPlan.h"

namespace rondo::cuda {

/// The types of one dtype that the library multiplies: f16, bf16, f32, f64.
struct CuBLASTypes {
  cudaDataType_t data;
  cublasComputeType_t compute; ///< never TF32
  cudaDataType_t scale;        ///< of alpha and beta

  static CuBLASTypes of(DType dtype);
};

/// The library's descriptors of a product: plain memory, which may be copied.
struct CuBLASDescriptors {
  cublasLtMatmulDescOpaque_t product = {};
  cublasLtMatrixLayoutOpaque_t left = {}, right = {}, addend = {}, out = {};

  /// Without pointers. Errors: what the library answers.
  static llvm::Expected<CuBLASDescriptors> get(const CuBLASLibrary &library,
                                               const CuBLASPlan &plan);
};

/// Puts into `product` those pointers that `plan` has.
llvm::Error setPointers(const CuBLASLibrary &library, const CuBLASPlan &plan,
                        cublasLtMatmulDescOpaque_t &product, const void *vector, const void *aux);

/// For algorithms that take addresses that are multiples of `alignment`, and so many bytes of
/// workspace. Parts of a sum are never rounded to a 16-bit type on the way.
llvm::Expected<cublasLtMatmulPreferenceOpaque_t>
describePreference(const CuBLASLibrary &library, uint64_t workspaceBytes, uint32_t alignment);

} // namespace rondo::cuda
