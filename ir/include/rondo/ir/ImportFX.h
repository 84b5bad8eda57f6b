//===- ImportFX.h - PyTorch's ATen graphs -----------------------*- C++ -*-===//
//
// Reads the JSON form `fx-aten-1` of forward and backward ATen graphs as PyTorch's AOTAutograd
// makes them, and gives a TracePair of core ops. docs/trace-format.md describes the form and the
// mapping of ops.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/TracePair.h"

namespace rondo {

/// What one output of a file's forward is. Values that were recorded with the file are numbered by
/// its outputs, of which the imported trace returns some only.
struct FXOutput {
  enum class Kind : uint8_t {
    Mutated, ///< the new value of input `name`
    User,    ///< what the caller gets
    Saved,   ///< what the backward gets as its input `name`
  };
  Kind kind = Kind::User;
  std::string name;
};

/// Roles become tags (parameter, buffer); what is saved for backward becomes saved links; inputs
/// that the program mutates are written in place (`copy_`) at the end; random ops get a generator
/// state and offsets. An op without a core op becomes an opaque op with its ATen name that carries
/// the module path. What was made is verified. Errors: DiagnosticError, located by line and column
/// where the text is no JSON and by JSON pointer where it is; among them an optimiser's call that no
/// op expresses. `outputs`, if given, receives what
/// the outputs of the forward are.
llvm::Expected<TracePair> importFX(llvm::StringRef text, llvm::StringRef file,
                                   const OpRegistry &registry,
                                   std::vector<FXOutput> *outputs = nullptr);

/// True if `text` looks like an fx-aten-1 file rather than a trace in JSON form. Reads no more than
/// it must.
bool looksLikeFX(llvm::StringRef text);

} // namespace rondo
