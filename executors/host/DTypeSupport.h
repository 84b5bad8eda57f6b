//===- DTypeSupport.h - Which dtypes a host kernel takes --------*- C++ -*-===//

#pragma once

#include "Elements.h"

#include "rondo/ir/Diagnostic.h"
#include "rondo/ir/OpSpec.h"

namespace rondo::host {

/// An error unless the kernels have an element type for the dtypes of all operands and results.
inline llvm::Error checkDTypes(const OpContext &op) {
  auto check = [](const Type *type) -> llvm::Error {
    const TensorType *tensor = type ? type->asTensor() : nullptr;
    if (!tensor || isSupported(tensor->dtype))
      return llvm::Error::success();
    return makeError("has no host kernel for dtype " + dtypeName(tensor->dtype));
  };
  for (unsigned i = 0; i < op.numOperands(); ++i)
    if (llvm::Error error = check(op.operand(i)))
      return error;
  for (const Type *result : op.results())
    if (llvm::Error error = check(result))
      return error;
  return llvm::Error::success();
}

} // namespace rondo::host
