//===- Inference.h - One run of an inference hook ---------------*- C++ -*-===//
//
// What the inference hooks of the core ops see: operands and attributes with the checks that ops
// have in common. Attribute values come from files: whatever they hold, a hook answers with types
// or with one error.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "ShapeInference.h"

#include "rondo/ir/Diagnostic.h"
#include "rondo/ir/OpSpec.h"

#include "llvm/ADT/SmallBitVector.h"

/// Returns the error of `expression`, if it has one, from the enclosing function.
#define RONDO_TRY(expression)                                                                      \
  do {                                                                                             \
    if (llvm::Error tryError = (expression))                                                       \
      return tryError;                                                                             \
  } while (false)

// NOLINTBEGIN(bugprone-macro-parentheses): `name` is declared
/// Declares `name` as the value of an `Expected`, or returns its error from the enclosing function.
#define RONDO_LET(name, expression)                                                                \
  auto name##OrError = (expression);                                                               \
  if (!name##OrError)                                                                              \
    return name##OrError.takeError();                                                              \
  auto &name = *name##OrError
// NOLINTEND(bugprone-macro-parentheses)

namespace rondo {

using Ints = llvm::SmallVector<int64_t, 4>;

/// "expects <what>".
llvm::Error expects(const llvm::Twine &what);

/// Which devices the operands may be on.
enum class DevicePolicy : uint8_t {
  Same,        ///< one device
  HostScalars, ///< one device; 0-d host tensors besides
  Any,         ///< whatever they are; `device` is that of the first
};

/// One run of an inference hook: the op, the device that its operands agree on, and the results so
/// far.
class Inference {
public:
  Inference(const OpContext &op, llvm::SmallVectorImpl<Type> &results) : op(op), results(results) {}

  const OpContext &op;
  llvm::SmallVectorImpl<Type> &results;
  Device device;

  /// Checks that operand types make sense and sets `device`: that of the operands, or the attribute
  /// `device` of an op without any. Comes before everything else.
  llvm::Error begin(DevicePolicy policy);

  //===--- Operands -------------------------------------------------------===//

  bool has(unsigned i) const { return op.operand(i); }
  /// A tensor operand that arity and kind guarantee.
  const TensorType &tensor(unsigned i) const { return *op.tensor(i); }
  const TensorType *optionalTensor(unsigned i) const { return op.tensor(i); }
  /// `operand 'x'`.
  std::string operandText(unsigned i) const;
  /// "expects operand 'x' <what>, got <its type>".
  llvm::Error expectsOperand(unsigned i, const llvm::Twine &what) const;

  // Each holds for an absent operand or one that is no tensor.
  llvm::Error dtypeIn(unsigned i, DTypeClass allowed) const;
  llvm::Error dtypeIs(unsigned i, DType dtype) const;
  llvm::Error rankIs(unsigned i, unsigned rank) const;
  llvm::Error rankAtLeast(unsigned i, unsigned rank) const;
  llvm::Error shapeIs(unsigned i, llvm::ArrayRef<Dim> shape) const;
  llvm::Error broadcastsTo(unsigned i, llvm::ArrayRef<Dim> shape) const;
  llvm::Error oneElement(unsigned i) const;
  /// All tensor operands have the dtype of the first.
  llvm::Error oneDType() const;
  /// Exactly one of operand `i` and `attribute` is there.
  llvm::Error operandOrAttribute(unsigned i, llvm::StringRef attribute) const;

  //===--- Attributes -----------------------------------------------------===//

  /// Present, or absent with a default.
  bool hasAttribute(llvm::StringRef name) const { return op.attribute(name); }
  /// An integer that may not be symbolic.
  llvm::Expected<int64_t> constant(llvm::StringRef name) const;
  /// Integers that may not be symbolic; none when absent.
  llvm::Expected<Ints> constants(llvm::StringRef name) const;
  /// As `constants`, for `count` dimensions: one number stands for all.
  llvm::Expected<Ints> constantsPerDim(llvm::StringRef name, unsigned count, int64_t minimum) const;
  /// An integer or symbolic size that is not known to be negative.
  llvm::Expected<Dim> size(llvm::StringRef name) const;
  llvm::Expected<Dims> sizes(llvm::StringRef name) const;
  /// A dimension of a tensor of `rank`, counted from the end when negative. A 0-d tensor counts as
  /// having one.
  llvm::Expected<unsigned> dim(llvm::StringRef name, unsigned rank) const;
  /// A dimension of operand `i`, which must have one.
  llvm::Expected<unsigned> dimOf(unsigned i, llvm::StringRef name) const;
  /// Different dimensions, in the order given.
  llvm::Expected<llvm::SmallVector<unsigned, 4>> dims(llvm::StringRef name, unsigned rank) const;
  /// The dtype attribute, or `otherwise`.
  DType dtypeOr(llvm::StringRef name, DType otherwise) const;
  /// A list of `count` bools; all true when absent.
  llvm::Expected<llvm::SmallVector<bool, 4>> mask(llvm::StringRef name, unsigned count) const;

  //===--- Results --------------------------------------------------------===//

  /// Adds a row-major tensor on `device`. Errors: its size in bytes overflows, its rank is above
  /// `maxRank`.
  llvm::Error fresh(DType dtype, Dims shape);
  /// Adds a view of `base`. Errors: as above, for sizes and strides.
  llvm::Error view(const TensorType &base, Dims shape, Dims strides);
};

/// The indices of operand `i` that attributes `dim`, `start`, `end` and `step` pick.
struct SliceRange {
  unsigned dim;
  Dim start; ///< from the start of the dimension; at most its size, and that only for no indices
  Dim length;
  int64_t step;
};
llvm::Expected<SliceRange> sliceRange(const Inference &in, unsigned i);
/// The index of operand `i` that attributes `dim` and `index` pick.
struct SelectedIndex {
  unsigned dim;
  Dim index; ///< from the start of the dimension
};
llvm::Expected<SelectedIndex> selectedIndex(const Inference &in, unsigned i);

/// Row-major layout of the result of broadcasting all tensor operands from the `first`, and
/// promotion over those from `firstPromoted` and the attribute `scalar`.
struct PointwiseRule {
  enum class Result : uint8_t { Promoted, Float, Bool, First };
  Result result = Result::Promoted;
  DTypeClass operands = DTypeClass::Any;
  unsigned firstPromoted = 0;
};
llvm::Error inferPointwise(Inference &in, const PointwiseRule &rule);

/// One fresh result of the shape and dtype of operand 0.
llvm::Error inferSameType(Inference &in);
/// No results.
llvm::Error inferNothing(Inference &in);

} // namespace rondo
