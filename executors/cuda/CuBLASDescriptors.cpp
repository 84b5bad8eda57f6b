//===- CuBLASDescriptors.cpp - A plan in cuBLASLt's words -----------------===//

#include "CuBLASDescriptors.h"

using namespace rondo;
using namespace rondo::cuda;

CuBLASTypes CuBLASTypes::of(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
  case DType::BF16:
    return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
  case DType::F64:
    return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
  default:
    assert(dtype == DType::F32 && "a dtype that is not multiplied");
    return {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
  }
}

namespace {

/// Fills in descriptors until a call fails.
class Describer {
public:
  explicit Describer(const CuBLASLibrary &library) : library_(library) {}

  void product(const CuBLASPlan &plan, cublasLtMatmulDescOpaque_t &descriptor) {
    CuBLASTypes types = CuBLASTypes::of(plan.product.dtype);
    take(library_.initProduct(&descriptor, sizeof(descriptor), types.compute, types.scale),
         "cublasLtMatmulDescInit");
    auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      take(library_.setProduct(&descriptor, attribute, &value, sizeof(value)),
           "cublasLtMatmulDescSetAttribute");
    };
    auto operation = [](const StoredMatrix &matrix) {
      return int32_t(matrix.isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(plan.product.left));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(plan.product.right));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(plan.epilogue));
    if (plan.aux)
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(plan.product.m));
  }

  void layout(const CuBLASProduct &product, const StoredMatrix &matrix,
              cublasLtMatrixLayoutOpaque_t &descriptor) {
    take(library_.initLayout(&descriptor, sizeof(descriptor), CuBLASTypes::of(product.dtype).data,
                             uint64_t(matrix.rows), uint64_t(matrix.columns),
                             matrix.leadingDimension),
         "cublasLtMatrixLayoutInit");
    auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
      take(library_.setLayout(&descriptor, attribute, &value, sizeof(value)),
           "cublasLtMatrixLayoutSetAttribute");
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(product.batches));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(matrix.batchStride));
  }

  void preference(uint64_t workspaceBytes, uint32_t alignment,
                  cublasLtMatmulPreferenceOpaque_t &descriptor) {
    take(library_.initPreference(&descriptor, sizeof(descriptor)), "cublasLtMatmulPreferenceInit");
    auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      take(library_.setPreference(&descriptor, attribute, &value, sizeof(value)),
           "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(attribute, alignment);
  }

  /// What the first failing call answered.
  llvm::Error takeError() { return library_.check(status_, call_); }

private:
  void take(cublasStatus_t status, const char *call) {
    if (status_ != CUBLAS_STATUS_SUCCESS)
      return;
    status_ = status;
    call_ = call;
  }

  const CuBLASLibrary &library_;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
  const char *call_ = "";
};

} // namespace

llvm::Expected<CuBLASDescriptors> CuBLASDescriptors::get(const CuBLASLibrary &library,
                                                         const CuBLASPlan &plan) {
  const CuBLASProduct &product = plan.product;
  CuBLASDescriptors result;
  Describer describer(library);
  describer.product(plan, result.product);
  describer.layout(product, product.left, result.left);
  describer.layout(product, product.right, result.right);
  describer.layout(product, product.out, result.out);
  describer.layout(product, product.addend ? *product.addend : product.out, result.addend);
  if (llvm::Error error = describer.takeError())
    return error;
  return result;
}

llvm::Error rondo::cuda::setPointers(const CuBLASLibrary &library, const CuBLASPlan &plan,
                                     cublasLtMatmulDescOpaque_t &product, const void *vector,
                                     const void *aux) {
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void *pointer) {
    return library.check(library.setProduct(&product, attribute, &pointer, sizeof(pointer)),
                         "cublasLtMatmulDescSetAttribute");
  };
  if (plan.vector)
    if (llvm::Error error = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector))
      return error;
  if (plan.aux)
    return set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
  return llvm::Error::success();
}

llvm::Expected<cublasLtMatmulPreferenceOpaque_t>
rondo::cuda::describePreference(const CuBLASLibrary &library, uint64_t workspaceBytes,
                                uint32_t alignment) {
  cublasLtMatmulPreferenceOpaque_t result = {};
  Describer describer(library);
  describer.preference(workspaceBytes, alignment, result);
  if (llvm::Error error = describer.takeError())
    return error;
  return result;
}
