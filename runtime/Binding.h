//===- Binding.h - The arguments of a call ----------------------*- C++ -*-===//

#pragma once

#include "Block.h"
#include "GraphBuilder.h"

namespace rondo {

/// Arguments of one call, checked against a schedule. Used again for the next call with that
/// schedule, which then looks only at what is not as it was.
struct BoundArguments {
  std::vector<BoundArgument> arguments;      ///< by input
  std::vector<Slot> scalars;                 ///< by number, as many as the schedule has
  llvm::SmallVector<unsigned, 2> misaligned; ///< inputs below the minimum alignment
  /// Changes whenever an argument, or what is saved, is elsewhere than in the call before. Not 0
  /// once arguments were bound.
  uint64_t version = 0;
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

/// Why `value` cannot be an argument of `type`, which is no host scalar and has no symbols; empty
/// if it can.
std::string problemOfTensor(const Type &type, const Value &value);
/// Does an element of one lie among those of the other?
bool shareMemory(const Tensor &a, const Tensor &b);

/// Errors: DiagnosticError, one for each argument that does not fit; see Program::forward.
llvm::Error bindArguments(const Schedule &schedule, llvm::ArrayRef<Value> inputs,
                          BoundArguments &bound);

/// Checks the tensors that results are to be written to, after the arguments were bound, and adds
/// them to `placed`. `saved` calls back with the bytes of everything that the call is given by a
/// forward. Errors: DiagnosticError, one for each that does not fit; see Program::forwardInto.
using ByteRange = llvm::ArrayRef<std::byte>;
llvm::Error placeOutputs(
    const Schedule &schedule, llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs,
    llvm::function_ref<void(llvm::function_ref<void(const std::string &, ByteRange)>)> saved,
    llvm::SmallVectorImpl<PlacedResult> &placed);

/// Finds what the symbols in the types of `inputs` stand for. Errors: DiagnosticError: two sizes
/// for one symbol, a symbol that no size gives.
llvm::Expected<SymbolBindings> bindSymbols(llvm::ArrayRef<ParameterInfo> inputs, Side side,
                                           llvm::ArrayRef<Value> values);

} // namespace rondo
