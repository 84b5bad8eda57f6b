//===- Binding.h - The arguments of a call ----------------------*- C++ -*-===//

#pragma once

#include "GraphBuilder.h"

namespace rondo {

/// Arguments of one call, checked against a schedule. Used again for the next call with that
/// schedule, which then looks only at what is not as it was.
struct BoundArguments {
  std::vector<BoundArgument> arguments;      ///< by input
  std::vector<Slot> scalars;                 ///< by number, as many as the schedule has
  llvm::SmallVector<unsigned, 2> misaligned; ///< inputs below the minimum alignment
  /// Changes whenever a static input is elsewhere than in the call before.
  uint64_t staticsVersion = 0;
  /// What is here is of a call whose arguments fitted.
  bool isBound = false;
  struct Range {
    const std::byte *begin, *end;
    bool isWritten;
  };
  std::vector<Range> ranges; ///< room to work in
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
