//===- CuBLASPlan.h - What one op or group asks of cuBLASLt -----*- C++ -*-===//
//
// A plan says which values of a trace are the matrices and vectors of a product, and what its
// epilogue does. Groups that have a plan (shown with the `fused` op's name for the epilogue):
//
//   %h = addmm(%bias, %x, %w)                         GELU_BIAS, or GELU_AUX_BIAS if %h is used by
//   %y = gelu(%h) {approximate = "tanh"}              others; as well for linear and mm, and relu
//
//   %g = mm(%dy, %w)                                  DGELU
//   %d = gelu_backward(%g, %h) {approximate = "tanh"} DGELU_BGRAD with the sum
//   %s = sum(%d) {dims = [0]}
//
//   %t = permute(%d) {dims = [1, 0]}                  BGRADB; BGRADA for mm(%t, %d), where %t is
//   %w = mm(%t, %x)                                   of others
//   %s = sum(%d) {dims = [0]}
//
// Between them may be views that name the same elements in the same order, such as a reshape. The
// exact form of GELU has no epilogue. Without a GPU and without the library.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CuBLASProduct.h"

#include "rondo/ir/Trace.h"

#include <cublasLt.h>

namespace rondo::cuda {

/// The executor's name.
inline constexpr llvm::StringLiteral cublasName = "cublas";

struct CuBLASPlan {
  CuBLASProduct product;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  ValueId left, right, out;
  ValueId addend; ///< if the product has one
  ValueId vector; ///< a bias that is read, or the gradient of one, which is written
  ValueId aux;    ///< m by n, without gaps: what goes into GELU, written; for DGELU read
};

struct CuBLASGroup {
  std::vector<OpId> ops; ///< in program order
  CuBLASPlan plan;
};

/// The plan of a single op. Errors: why the executor declines it, without a location.
llvm::Expected<CuBLASPlan> planOp(const Trace &trace, OpId op);

/// Bytes of workspace that the plan's algorithms may use: none below 2^24 multiplications, where
/// the library would hardly split the sum, and 16 times the result in f32 above, at least 4 and at
/// most 32 MiB. DGELU_BGRAD, whose partial sums lie there, has at least 1 MiB.
uint64_t workspaceBytes(const CuBLASPlan &plan);

/// The groups of `body`, of ops that are unclaimed or our own. Disjoint.
std::vector<CuBLASGroup> findGroups(const Trace &trace, BodyId body);

} // namespace rondo::cuda
