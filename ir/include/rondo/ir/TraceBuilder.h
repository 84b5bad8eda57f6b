//===- TraceBuilder.h - Building traces from code ---------------*- C++ -*-===//
//
//   OpRegistry registry;
//   cantFail(registerCoreOps(registry));
//   TraceBuilder b(registry, "forward");
//   ValueId x = b.argument("x", TensorType(DType::F32, {8, 32}));
//   ValueId w = b.argument("w", TensorType(DType::F32, {16, 32}), ValueTags::Parameter);
//   ValueId y = b.op("relu", {b.op("linear", {x, w})});
//   b.returnValues({y});
//   llvm::Expected<Trace> trace = std::move(b).finish();
//
// Mistakes are collected, not thrown: an op that cannot be made gives results that poison whatever
// uses them, and `finish` returns all diagnostics. In-place ops rename: after `b.op("add_", {x,
// y})`, `x` and the views made of it still denote the storage, and the builder uses its newest name
// wherever one of them is passed.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Trace.h"

#include "llvm/ADT/DenseSet.h"

namespace rondo {

/// An attribute given to the builder.
using AttributeInit = std::pair<llvm::StringRef, Attribute>;

/// Builds one trace. One thread.
class TraceBuilder {
public:
  explicit TraceBuilder(const OpRegistry &registry, llvm::StringRef name = "trace");
  /// Continues `trace`: new ops go to the end of its top body, before nothing.
  explicit TraceBuilder(Trace trace);

  ValueId argument(llvm::StringRef name, const Type &type, ValueTags tags = ValueTags::None);

  /// Makes an op with one result and returns it. Result types are inferred.
  ValueId op(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
             llvm::ArrayRef<AttributeInit> attributes = {});
  /// Makes an op with any number of results. Empty after an error.
  llvm::SmallVector<ValueId, 4> ops(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                                    llvm::ArrayRef<AttributeInit> attributes = {});
  /// As `ops`, with given result types instead of inferred ones (fresh results with other strides,
  /// ops without inference).
  llvm::SmallVector<ValueId, 4> opWithTypes(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                                            llvm::ArrayRef<Type> resultTypes,
                                            llvm::ArrayRef<AttributeInit> attributes = {});
  void returnValues(llvm::ArrayRef<ValueId> values);

  /// An op with bodies. `build` is called once per body, with its arguments, and returns what its
  /// `return` gives. Inside, `op` and the like add to that body. The argument types are those of
  /// the operands the body gets.
  using BuildBody =
      llvm::function_ref<llvm::SmallVector<ValueId, 4>(TraceBuilder &, llvm::ArrayRef<ValueId>)>;
  llvm::SmallVector<ValueId, 4> opWithBodies(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                                             llvm::ArrayRef<AttributeInit> attributes,
                                             llvm::ArrayRef<BuildBody> bodies);

  /// Names the last op's results; appended numbers make them unique within the body.
  void nameResults(llvm::ArrayRef<llvm::StringRef> names);
  /// Annotations of the ops made from here on.
  void setModulePath(llvm::StringRef path) { modulePath_ = path.str(); }
  void setLocation(Location location) { location_ = std::move(location); }

  /// The newest name of `value`'s storage with the shape of `value`: `value` itself unless it went
  /// stale; then the result of the in-place op that renamed it, or a view made again from there.
  ValueId current(ValueId value);

  const Trace &trace() const { return trace_; }
  /// The id of the op made last; invalid before the first and after a failed one.
  OpId lastOp() const { return lastOp_; }
  bool hasErrors() const { return diagnostics_.hasErrors(); }
  /// The finished trace, verified; or all diagnostics.
  llvm::Expected<Trace> finish() &&;

private:
  llvm::SmallVector<ValueId, 4> create(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                                       llvm::ArrayRef<AttributeInit> attributes,
                                       std::optional<llvm::ArrayRef<Type>> resultTypes,
                                       llvm::ArrayRef<BuildBody> bodies = {});
  const OpSpec *lookup(llvm::StringRef name);
  bool resolveOperands(llvm::StringRef name, llvm::ArrayRef<ValueId> operands,
                       llvm::SmallVectorImpl<ValueId> &resolved);
  bool buildBodies(OpId op, llvm::ArrayRef<BuildBody> bodies);
  std::string uniqueName(llvm::StringRef name);
  void fail(const llvm::Twine &message);
  ValueId poison();

  ValueId rootOf(ValueId value) const;
  void recordOp(const Op &op);
  ValueId renew(ValueId value, ValueId newest);

  /// What is known of a storage root that was written in place.
  struct Write {
    ValueId newest; ///< the name the last write gave; invalid if it gave none
    unsigned count = 0;
  };

  Trace trace_;
  BodyId body_ = Trace::topBody();
  OpId lastOp_;
  DiagnosticList diagnostics_;
  std::string modulePath_;
  std::optional<Location> location_;
  /// Names taken per body, and the number to append next when one is asked for again.
  llvm::DenseMap<std::pair<BodyId, llvm::StringRef>, unsigned> names_;
  /// Stands for results that could not be made.
  ValueId poisonValue_;
  llvm::DenseSet<ValueId> poisoned_;
  llvm::DenseMap<ValueId, ValueId> root_; ///< views only
  llvm::DenseMap<ValueId, Write> writes_; ///< by root
  /// How often the root of a value had been written when the value was made; 0 if absent.
  llvm::DenseMap<ValueId, unsigned> madeAt_;
  /// What took the place of a stale value.
  llvm::DenseMap<ValueId, ValueId> renamed_;
  Effects effects_; ///< scratch
};

/// Checks arity, operand kinds and the attribute schema of an op about to be made, then infers its
/// result types. `operands` holds null for absent ones. Errors: one, without location.
llvm::Error checkOp(const OpSpec &spec, llvm::ArrayRef<const Type *> operands,
                    llvm::ArrayRef<NamedAttribute> attributes);
llvm::Error inferResultTypes(const OpSpec &spec, llvm::ArrayRef<const Type *> operands,
                             llvm::ArrayRef<NamedAttribute> attributes,
                             llvm::SmallVectorImpl<Type> &results);

} // namespace rondo
