//===- FloatSemantics.h - Floating-point dtypes for APFloat -----*- C++ -*-===//

#pragma once

#include "rondo/ir/DType.h"

#include "llvm/ADT/APFloat.h"

namespace rondo {

/// What APFloat knows `dtype` as; null for integers, bool and 8-bit floats.
inline const llvm::fltSemantics *floatSemantics(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return &llvm::APFloat::IEEEhalf();
  case DType::BF16:
    return &llvm::APFloat::BFloat();
  case DType::F32:
    return &llvm::APFloat::IEEEsingle();
  case DType::F64:
    return &llvm::APFloat::IEEEdouble();
  default:
    return nullptr;
  }
}

} // namespace rondo
