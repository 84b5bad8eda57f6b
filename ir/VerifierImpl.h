//===- VerifierImpl.h - The parts of the verifier ---------------*- C++ -*-===//
//
// One sweep over a trace drives the checkers, which share nothing but a Reporter:
//
//   TraceVerifier    (Verifier.cpp)         the sweep: order, definitions and uses, names
//   BodyVerifier     (VerifierBodies.cpp)   what goes into bodies and comes out of them
//   OpVerifier       (VerifierOps.cpp)      types; an op against its spec
//   StorageVerifier  (VerifierStorage.cpp)  stale names, `del`
//   RegionVerifier   (VerifierRegions.cpp)  claims, domains, `cuda_graph`, generators
//
// What is left is looked at in a trace that is sound so far (VerifierSound.cpp).
//
// A sound trace costs no allocation per op: tables are indexed by id, scratch vectors are reused,
// and text is made only for what is reported.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/TracePair.h"

#include <array>

namespace rondo::verifier {

/// The op, or null if there is none with this id.
inline const Op *findOp(const Trace &trace, OpId id) {
  return id && id.index() < trace.numOps() && !trace.isErased(id) ? &trace.op(id) : nullptr;
}
/// The type, or null if there is no value with this id.
inline const Type *findType(const Trace &trace, ValueId value) {
  return value && value.index() < trace.numValues() ? &trace.type(value) : nullptr;
}
/// As Trace::terminator, for any body.
inline const Op *findTerminator(const Trace &trace, BodyId body) {
  llvm::ArrayRef<OpId> ops = trace.ops(body);
  const Op *last = ops.empty() ? nullptr : findOp(trace, ops.back());
  return last && last->spec().terminator ? last : nullptr;
}
/// The operands that the bodies of `op` are given: all but the condition of an `if`.
inline llvm::ArrayRef<ValueId> passedOperands(const Op &op) {
  return op.operands().drop_front(op.spec().bodies == BodyKind::If && !op.operands().empty());
}

/// In a message: `'%x'`, as the printer names the value.
struct Named {
  ValueId value;
};
/// In a message: `'add' op operand #1 ('%x')`.
struct OperandOf {
  const Op &op;
  unsigned index;
};
/// In a message: `'mm' op result #0 ('%y')`.
struct ResultOf {
  const Op &op;
  unsigned index;
};
/// In a message: `1 operand`, `2 operands`.
struct Counted {
  size_t count;
  llvm::StringRef noun;
};
/// In a message: `body #1 of 'if' op`, or `the trace`.
struct BodyOf {
  const Op *parent;
  BodyId body;
};

/// Puts located diagnostics about one trace into a list. While the list is full, errors are counted
/// and cost nothing else.
class Reporter {
public:
  Reporter(const Trace &trace, DiagnosticList &list) : trace_(trace), list_(list) {}

  /// An error at `op`, put together from `parts`: strings, numbers, types and the structs above.
  /// Null when the list is full, else valid until the next error.
  template <typename... Parts> Diagnostic *error(const Op &op, const Parts &...parts) {
    if (countOnly())
      return nullptr;
    return &list_.error(locationOf(trace_, op.id()), message(parts...));
  }
  /// An error about the trace as a whole, or about the body of `parent`.
  template <typename... Parts> Diagnostic *errorInBody(const Op *parent, const Parts &...parts) {
    if (parent)
      return error(*parent, parts...);
    if (countOnly())
      return nullptr;
    return &list_.error(traceLocation(), message(parts...));
  }

  /// Notes do nothing when `diagnostic` is null.
  template <typename... Parts>
  void note(Diagnostic *diagnostic, const Op &at, const Parts &...parts) {
    if (diagnostic)
      diagnostic->note(locationOf(trace_, at.id()), message(parts...));
  }
  template <typename... Parts> void noteInTrace(Diagnostic *diagnostic, const Parts &...parts) {
    if (diagnostic)
      diagnostic->note(traceLocation(), message(parts...));
  }
  /// Where `value` is defined: "'%x' is defined here".
  void noteDefinition(Diagnostic *diagnostic, ValueId value);

private:
  bool countOnly() {
    if (!list_.isFull())
      return false;
    list_.error({}, "");
    return true;
  }
  Location traceLocation() const { return {"", 0, 0, ("@" + trace_.name()).str()}; }

