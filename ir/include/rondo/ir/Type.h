//===- Type.h - Types of values ---------------------------------*- C++ -*-===//
//
// A value is a tensor, a scalar that the host passes by value, the state of a random-number
// generator, or of a type that an embedder registered. Types are plain values; a trace keeps one
// copy of each (see Trace::type).
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/DType.h"
#include "rondo/ir/Device.h"
#include "rondo/ir/Dim.h"

#include <string>
#include <variant>

namespace rondo {

/// Shape in elements per dimension, strides in elements (same rank), and the device that holds the
/// storage. Text: `f32[8, 32]`, with strides when not row-major `f32[8, 32; 1, 8]`, with a device
/// when not host:0 `f32[8]@cuda:0`.
struct TensorType {
  DType dtype = DType::F32;
  Dims shape;
  Dims strides;
  Device device;

  TensorType() = default;
  /// Row-major.
  TensorType(DType dtype, Dims shape, Device device = Device::host());
  TensorType(DType dtype, Dims shape, Dims strides, Device device);

  unsigned rank() const { return shape.size(); }
  Dim numElements() const { return rondo::numElements(shape); }
  /// Bytes of a dense storage of this shape: elements times element size.
  Dim numBytes() const { return numElements() * Dim(dtypeSize(dtype)); }
  /// The elements lie in row-major order without gaps. Strides of dimensions of size 1 do not
  /// matter, and none does when a dimension is 0.
  bool isContiguous() const;
  /// The strides are exactly contiguousStrides(shape).
  bool isRowMajor() const;
  bool hasSymbols() const;

  friend bool operator==(const TensorType &, const TensorType &) = default;
};

/// A host value passed by value at each call. Text: `i64`, `f64`, `bool`.
enum class ScalarKind : uint8_t { I64, F64, Bool };
struct ScalarType {
  ScalarKind kind = ScalarKind::I64;
  friend bool operator==(ScalarType, ScalarType) = default;
};

/// Seed and base offset of a random-number generator, in memory of `device`. Text: `rng`,
/// `rng@cuda:0`.
struct RNGStateType {
  Device device;
  friend bool operator==(RNGStateType, RNGStateType) = default;
};

/// A type registered by an embedder (OpRegistry::registerType). Text: `!mylib.handle`,
/// `!mylib.page<"64">`.
struct OpaqueType {
  std::string name;
  std::string parameters;
  friend bool operator==(const OpaqueType &, const OpaqueType &) = default;
};

/// Any type. Compares by value.
class Type {
public:
  Type(TensorType type) : storage_(std::move(type)) {}
  Type(ScalarType type) : storage_(type) {}
  Type(ScalarKind kind) : storage_(ScalarType{kind}) {}
  Type(RNGStateType type) : storage_(type) {}
  Type(OpaqueType type) : storage_(std::move(type)) {}

  const TensorType *asTensor() const { return std::get_if<TensorType>(&storage_); }
  const ScalarType *asScalar() const { return std::get_if<ScalarType>(&storage_); }
  const RNGStateType *asRNGState() const { return std::get_if<RNGStateType>(&storage_); }
  const OpaqueType *asOpaque() const { return std::get_if<OpaqueType>(&storage_); }
  bool isTensor() const { return asTensor(); }

  /// The device whose memory the value occupies: tensors and RNG states have one, scalars and
  /// opaque values none.
  std::optional<Device> device() const;
  /// The type under `bindings`; symbols without a binding stay. A row-major tensor stays row-major.
  Type substitute(const SymbolBindings &bindings) const;
  void collectSymbols(llvm::SmallVectorImpl<std::string> &names) const;

  void print(llvm::raw_ostream &os) const;
  std::string str() const;

  friend bool operator==(const Type &, const Type &) = default;
  friend llvm::hash_code hash_value(const Type &type);

private:
  std::variant<TensorType, ScalarType, RNGStateType, OpaqueType> storage_;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Type &type) {
  type.print(os);
  return os;
}

llvm::StringRef scalarKindName(ScalarKind kind);
std::optional<ScalarKind> parseScalarKind(llvm::StringRef name);

} // namespace rondo
