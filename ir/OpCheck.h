//===- OpCheck.h - Does an op fit its spec? ---------------------*- C++ -*-===//

#pragma once

#include "rondo/ir/OpSpec.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace rondo {

/// One way in which an op does not fit its spec.
struct OpFault {
  std::string message;             ///< without location: "'add' op expects 2 operands, got 3"
  std::optional<unsigned> operand; ///< the operand that it is about, if it is about one
};

/// Calls `report` for everything in arity, operand kinds and attributes that does not fit `spec`.
/// `operands` holds null for absent ones; `attributes` is sorted by name. Returns true if
/// everything fits. Allocates nothing then.
bool checkOp(const OpSpec &spec, llvm::ArrayRef<const Type *> operands,
             llvm::ArrayRef<NamedAttribute> attributes, llvm::function_ref<void(OpFault)> report);

} // namespace rondo
