//===- CoreOpsTable.h - How the core ops are written down -------*- C++ -*-===//
//
//   table.add(OpDef("layer_norm", "normalises the last dimensions")
//                 .in("x, w?, b?")
//                 .attr("normalized_shape", AttributeKind::IntList)
//                 .attr("eps", AttributeKind::Number, 1e-5)
//                 .out("out, mean, rstd")
//                 .infer(inferLayerNorm));
//
// One function per family of ops fills the table; CoreOps.cpp calls them.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Inference.h"

#include "rondo/ir/OpRegistry.h"

namespace rondo {

/// An op under construction.
class OpDef {
public:
  OpDef(llvm::StringRef name, llvm::StringRef summary);
  explicit OpDef(OpSpec spec) : spec_(std::move(spec)) {}

  /// Operands, separated by ", ": `x` required, `x?` optional, `x*` variadic; a kind other than
  /// tensor after a colon: `b?:number` (tensor or scalar), `:scalar`, `:rng`, `:any`.
  OpDef &in(llvm::StringRef operands);
  /// Result names, separated by ", ". Without a call the op has one, `out`.
  OpDef &out(llvm::StringRef results);
  /// The number of results depends on operands or attributes; at most those named, unless none is
  /// or the last one stands for a list.
  OpDef &variadicOut(llvm::StringRef results);

  /// A required attribute.
  OpDef &attr(llvm::StringRef name, AttributeKind kind);
  OpDef &attr(llvm::StringRef name, AttributeKind kind, Attribute defaultValue);
  OpDef &optional(llvm::StringRef name, AttributeKind kind);

  /// `dim`, `start`, `end` and `step`, as `sliceRange` reads them.
  OpDef &sliceAttributes();

  /// `fn` is called with an `Inference &` that has begun, and returns an `llvm::Error`.
  template <typename Fn> OpDef &infer(Fn fn, DevicePolicy policy = DevicePolicy::Same) {
    spec_.infer = [fn = std::move(fn), policy](const OpContext &op,
                                               llvm::SmallVectorImpl<Type> &results) {
      Inference in(op, results);
      if (llvm::Error error = in.begin(policy))
        return error;
      return llvm::Error(fn(in));
    };
    return *this;
  }
  OpDef &pointwise(PointwiseRule rule);
  /// `fn` is called with the op, as `infer` sees it, and the number of a result that is a view. The
  /// offset of an op that inference refuses is `Dim::overflow()`.
  OpDef &viewOffset(llvm::Expected<Dim> (*fn)(const Inference &, unsigned));

  // What attribute values must satisfy beyond their kind.
  OpDef &oneOf(llvm::StringRef attribute, std::vector<std::string> values);
  OpDef &between(llvm::StringRef attribute, double low, double high);
  /// Symbolic values pass.
  OpDef &atLeast(llvm::StringRef attribute, double low);
  /// Adds a check to those above.
  OpDef &verify(VerifyFn check);

  OpDef &noLaunch();
  OpDef &noReads();
  OpDef &countsFromStorageStart();
  /// Result 0 is a view of operand 0 that looks at no data.
  OpDef &viewOfFirst();
  OpDef &allViewsOfFirst();
  /// Operand 0 is written; result 0 is its new name.
  OpDef &inPlace() { return renames({{0, 0}}); }
  /// As `inPlace`, for the operand and result of each pair.
  OpDef &renames(std::vector<ViewEffect> names);
  OpDef &random();
  /// The op draws as many numbers as `fn` says of it.
  OpDef &draws(DrawsFn fn);
  OpDef &commutative();
  OpDef &terminator();
  OpDef &bodies(BodyKind kind);
  OpDef &resource(ResourceKind kind, bool writes);
  /// The resource that string attribute `attribute` names.
  OpDef &namedResource(ResourceKind kind, llvm::StringRef attribute, bool writes);
  OpDef &effects(EffectsFn effects);

  OpSpec take() { return std::move(spec_); }

private:
  OpSpec spec_;
};

/// Puts ops into a registry and keeps what went wrong.
class OpTable {
public:
  explicit OpTable(OpRegistry &registry) : registry_(registry) {}
  void add(OpDef &def);
  void add(OpDef &&def) { add(def); }
  /// An op added before. Null when it was refused.
  const OpSpec *lookup(llvm::StringRef name) const { return registry_.lookup(name); }
  llvm::Error takeError() { return std::move(error_); }

private:
  OpRegistry &registry_;
  llvm::Error error_ = llvm::Error::success();
};

void addConstantOps(OpTable &table);
void addPointwiseOps(OpTable &table);
void addReductionOps(OpTable &table);
void addMatmulOps(OpTable &table);
void addNormalizationOps(OpTable &table);
void addConvolutionOps(OpTable &table);
void addAttentionOps(OpTable &table);
void addLossOps(OpTable &table);
void addRandomOps(OpTable &table);
void addViewOps(OpTable &table);
void addDataMovementOps(OpTable &table);
void addIndexOps(OpTable &table);
/// After the ops whose in-place forms it makes.
void addInPlaceOps(OpTable &table);
void addGradientOps(OpTable &table);
void addOptimizerOps(OpTable &table);
void addCollectiveOps(OpTable &table);
void addControlOps(OpTable &table);

} // namespace rondo
