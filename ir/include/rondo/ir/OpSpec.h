//===- OpSpec.h - Description of a kind of op -------------------*- C++ -*-===//
//
// An `OpSpec` says all that Rondo needs to know of a kind of op: name, operands, attributes,
// results, how result types follow from operands and attributes, what more must hold, and its
// effects. Core ops and an embedder's ops are described alike and live in an OpRegistry.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Attribute.h"
#include "rondo/ir/Effects.h"
#include "rondo/ir/Type.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <string>
#include <vector>

namespace rondo {

struct OpSpec;

/// What an operand may be. `TensorOrScalar`: a tensor or a host scalar.
enum class OperandKind : uint8_t { Tensor, Scalar, TensorOrScalar, RNGState, Any };
llvm::StringRef operandKindName(OperandKind kind);

/// `Optional` operands may be absent (an invalid ValueId, `none` in text); trailing ones may be
/// left out altogether. Only the last operand may be `Variadic` (zero or more).
enum class Arity : uint8_t { Required, Optional, Variadic };

struct OperandSpec {
  std::string name;
  OperandKind kind = OperandKind::Tensor;
  Arity arity = Arity::Required;
};

/// What an attribute may hold. `Int` may be symbolic; `Number` is an integer, a float or a bool;
/// `Any` is unchecked.
enum class AttributeKind : uint8_t {
  Bool,
  Int,
  Number,
  String,
  DType,
  Device,
  IntList,
  BoolList,
  StringList,
  Any
};
llvm::StringRef attributeKindName(AttributeKind kind);
/// True if `attribute` may stand where `kind` is asked for.
bool matches(AttributeKind kind, const Attribute &attribute);

struct AttributeSpec {
  std::string name;
  AttributeKind kind = AttributeKind::Any;
  bool required = false;
  /// Value when absent; none: there is no default.
  Attribute defaultValue = {};
};

/// What hooks see of an op: types and attributes, not the trace. Borrowed for the duration of the
/// call.
class OpContext {
public:
  OpContext(const OpSpec &spec, llvm::ArrayRef<const Type *> operands,
            llvm::ArrayRef<NamedAttribute> attributes, llvm::ArrayRef<const Type *> results = {})
      : spec_(spec), operands_(operands), results_(results), attributes_(attributes) {}

  const OpSpec &spec() const { return spec_; }
  unsigned numOperands() const { return operands_.size(); }
  /// Null when absent or past the end.
  const Type *operand(unsigned i) const { return i < operands_.size() ? operands_[i] : nullptr; }
  /// Null when absent or not a tensor.
  const TensorType *tensor(unsigned i) const {
    return operand(i) ? operand(i)->asTensor() : nullptr;
  }
  /// Declared result types; empty while they are being inferred.
  llvm::ArrayRef<const Type *> results() const { return results_; }
  llvm::ArrayRef<NamedAttribute> attributes() const { return attributes_; }

  /// The attribute, or its default; null when it has neither.
  const Attribute *attribute(llvm::StringRef name) const;
  /// Shorthands for attributes whose kind the schema has checked. `fallback` when absent, or when
  /// an integer is symbolic where a number is asked for; a bool is the number 0 or 1.
  int64_t intAttribute(llvm::StringRef name, int64_t fallback = 0) const;
  bool boolAttribute(llvm::StringRef name, bool fallback = false) const;
  double numberAttribute(llvm::StringRef name, double fallback = 0) const;
  llvm::StringRef stringAttribute(llvm::StringRef name, llvm::StringRef fallback = {}) const;
  Dims dimsAttribute(llvm::StringRef name) const;

private:
  const OpSpec &spec_;
  llvm::ArrayRef<const Type *> operands_, results_;
  llvm::ArrayRef<NamedAttribute> attributes_;
};

/// Appends the result types that follow from operands and attributes. Strides are exact for views
/// and row-major else: a producer may choose other strides for fresh storage, and the verifier
/// accepts any that do not overlap. Errors: a message without location ("expects operands of equal
/// rank").
using InferFn = std::function<llvm::Error(const OpContext &, llvm::SmallVectorImpl<Type> &)>;
/// What must hold beyond arity, attribute schema and inferred types. Sees the declared results.
using VerifyFn = std::function<llvm::Error(const OpContext &)>;
/// Adds effects that depend on attributes or operands, on top of the static ones of the spec.
using EffectsFn = std::function<void(const OpContext &, Effects &)>;
/// For a result that is a view of an operand: elements from the first element of the operand (with
/// `countsFromStorageStart`: from the start of its storage) to the first of the result. Sees the
/// declared results.
using ViewOffsetFn = std::function<Dim(const OpContext &, unsigned result)>;
/// How many random numbers an op draws, from its attribute `offset` on. Sees the declared results.
using DrawsFn = std::function<Dim(const OpContext &)>;

/// Where the operands of an op with bodies go.
enum class BodyKind : uint8_t {
  None,
  Region, ///< one body; operand i is argument i; result i is what its `return` gives
  If,     ///< operand 0 is the condition; the others are the arguments of both bodies
  While,  ///< body 0 is the condition, body 1 the step; operand i, and then what step returns, is
          ///< argument i of both
};

struct OpSpec {
  /// `add`, `mylib.gather`: letters, digits, '_', dots between parts; no part starts with a digit.
  std::string name;
  std::string summary;
  std::vector<OperandSpec> operands;
  std::vector<AttributeSpec> attributes;
  std::vector<std::string>
      results; ///< names, for documentation; fewer or more may exist where `variadicResults`
  bool variadicResults = false;

  InferFn infer;   ///< null: result types are whatever the op declares
  VerifyFn verify; ///< may be null

  // Effects. By default every operand is read and results are fresh.
  /// Operands written in place. Each needs a result that renames it: one that views it.
  std::vector<unsigned> writes;
  std::vector<ViewEffect> views;         ///< results that name an operand's storage
  bool allResultsViewFirst = false;      ///< every result is a view of operand 0 (split, unbind)
  bool readsOperands = true;             ///< false for views: they look at no data
  std::vector<ResourceEffect> resources; ///< names borrow from string literals
  EffectsFn effects;                     ///< may be null
  ViewOffsetFn viewOffset;               ///< null: views start where their operand does

  // Traits.
  bool launches = true; ///< puts work on the device's stream; false for views, constants by value,
                        ///< `del`, `return`
  bool random = false;  ///< draws random numbers: never merged, offset assigned once
  bool terminator = false;  ///< ends a body
  bool commutative = false; ///< the first two operands may be exchanged
  /// Counts from the start of operand 0's storage, not from where operand 0 starts in it.
  bool countsFromStorageStart = false;
  bool opaque = false;            ///< made for an op that no registry knows; worst-case effects
  bool unknownAttributes = false; ///< attributes beyond the schema are allowed
  BodyKind bodies = BodyKind::None;
  DrawsFn draws; ///< of an op that takes the state of a generator; null: unknown

  /// The fewest operands that an op may list: all up to the last one that is Required.
  unsigned numRequiredOperands() const;
  bool isVariadic() const { return !operands.empty() && operands.back().arity == Arity::Variadic; }
  const AttributeSpec *findAttribute(llvm::StringRef name) const;
  /// A view launches nothing and all its results name an operand's storage.
  bool isView() const { return !launches && (allResultsViewFirst || !views.empty()); }
};

} // namespace rondo
