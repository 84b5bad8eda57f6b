//===- Type.cpp - Types of values -----------------------------------------===//

#include "rondo/ir/Type.h"

#include "rondo/ir/Attribute.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

namespace rondo {

TensorType::TensorType(DType dtype, Dims shape, Device device)
    : dtype(dtype), shape(std::move(shape)), strides(contiguousStrides(this->shape)),
      device(device) {}

TensorType::TensorType(DType dtype, Dims shape, Dims strides, Device device)
    : dtype(dtype), shape(std::move(shape)), strides(std::move(strides)), device(device) {}

bool TensorType::isRowMajor() const {
  if (shape.size() != strides.size())
    return false;
  Dim expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (strides[i] != expected)
      return false;
    if (i != 0 && !shape[i].isConstant(0))
      expected = expected * shape[i];
  }
  return true;
}

bool TensorType::isContiguous() const {
  if (shape.size() != strides.size())
    return false;
  if (llvm::any_of(shape, [](const Dim &dim) { return dim.isConstant(0); }))
    return true;
  Dim expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i].isConstant(1))
      continue;
    if (strides[i] != expected)
      return false;
    expected = expected * shape[i];
  }
  return true;
}

bool TensorType::hasSymbols() const {
  auto isSymbolic = [](const Dim &dim) { return !dim.isConstant() && !dim.isOverflow(); };
  return llvm::any_of(shape, isSymbolic) || llvm::any_of(strides, isSymbolic);
}

std::optional<Device> Type::device() const {
  if (const TensorType *tensor = asTensor())
    return tensor->device;
  if (const RNGStateType *rng = asRNGState())
    return rng->device;
  return std::nullopt;
}

static Dims substituteDims(llvm::ArrayRef<Dim> dims, const SymbolBindings &bindings) {
  Dims result;
  result.reserve(dims.size());
  for (const Dim &dim : dims)
    result.push_back(dim.substitute(bindings));
  return result;
}

Type Type::substitute(const SymbolBindings &bindings) const {
  const TensorType *tensor = asTensor();
  if (!tensor || !tensor->hasSymbols())
    return *this;
  Dims shape = substituteDims(tensor->shape, bindings);
  // A size that becomes 0 counts as 1 in strides, which substituting in them would miss.
  if (tensor->isRowMajor())
    return TensorType(tensor->dtype, std::move(shape), tensor->device);
  return TensorType(tensor->dtype, std::move(shape), substituteDims(tensor->strides, bindings),
                    tensor->device);
}

void Type::collectSymbols(llvm::SmallVectorImpl<std::string> &names) const {
  const TensorType *tensor = asTensor();
  if (!tensor)
    return;
  for (const Dim &dim : tensor->shape)
    dim.collectSymbols(names);
  for (const Dim &dim : tensor->strides)
    dim.collectSymbols(names);
}

static void printDevice(llvm::raw_ostream &os, Device device) {
  if (device != Device::host())
    os << '@' << device;
}

static void printTensor(llvm::raw_ostream &os, const TensorType &tensor) {
  os << dtypeName(tensor.dtype) << '[';
  llvm::interleaveComma(tensor.shape, os);
  if (!tensor.isRowMajor()) {
    os << "; ";
    llvm::interleaveComma(tensor.strides, os);
  }
  os << ']';
  printDevice(os, tensor.device);
}

void Type::print(llvm::raw_ostream &os) const {
  if (const TensorType *tensor = asTensor()) {
    printTensor(os, *tensor);
  } else if (const ScalarType *scalar = asScalar()) {
    os << scalarKindName(scalar->kind);
  } else if (const RNGStateType *rng = asRNGState()) {
    os << "rng";
    printDevice(os, rng->device);
  } else if (const OpaqueType *opaque = asOpaque()) {
    os << '!' << opaque->name;
    if (opaque->parameters.empty())
      return;
    os << '<';
    printQuoted(os, opaque->parameters);
    os << '>';
  }
}

std::string Type::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return os.str();
}

static uint64_t deviceBits(Device device) {
  return uint64_t(device.kind) | uint64_t(device.index) << 8;
}

static llvm::hash_code hashTensor(const TensorType &tensor) {
  // One pass over a flat buffer is several times faster than combining hashes of dimensions.
  llvm::SmallVector<uint64_t, 16> words;
  words.push_back(deviceBits(tensor.device) << 8 | uint64_t(tensor.dtype));
  words.push_back(tensor.shape.size());
  for (const Dims *dims : {&tensor.shape, &tensor.strides})
    for (const Dim &dim : *dims)
      words.push_back(dim.isConstant() ? uint64_t(dim.value()) : size_t(hash_value(dim)));
  return llvm::hash_combine_range(words.begin(), words.end());
}

llvm::hash_code hash_value(const Type &type) {
  if (const TensorType *tensor = type.asTensor())
    return hashTensor(*tensor);
  if (const RNGStateType *rng = type.asRNGState())
    return llvm::hash_combine(type.storage_.index(), deviceBits(rng->device));
  if (const OpaqueType *opaque = type.asOpaque())
    return llvm::hash_combine(type.storage_.index(), opaque->name, opaque->parameters);
  return llvm::hash_combine(type.storage_.index(), uint8_t(type.asScalar()->kind));
}

llvm::StringRef scalarKindName(ScalarKind kind) {
  switch (kind) {
  case ScalarKind::I64:
    return "i64";
  case ScalarKind::F64:
    return "f64";
  case ScalarKind::Bool:
    return "bool";
  }
  llvm_unreachable("no such scalar kind");
}

std::optional<ScalarKind> parseScalarKind(llvm::StringRef name) {
  for (ScalarKind kind : {ScalarKind::I64, ScalarKind::F64, ScalarKind::Bool})
    if (scalarKindName(kind) == name)
      return kind;
  return std::nullopt;
}

} // namespace rondo