  template <typename... Parts> std::string message(const Parts &...parts) const {
    std::string text;
    llvm::raw_string_ostream os(text);
    (write(os, parts), ...);
    os.flush();
    return text;
  }
  template <typename Part> void write(llvm::raw_ostream &os, const Part &part) const { os << part; }
  void write(llvm::raw_ostream &os, Named part) const;
  void write(llvm::raw_ostream &os, OperandOf part) const;
  void write(llvm::raw_ostream &os, ResultOf part) const;
  void write(llvm::raw_ostream &os, BodyOf part) const;
  void write(llvm::raw_ostream &os, Counted part) const;

  const Trace &trace_;
  DiagnosticList &list_;
};

/// What goes into bodies and comes out of them.
class BodyVerifier {
public:
  BodyVerifier(const Trace &trace, Reporter &report) : trace_(trace), report_(report) {}

  /// Checks the number of bodies and, if the op fits its spec so far, the condition of an `if`.
  void verifyKind(const Op &op, bool fitsSpec);
  /// Checks the arguments of `body`, one of `op`, against the operands.
  void verifyArguments(const Op &op, BodyId body);
  /// Checks what the bodies return against the results.
  void verifyReturns(const Op &op);

private:
  void verifyReturn(const Op &op, BodyId body, llvm::ArrayRef<ValueId> targets,
                    llvm::StringRef role);
  void verifyLoopResults(const Op &op);
  void verifyCondition(const Op &op, unsigned operand, llvm::StringRef role);

  const Trace &trace_;
  Reporter &report_;
};

/// Types, and ops against their specs. Remembers what it found out about types and specs.
class OpVerifier {
public:
  OpVerifier(const Trace &trace, Reporter &report) : trace_(trace), report_(report) {}

  /// Checks the type of `value`, an argument of a body of `parent` (null: of the trace), or that of
  /// a result. Returns true if it is sound.
  bool verifyArgumentType(ValueId value, const Op *parent);
  bool verifyResultType(const Op &op, unsigned index);
  /// What was found of a type that was checked before.
  bool isSound(const Type &type) const;

  /// Checks `op` against its spec. `operandTypes` holds null for absent operands. Returns true if
  /// it fits, so that hooks may be asked about it.
  bool verify(const Op &op, llvm::ArrayRef<const Type *> operandTypes);

private:
  /// What is wrong with `type`; empty if nothing is.
  std::string findFault(const Type &type);
  size_t hashOf(const Op &op, llvm::ArrayRef<const Type *> operandTypes) const;
  bool isAlike(const Op &known, const Op &op, llvm::ArrayRef<const Type *> operandTypes) const;
  bool verifyAnew(const Op &op, llvm::ArrayRef<const Type *> operandTypes);
  bool verifySpec(const Op &op);
  bool verifyIntegers(const Op &op);
  bool verifyInferredTypes(const Op &op, const OpContext &context);
  bool verifyDeclaredTypes(const Op &op);
  bool verifyResultCount(const Op &op, size_t expected);
  bool verifyResult(const Op &op, unsigned index, const Type &expected);
  bool verifyFreshResult(const Op &op, unsigned index);
  bool isViewResult(const Op &op, unsigned index);

  const Trace &trace_;
  Reporter &report_;
  llvm::DenseMap<const Type *, bool> isSound_;
  bool areAllSound_ = true; ///< of the types in `isSound_`
  llvm::DenseMap<const OpSpec *, bool> isKnown_;
  /// Ops that fit their specs, by a hash of spec and types; each place holds the last one.
  std::array<const Op *, 512> fitting_ = {};
  llvm::SmallVector<const Type *, 8> resultTypes_;
  llvm::SmallVector<Type, 4> inferred_;
  Effects effects_;
};

/// Which names of a storage may still be used, at the point that the sweep has reached. Roots are
/// named by the value that made the storage. An argument of a body has the roots of the operand
/// that it stands for: a write inside a body makes the names outside stale, and two arguments that
/// are given one storage are two names of it.
class StorageVerifier {
public:
  StorageVerifier(const Trace &trace, Reporter &report);

