//===- PointwiseTypes.h - What pointwise ops are computed in ----*- C++ -*-===//
//
// PyTorch's rules of type promotion, as executors need them: in which dtype a pointwise op is
// computed, and to which dtype each operand is rounded before.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Kernel.h"

#include "rondo/ir/DType.h"
#include "rondo/ir/OpSpec.h"

#include <array>
#include <optional>

namespace rondo {

/// The dtype that elements of `dtype` are computed with: i64 for integers and bool, f32 for f32 and
/// below, f64.
DType computeDType(DType dtype);
/// The dtype that holds a host scalar of this kind: i64, f64, bool.
DType scalarDType(ScalarKind kind);

/// How many bits of a random word a uniform number of this dtype is made of: as many as it has
/// digits, or all.
unsigned uniformBits(DType dtype);

/// A host scalar that an attribute gives: i64, f64 or bool.
struct ScalarConstant {
  Slot value = {};
  DType dtype = DType::F64;

  /// Errors: a symbolic number.
  static llvm::Expected<ScalarConstant> get(const OpContext &op, llvm::StringRef attribute);
};

/// Which dtype a pointwise op is computed in. Half-precision numbers are computed with in f32:
/// their host scalars and 0-d tensors are not rounded to half, as in PyTorch, but for Compare.
enum class ComputeRule : uint8_t {
  Promoted, ///< the dtype that the operands promote to
  Float,    ///< that, f32 if it is no float
  Compare,  ///< that; every operand is rounded to it
  Logical,  ///< bool: what matters of a number is whether it is 0
  First,    ///< that of operand 0
};

/// The types of a kind of pointwise op.
struct PointwiseRule {
  ComputeRule compute = ComputeRule::Promoted;
  /// Numbers that follow the operands: names of attributes, "" for none.
  std::array<llvm::StringRef, 2> parameters = {};
  /// The parameters count when the dtype is promoted; else they are rounded to it.
  bool parametersPromote = false;
  /// This operand is a condition: 0 or 1.
  std::optional<unsigned> condition = std::nullopt;
};

/// What a function on numbers gets: a tensor operand, a host scalar operand, or a constant.
struct PointwiseSource {
  enum class Kind : uint8_t { Tensor, Scalar, Constant };
  Kind kind = Kind::Tensor;
  unsigned operand = 0;         ///< of the op
  ScalarConstant constant = {}; ///< of a scalar, its dtype only
  DType as = DType::F32;        ///< what it is rounded to
};

struct PointwiseTypes {
  static constexpr size_t maxSources = 4;
  DType dtype = DType::F32; ///< what the op is computed in
  llvm::SmallVector<PointwiseSource, maxSources> sources;

  /// Of the op's operands in order, then the parameters. An operand that is left out is the
  /// attribute `scalar`. Errors: a constant that is none.
  static llvm::Expected<PointwiseTypes> get(const OpContext &op, const PointwiseRule &rule);
};

} // namespace rondo
