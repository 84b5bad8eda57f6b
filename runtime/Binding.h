//===- Binding.h - The arguments of a call ----------------------*- C++ -*-===//

#pragma once

#include "Schedule.h"

namespace rondo {

/// Arguments of one call, checked against a schedule.
struct BoundArguments {
  llvm::SmallVector<std::byte *, 64> addresses; ///< by input; null for scalars
  llvm::SmallVector<Slot, 16> scalars;          ///< by number, as many as the schedule has
  llvm::SmallVector<unsigned, 2> misaligned;    ///< inputs below the minimum alignment
};

/// `argument #2 '%w' (blocks.0.weight) of the forward`.
std::string argumentText(const ParameterInfo &info, unsigned i, Side side);

/// Errors: DiagnosticError, one for each argument that does not fit; see Program::forward.
llvm::Error bindArguments(const Schedule &schedule, llvm::ArrayRef<Value> inputs,
                          BoundArguments &bound);

/// Finds what the symbols in the types of `inputs` stand for. Errors: DiagnosticError: two sizes
/// for one symbol, a symbol that no size gives.
llvm::Expected<SymbolBindings> bindSymbols(llvm::ArrayRef<ParameterInfo> inputs, Side side,
                                           llvm::ArrayRef<Value> values);

} // namespace rondo