  /// `operand` is what the argument stands for; invalid if it has none or that is unusable.
  void defineArgument(ValueId argument, ValueId operand);
  /// `op` uses its `i`-th operand, which is defined in the same body.
  void use(const Op &op, unsigned i);
  /// `del` ends the name of its `i`-th operand.
  void erase(const Op &del, unsigned i);
  /// The results of an op without bodies, after what it writes. `isSound`: its operands are usable
  /// and it fits its spec.
  void define(const Op &op, bool isSound);
  /// The results of an op with bodies, after its bodies were swept. `before`: what `now` was before
  /// that.
  void defineFromBodies(const Op &op, uint32_t before);
  /// Number of ops that wrote so far.
  uint32_t now() const { return now_; }

private:
  struct Storage {
    uint32_t root;      ///< a value, or an index into `sets_` with the top bit set
    uint32_t madeAt;    ///< time of its definition
    uint32_t lastWrite; ///< for roots: time of the last write; 0: never
  };
  struct Write {
    OpId writer;
    ValueId through; ///< the operand that was written
    ValueId newest;  ///< the result that renames it; invalid: none
  };
  struct RootSet {
    uint32_t begin, size; ///< in `pool_`
  };

  bool isUsable(ValueId value) const { return value && value.index() < values_.size(); }
  llvm::ArrayRef<uint32_t> roots(uint32_t value) const;
  void setRoots(uint32_t value, llvm::ArrayRef<uint32_t> roots);
  void addView(ValueId view, ValueId viewed);
  void write(const Op &op, unsigned i, llvm::ArrayRef<ViewEffect> views);
  void reportStale(const Op &op, unsigned i, uint32_t root);
  ValueId returned(BodyId body, unsigned i) const;
  void defineFromLoop(const Op &op);
  void verifyCarried(const Op &op, uint32_t before);
  bool isWrittenSince(ValueId value, uint32_t before) const;

  const Trace &trace_;
  Reporter &report_;
  std::vector<Storage> values_;
  std::vector<uint32_t> pool_;
  std::vector<RootSet> sets_;
  /// Per root; empty before the first write.
  std::vector<Write> writes_;
  /// Per value: the `del` that ended the name; empty before the first `del`.
  std::vector<OpId> deletedBy_;
  uint32_t now_ = 0;
  Effects effects_;
};

/// Claims, domains, `cuda_graph`, generators.
class RegionVerifier {
public:
  RegionVerifier(const Trace &trace, Reporter &report);

  /// `fitsSpec`: attributes have the kinds that the spec asks for.
  /// `isClaimed`: it is executed with a region that has a claim.
  void verify(const Op &op, bool fitsSpec, bool isClaimed);
  bool isDel(const Op &op) const { return &op.spec() == del_; }
  /// What can be said only of all ops together.
  void finish();

private:
  void verifyClaim(const Op &op, bool isClaimed);
  void verifyRegion(const Op &op, bool fitsSpec);
  void verifyInputs(const Op &op);
  void noteAdvance(const Op &op);

  struct Region {
    int64_t number;
    OpId op;
  };
  struct Advance {
    BodyId body;
    llvm::StringRef generator;
    std::optional<Device> device;
    OpId op;
  };
  const Trace &trace_;
  Reporter &report_;
  const OpSpec *del_, *cudaGraph_, *generatorAdvance_; ///< null: not registered
  std::vector<Region> regions_;
  std::vector<Advance> advances_;
};

/// What ops share, in a trace in which nothing else is wrong.
void verifySound(const Trace &trace, Reporter &report);
/// What the backward draws from states that the forward saved, in a pair in which nothing else is
/// wrong.
void verifySavedDraws(const TracePair &pair, DiagnosticList &diagnostics);

} // namespace rondo::verifier
