//===- OpNumber.h - A number that an op takes -------------------*- C++ -*-===//

#pragma once

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
  /// Unless it is a tensor's element.
  double value(const TypedArgs &args) const {
    if (!isOperand_)
      return value_;
    Slot slot = args.scalar(operand_);
    switch (*scalar_) {
    case ScalarKind::I64:
      return double(slot.i64);
    case ScalarKind::Bool:
      return double(slot.boolean);
    case ScalarKind::F64:
      break;
    }
    return slot.f64;
  }

private:
  unsigned operand_;
  bool isOperand_ = false;
  std::optional<ScalarKind> scalar_; ///< kind of an operand that is no tensor
  double value_ = 0;
};

} // namespace rondo
