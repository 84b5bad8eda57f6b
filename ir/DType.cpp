//===- DType.cpp - Element types of tensors -------------------------------===//

#include "rondo/ir/DType.h"

#include "llvm/Support/ErrorHandling.h"

namespace rondo {

namespace {

bool isFloat8(DType dtype) {
  return dtype == DType::F8E4M3 || dtype == DType::F8E5M2;
}

DType promoteFloats(DType a, DType b) {
  // Each of these pairs holds numbers that the other cannot; the next wider type holds both.
  if (isFloat8(a) && isFloat8(b))
    return DType::F16;
  if (dtypeSize(a) == dtypeSize(b))
    return DType::F32;
  return dtypeSize(a) > dtypeSize(b) ? a : b;
}

DType promoteIntegers(DType a, DType b) {
  if (dtypeSize(a) == dtypeSize(b))
    return DType::I16; // u8 with i8
  return dtypeSize(a) > dtypeSize(b) ? a : b;
}

} // namespace

llvm::StringRef dtypeName(DType dtype) {
  switch (dtype) {
  case DType::Bool:
    return "bool";
  case DType::U8:
    return "u8";
  case DType::I8:
    return "i8";
  case DType::I16:
    return "i16";
  case DType::I32:
    return "i32";
  case DType::I64:
    return "i64";
  case DType::F8E4M3:
    return "f8e4m3";
  case DType::F8E5M2:
    return "f8e5m2";
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  case DType::F32:
    return "f32";
  case DType::F64:
    return "f64";
  }
  llvm_unreachable("no such dtype");
}

std::optional<DType> parseDType(llvm::StringRef name) {
  for (DType dtype : allDTypes)
    if (dtypeName(dtype) == name)
      return dtype;
  return std::nullopt;
}

unsigned dtypeSize(DType dtype) {
  switch (dtype) {
  case DType::Bool:
  case DType::U8:
  case DType::I8:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return 1;
  case DType::I16:
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::I32:
  case DType::F32:
    return 4;
  case DType::I64:
  case DType::F64:
    return 8;
  }
  llvm_unreachable("no such dtype");
}

bool isFloat(DType dtype) {
  return dtype >= DType::F8E4M3;
}

bool isInteger(DType dtype) {
  return dtype != DType::Bool && !isFloat(dtype);
}

DType promote(DType a, DType b) {
  if (a == b)
    return a;
  if (isFloat(a) != isFloat(b))
    return isFloat(a) ? a : b;
  if (isFloat(a))
    return promoteFloats(a, b);
  if (a == DType::Bool)
    return b;
  if (b == DType::Bool)
    return a;
  return promoteIntegers(a, b);
}

} // namespace rondo
