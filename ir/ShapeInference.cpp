//===- ShapeInference.cpp - Rules of dtypes, shapes and strides -----------===//

#include "ShapeInference.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace rondo;

std::string rondo::shapeText(llvm::ArrayRef<Dim> shape) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(shape, os);
  os << "]";
  return os.str();
}

//===----------------------------------------------------------------------===//
// Dtypes
//===----------------------------------------------------------------------===//

bool rondo::isIn(DTypeClass allowed, DType dtype) {
  switch (allowed) {
  case DTypeClass::Any:
    return true;
  case DTypeClass::NotBool:
    return dtype != DType::Bool;
  case DTypeClass::Float:
    return isFloat(dtype);
  case DTypeClass::Integral:
    return !isFloat(dtype);
  case DTypeClass::Index:
    return dtype == DType::I64 || dtype == DType::I32;
  case DTypeClass::Bool:
    return dtype == DType::Bool;
  }
  return false;
}

llvm::StringRef rondo::dtypeClassName(DTypeClass allowed) {
  switch (allowed) {
  case DTypeClass::Any:
    return "any dtype";
  case DTypeClass::NotBool:
    return "a dtype other than bool";
  case DTypeClass::Float:
    return "a floating-point dtype";
  case DTypeClass::Integral:
    return "an integer dtype or bool";
  case DTypeClass::Index:
    return "dtype i64 or i32";
  case DTypeClass::Bool:
    return "dtype bool";
  }
  return "";
}

void Promotion::add(Category category, DType dtype) {
  std::optional<DType> &known = byCategory_[category];
  known = known && *known != dtype ? promote(*known, dtype) : dtype;
}

void Promotion::add(const Type &operand) {
  if (const TensorType *tensor = operand.asTensor())
    return add(*tensor);
  if (const ScalarType *scalar = operand.asScalar())
    add(Wrapped, scalar->kind == ScalarKind::F64   ? DType::F32
                 : scalar->kind == ScalarKind::I64 ? DType::I64
                                                   : DType::Bool);
}

void Promotion::add(const Attribute &number) {
  add(Wrapped, number.asBool() ? DType::Bool : number.asDim() ? DType::I64 : DType::F32);
}

DType Promotion::result(DType ifNone) const {
  std::optional<DType> result;
  for (std::optional<DType> lower : byCategory_) {
    if (!lower || (result && isFloat(*result)))
      continue;
    if (!result)
      result = lower;
    else if (*result == DType::Bool || isFloat(*lower))
      result = promote(*result, *lower);
  }
  return result.value_or(ifNone);
}

DType rondo::statisticsDType(DType dtype) {
  return isFloat(dtype) && dtypeSize(dtype) < 4 ? DType::F32 : dtype;
}

DType rondo::floatFor(DType dtype) {
  return isFloat(dtype) ? dtype : DType::F32;
}

DType rondo::sumDType(DType dtype) {
  return isFloat(dtype) ? dtype : DType::I64;
}

bool rondo::canCast(DType from, DType to) {
  if (isFloat(from))
    return isFloat(to);
  return from == DType::Bool || to != DType::Bool;
}

//===----------------------------------------------------------------------===//
// Shapes and strides
//===----------------------------------------------------------------------===//

bool rondo::broadcast(Dims &shape, llvm::ArrayRef<Dim> other) {
  if (other.size() > shape.size())
    shape.insert(shape.begin(), other.size() - shape.size(), Dim(1));
  size_t offset = shape.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    Dim &size = shape[offset + i];
    if (size == other[i] || other[i].isConstant(1))
      continue;
    if (!size.isConstant(1))
      return false;
    size = other[i];
  }
  return true;
}

bool rondo::isAtMost(const Dim &a, const Dim &b) {
  if (a.isConstant() && b.isConstant())
    return a.value() <= b.value();
  return a == b;
}

std::optional<Dims> rondo::viewStrides(llvm::ArrayRef<Dim> shape, llvm::ArrayRef<Dim> strides,
                                       llvm::ArrayRef<Dim> newShape) {
  if (shape == newShape)
    return Dims(strides.begin(), strides.end());
  if (llvm::any_of(shape, [](const Dim &size) { return size.isConstant(0); }))
    return contiguousStrides(newShape); // there is nothing to read through them
  if (shape.empty())
    return Dims(newShape.size(), Dim(1));

  Dims result(newShape.size(), Dim(1));
  size_t next = newShape.size(); // dimensions of the view from here on have their stride
  Dim chunkStride = strides.back();
  Dim chunkSize = 1, viewSize = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    chunkSize = chunkSize * shape[d];
    bool chunkGoesOn =
        d > 0 && (shape[d - 1].isConstant(1) || strides[d - 1] == chunkSize * chunkStride);
    if (chunkGoesOn)
      continue;
    // Give the new dimensions that make up this chunk their strides.
    while (next > 0 && (viewSize != chunkSize || newShape[next - 1].isConstant(1))) {
      --next;
      result[next] = viewSize * chunkStride;
      viewSize = viewSize * newShape[next];
    }
    if (viewSize != chunkSize)
      return std::nullopt;
    if (d > 0) {
      chunkStride = strides[d - 1];
      chunkSize = viewSize = 1;
    }
  }
  if (next != 0)
    return std::nullopt;
  return result;
}

bool rondo::isDense(const TensorType &type) {
  if (type.rank() > maxRank) // keeps the search below short
    return type.isContiguous();
  llvm::SmallBitVector placed(type.rank());
  for (unsigned i = 0; i < type.rank(); ++i)
    if (type.shape[i].isConstant(1))
      placed.set(i);
  // The dimension that follows is the one whose stride is the size of all placed before it.
  for (Dim filled = 1; !placed.all();) {
    unsigned i = 0;
    while (i < type.rank() && (placed[i] || type.strides[i] != filled))
      ++i;
    if (i == type.rank())
      return false;
    placed.set(i);
    filled = filled * type.shape[i];
  }
  return true;
}

bool rondo::overlapsItself(const TensorType &type) {
  for (unsigned i = 0; i < type.rank(); ++i)
    if (type.strides[i].isConstant(0) && type.shape[i].isConstant() && type.shape[i].value() > 1)
      return true;
  return false;
}
