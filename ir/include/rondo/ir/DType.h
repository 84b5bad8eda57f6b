//===- DType.h - Element types of tensors -----------------------*- C++ -*-===//

#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace rondo {

/// Element type of a tensor.
enum class DType : uint8_t { Bool, U8, I8, I16, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64 };

inline constexpr DType allDTypes[] = {DType::Bool, DType::U8,   DType::I8,     DType::I16,
                                      DType::I32,  DType::I64,  DType::F8E4M3, DType::F8E5M2,
                                      DType::F16,  DType::BF16, DType::F32,    DType::F64};

/// Name in the text form: `bool`, `u8`, `i8`, `i16`, `i32`, `i64`, `f8e4m3`, `f8e5m2`, `f16`,
/// `bf16`, `f32`, `f64`.
llvm::StringRef dtypeName(DType dtype);
std::optional<DType> parseDType(llvm::StringRef name);

/// Bytes per element.
unsigned dtypeSize(DType dtype);
/// True for the floating-point types, 8-bit ones included.
bool isFloat(DType dtype);
/// True for signed and unsigned integers; false for bool.
bool isInteger(DType dtype);

/// Result dtype of a pointwise op on tensors of these dtypes with at least one dimension each
/// (PyTorch's promotion table: bool < integers by width < floats by width; u8 with i8 gives i16,
/// f16 with bf16 gives f32). PyTorch has no entry for an 8-bit float and another dtype: here they
/// follow the same rule, and the two 8-bit floats give f16.
DType promote(DType a, DType b);

} // namespace rondo
