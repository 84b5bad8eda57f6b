//===- CuBLASPlan.cpp - What one op asks of cuBLASLt ----------------------===//

#include "CuBLASPlan.h"

#include "rondo/executors/TypedArgs.h"

#include "rondo/ir/Diagnostic.h"

#include <algorithm>

using namespace rondo;
using namespace rondo::cuda;

static bool isMultiplied(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64;
}

llvm::Expected<CuBLASPlan> rondo::cuda::planOp(const Trace &trace, OpId id) {
  OpView view(trace, id);
  auto isCUDA = [](Device device) { return device.kind == DeviceKind::CUDA; };
  if (std::string why = findForeignType(view, isCUDA, "a CUDA device"); !why.empty())
    return makeError(why);
  std::optional<MatrixProduct> product = matrixProduct(view.context());
  if (!product)
    return makeError("it is no product of matrices");
  if (!isMultiplied(product->out.dtype))
    return makeError("cuBLASLt does not multiply " + dtypeName(product->out.dtype));
  llvm::Expected<CuBLASProduct> described = describeProduct(*product);
  if (!described)
    return described.takeError();
  CuBLASPlan plan;
  plan.product = std::move(*described);
  const Op &op = view.op();
  plan.out = op.result();
  plan.left = op.operand(plan.product.isSwapped ? product->bOperand : product->aOperand);
  plan.right = op.operand(plan.product.isSwapped ? product->aOperand : product->bOperand);
  if (plan.product.addend)
    plan.addend = op.operand(product->biasOperand);
  if (plan.product.hasVector) {
    plan.vector = op.operand(product->biasOperand);
    plan.epilogue = CUBLASLT_EPILOGUE_BIAS;
  }
  return plan;
}

uint64_t rondo::cuda::workspaceBytes(const CuBLASPlan &plan) {
  constexpr double mebibyte = 1 << 20;
  const CuBLASProduct &product = plan.product;
  if (product.isEmpty() || product.k == 0)
    return 0;
  double elements = double(product.m) * product.n * product.batches;
  double least = 4 * mebibyte;
  if (elements * product.k < double(1 << 24)) {
    if (plan.epilogue != CUBLASLT_EPILOGUE_DGELU_BGRAD)
      return 0;
    least = mebibyte;
  }
  uint64_t bytes = std::clamp(16 * elements * sizeof(float), least, 32 * mebibyte);
  return (bytes + 255) / 256 * 256;
}
