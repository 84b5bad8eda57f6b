//===- OpNumber.h - A number that an op takes -------------------*- C++ -*-===//

#pragma once

#include "rondo/executors/PointwiseTypes.h"
#include "rondo/executors/TypedArgs.h"

#include <optional>

namespace rondo {

/// A number of an op with concrete types: an attribute, or an operand that is a host scalar or a
/// 0-d tensor.
class OpNumber {
public:
  /// Operand `i` if it is there, else `attribute`, which may be null.
  OpNumber(const OpContext &op, unsigned i, const char *attribute = nullptr) : operand_(i) {
    if (const Type *type = op.operand(i)) {
      isOperand_ = true;
      if (const ScalarType *scalar = type->asScalar())
        scalar_ = scalar->kind;
    } else if (attribute) {
      value_ = op.numberAttribute(attribute);
    }
  }

  /// The tensor whose element it is, or null.
  const TensorRef *tensor(const TypedArgs &args) const {
    return isOperand_ && !scalar_ ? &args.operand(operand_) : nullptr;
  }
  /// Unless it is a tensor's element: i64, f64 or bool, as it was given.
  ScalarConstant scalar(const TypedArgs &args) const {
    if (isOperand_)
      return {args.scalar(operand_), scalarDType(*scalar_)};
    ScalarConstant attribute;
    attribute.value.f64 = value_;
    return attribute;
  }
  /// That number, rounded once.
  double value(const TypedArgs &args) const {
    ScalarConstant number = scalar(args);
    switch (number.dtype) {
    case DType::I64:
      return double(number.value.i64);
    case DType::Bool:
      return double(number.value.boolean);
    default:
      return number.value.f64;
    }
  }

private:
  unsigned operand_;
  bool isOperand_ = false;
  std::optional<ScalarKind> scalar_; ///< kind of an operand that is no tensor
  double value_ = 0;
};

} // namespace rondo
