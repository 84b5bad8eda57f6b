//===- CoreOps.h - The ops that come with Rondo -----------------*- C++ -*-===//
//
// Core ops carry the semantics and usual names of ATen and Thunder. docs/trace-format.md has the
// table.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/OpRegistry.h"

namespace rondo {

/// Registers every core op. Errors: a name is already taken.
llvm::Error registerCoreOps(OpRegistry &registry);

/// Ops that the passes themselves create or dissolve. Looked up by name once; everything else goes by effects.
namespace core {
inline constexpr llvm::StringLiteral returnOp = "return";
inline constexpr llvm::StringLiteral delOp = "del";
inline constexpr llvm::StringLiteral cudaGraphOp = "cuda_graph";
inline constexpr llvm::StringLiteral fusedOp = "fused";
inline constexpr llvm::StringLiteral checkpointOp = "checkpoint";
} // namespace core

} // namespace rondo
