//===- Verifier.cpp - Does a trace keep the rules of the IR? ----------------===//
//
// The invariants. Each has its number in the tests.
//
// Bodies (Verifier.cpp, VerifierBodies.cpp)
//   1. A body lists live ops only.
//   2. An op stands in one body, once; op, body, results and arguments link to each other.
//   3. A body ends with a terminator and has no other.
//   4. An op has as many bodies as its kind says: none, one region, two for `if` and `while`.
//   5. Bodies are nested at most 256 deep.
//   6. A body has one argument, of the same type, for each operand that it is given.
//   7. What a body returns has the types of what it becomes: the results of the op; for the step
//      of a `while`, the arguments of the next iteration. Results of a `while` have the types of
//      its operands.
//   8. The condition of an `if`, and what the condition of a `while` returns, is one bool.
//
// Values (Verifier.cpp)
//   9. An operand is defined in the body that uses it, before its use. Bodies are isolated.
//  10. A value name is well formed and unique in its body.
//
// Types (VerifierOps.cpp)
//  11. A tensor has as many strides as dimensions, none of them negative; no dimension or stride
//      has overflowed, and its elements and their extent in bytes can be counted in an int64.
//  12. An opaque type is registered and accepts its parameters.
//
// Ops (VerifierOps.cpp)
//  13. The op is of the trace's registry, or opaque.
//  14. It has as many operands as its spec takes; only optional ones are absent.
//  15. Operands are of the kinds that the spec asks for.
//  16. Attributes are known, given once, and of the kind that the spec asks for; no integer in them
//      has overflowed. Required ones are there.
//  17. It has as many results as follow from its spec.
//  18. Its operands and attributes are what its inference accepts.
//  19. Results have the inferred types: dtype, shape and device always, strides for views.
//  20. A fresh result does not overlap itself.
//  21. The verify hook of the spec accepts the op.
//
// Storage (VerifierStorage.cpp)
//  22. After a write in place, no older name of the storage is used, other than by `del`.
//  23. A value that is written has no dimension of stride 0.
//  24. A loop does not carry one storage under two names, if it writes one of them.
//  25. A name is not used after `del`; so what a body returns is not deleted in it.
//  26. A name is deleted once, and an argument of a nested body never.
//
// Claims, regions, generators (VerifierRegions.cpp)
//  27. `del` stands only in a trace with the property `dels`.
//  28. In a trace with the property `claimed`, every op has a claim, but for terminators, `del` and
//      `cuda_graph`. An op inside a claimed region is executed with it and needs none.
//  29. A claim names an executor.
//  30. `cuda_graph` stands only in a trace with the property `regions`.
//  31. `cuda_graph` names a capture domain, and no other op does.
//  32. The `region` of a `cuda_graph` is a number that no other one in the trace has.
//  33. The `inputs` of a `cuda_graph` have one word of `auto`, `static`, `copied`, `patched` for
//      each operand.
//  34. A generator is advanced at most once in a body.
//
// Pairs (VerifierPair.cpp)
//  35. Saved links go from the forward's `return` to arguments of the backward, nowhere else.
//  36. A saved link has one end on each side.
//  37. Both ends of a saved link have one type.
//
// What ops share (VerifierSound.cpp), where none of the above is broken
//  38. An op does not write a byte through two of its operands, as far as the places of views tell.
//  39. What a random op draws from the state of a generator lies below what the generator advances
//      by, if the trace advances it at one place. So it is in a backward, of what the forward read.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/Verifier.h"

#include "VerifierImpl.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::verifier;

//===----------------------------------------------------------------------===//
// Reporter
//===----------------------------------------------------------------------===//

void Reporter::noteDefinition(Diagnostic *diagnostic, ValueId value) {
  if (!diagnostic || !value || value.index() >= trace_.numValues())
    return;
  if (trace_.isArgument(value))
    noteInTrace(diagnostic, Named{value}, " is an argument of type ", trace_.type(value));
  else if (const Op *op = findOp(trace_, trace_.definingOp(value)))
    note(diagnostic, *op, Named{value}, " of type ", trace_.type(value), " is defined here");
}

/// The place of `value` among the unnamed values of its body, as the printer counts them.
static std::optional<unsigned> unnamedIndex(const Trace &trace, ValueId value) {
  const Op *definition = findOp(trace, trace.definingOp(value));
  if (!definition && !trace.isArgument(value))
    return std::nullopt;
  BodyId body = definition ? definition->body() : trace.owner(value);
  if (!body)
    return std::nullopt;
  unsigned count = 0;
  auto findIn = [&](llvm::ArrayRef<ValueId> values) {
    for (ValueId candidate : values) {
      if (candidate == value)
        return true;
      count += trace.name(candidate).empty();
    }
    return false;
  };
  if (findIn(trace.arguments(body)))
    return count;
  for (OpId id : trace.ops(body))
    if (const Op *op = findOp(trace, id); op && findIn(op->results()))
      return count;
  return std::nullopt;
}

void Reporter::write(llvm::raw_ostream &os, Named part) const {
  if (!part.value || part.value.index() >= trace_.numValues()) {
    os << "a value that does not exist";
    return;
  }
  if (llvm::StringRef name = trace_.name(part.value); !name.empty())
    os << "'%" << name << "'";
  else if (std::optional<unsigned> index = unnamedIndex(trace_, part.value))
    os << "'%" << *index << "'";
  else
    os << "an unnamed value";
}

void Reporter::write(llvm::raw_ostream &os, OperandOf part) const {
  os << "'" << part.op.name() << "' op operand #" << part.index << " (";
  write(os, Named{part.op.operand(part.index)});
  os << ")";
}

void Reporter::write(llvm::raw_ostream &os, ResultOf part) const {
  os << "'" << part.op.name() << "' op result #" << part.index << " (";
  write(os, Named{part.op.result(part.index)});
  os << ")";
}

void Reporter::write(llvm::raw_ostream &os, BodyOf part) const {
  if (!part.parent) {
    os << "the trace";
    return;
  }
  os << "body";
  if (part.parent->bodies().size() > 1)
    for (unsigned i = 0; i < part.parent->bodies().size(); ++i)
      if (part.parent->bodies()[i] == part.body)
        os << " #" << i;
  os << " of '" << part.parent->name() << "' op";
}

void Reporter::write(llvm::raw_ostream &os, Counted part) const {
  os << part.count << ' ' << part.noun << (part.count == 1 ? "" : "s");
}

//===----------------------------------------------------------------------===//
// TraceVerifier
//===----------------------------------------------------------------------===//

static constexpr unsigned maxBodyDepth = 256;

namespace {

/// The sweep over all bodies, from the top one inwards, in program order.
class TraceVerifier {
public:
  TraceVerifier(const Trace &trace, DiagnosticList &diagnostics)
      : trace_(trace), report_(trace, diagnostics), ops_(trace, report_), bodies_(trace, report_),
        storage_(trace, report_), regions_(trace, report_), scopes_(trace.numValues()),
        isSeen_(trace.numOps()) {}

  void run() {
    verifyBody(Trace::topBody(), nullptr, BodyId());
    regions_.finish();
  }

private:
  void verifyBody(BodyId body, const Op *parent, BodyId outer);
  void verifyArguments(BodyId body, const Op *parent, BodyId outer);
  void verifyOp(const Op &op, BodyId body, bool isLast);
  bool resolveOperands(const Op &op, BodyId body);
  bool verifyResultTypes(const Op &op);
  void verifyBodies(const Op &op, BodyId body);
  void defineResults(const Op &op, BodyId body);
  void define(ValueId value, BodyId body, const Op *op);
  void verifyNames(const Op *parent, size_t first);
  void reportUndefined(const Op &op, unsigned operand, BodyId body);

  bool isDefined(ValueId value, BodyId body) const {
    return value && value.index() < scopes_.size() && scopes_[value.index()] == body.index() + 1;
  }

  const Trace &trace_;
  Reporter report_;
  OpVerifier ops_;
  BodyVerifier bodies_;
  StorageVerifier storage_;
  RegionVerifier regions_;
  /// Per value: 1 + the index of the body in which it was defined so far; 0: nowhere.
  std::vector<uint32_t> scopes_;
  std::vector<bool> isSeen_; ///< per op
  struct NamedValue {
    uintptr_t name; ///< address; equal names have equal addresses
    uint32_t position;
    ValueId value;
  };
  /// The named values of the bodies that the sweep is in, the innermost last.
  std::vector<NamedValue> names_;
  llvm::SmallVector<const Type *, 8> operandTypes_;
  unsigned depth_ = 0;
  unsigned claimedRegions_ = 0; ///< how many of the enclosing ops are regions with a claim
};

} // namespace

/// `outer`: where `parent`, the op that carries `body`, stands.
void TraceVerifier::verifyBody(BodyId body, const Op *parent, BodyId outer) {
  size_t firstName = names_.size();
  verifyArguments(body, parent, outer);
  llvm::ArrayRef<OpId> ops = trace_.ops(body);
  for (size_t i = 0; i < ops.size(); ++i) {
    const Op *op = findOp(trace_, ops[i]);
    if (!op) {
      report_.errorInBody(parent, BodyOf{parent, body}, " lists an op that does not exist, at #",
                          i);
      continue;
    }
    if (isSeen_[op->id().index()]) {
      report_.error(*op, "'", op->name(), "' op stands in the program twice");
      continue;
    }
    isSeen_[op->id().index()] = true;
    if (op->body() != body)
      report_.error(*op, "'", op->name(), "' op is listed in ", BodyOf{parent, body},
                    " but is linked to another body");
    verifyOp(*op, body, i + 1 == ops.size());
  }
  if (!findTerminator(trace_, body))
    report_.errorInBody(parent, BodyOf{parent, body}, " does not end with a terminator");
  verifyNames(parent, firstName);
}

void TraceVerifier::verifyArguments(BodyId body, const Op *parent, BodyId outer) {
  llvm::ArrayRef<ValueId> arguments = trace_.arguments(body);
  llvm::ArrayRef<ValueId> passed = parent ? passedOperands(*parent) : llvm::ArrayRef<ValueId>();
  for (size_t i = 0; i < arguments.size(); ++i) {
    ValueId argument = arguments[i];
    if (!trace_.isArgument(argument) || trace_.owner(argument) != body ||
        trace_.index(argument) != i)
      report_.errorInBody(parent, "argument #", i, " (", Named{argument}, ") of ",
                          BodyOf{parent, body}, " is linked to another place");
    ops_.verifyArgumentType(argument, parent);
    bool hasOperand = i < passed.size() && isDefined(passed[i], outer);
    storage_.defineArgument(argument, hasOperand ? passed[i] : ValueId());
    define(argument, body, parent);
  }
}

void TraceVerifier::verifyOp(const Op &op, BodyId body, bool isLast) {
  if (op.spec().terminator && !isLast)
    report_.error(op, "'", op.name(), "' op is a terminator but not the last op of its body");

  bool hasSoundTypes = verifyResultTypes(op);
  bool isResolved = resolveOperands(op, body);
  bool fitsSpec = isResolved && hasSoundTypes && ops_.verify(op, operandTypes_);
  regions_.verify(op, fitsSpec, claimedRegions_ != 0);

  if (op.spec().bodies == BodyKind::None && op.bodies().empty()) {
    storage_.define(op, fitsSpec);
  } else {
    bodies_.verifyKind(op, fitsSpec);
    uint32_t before = storage_.now();
    verifyBodies(op, body);
    bodies_.verifyReturns(op);
    storage_.defineFromBodies(op, before);
  }
  defineResults(op, body);
}

/// Fills `operandTypes_`. Returns true if every operand is defined and of a sound type.
bool TraceVerifier::resolveOperands(const Op &op, BodyId body) {
  bool isDel = regions_.isDel(op);
  bool isResolved = true;
  operandTypes_.clear();
  for (unsigned i = 0; i < op.operands().size(); ++i) {
    ValueId operand = op.operand(i);
    if (!operand) {
      operandTypes_.push_back(nullptr);
      continue;
    }
    if (!isDefined(operand, body)) {
      reportUndefined(op, i, body);
      isResolved = false;
      continue;
    }
    operandTypes_.push_back(&trace_.type(operand));
    isResolved &= ops_.isSound(trace_.type(operand));
    if (isDel)
      storage_.erase(op, i);
    else
      storage_.use(op, i);
  }
  return isResolved;
}

bool TraceVerifier::verifyResultTypes(const Op &op) {
  bool isSound = true;
  for (unsigned i = 0; i < op.results().size(); ++i)
    isSound &= ops_.verifyResultType(op, i);
  return isSound;
}

void TraceVerifier::verifyBodies(const Op &op, BodyId body) {
  if (depth_ == maxBodyDepth) {
    report_.error(op, "'", op.name(), "' op: bodies are nested more than ", maxBodyDepth, " deep");
    return;
  }
  bool isClaimedRegion = op.claim() && op.spec().bodies == BodyKind::Region;
  ++depth_;
  claimedRegions_ += isClaimedRegion;
  for (BodyId nested : op.bodies()) {
    if (trace_.parentOp(nested) != op.id()) {
      report_.error(op, BodyOf{&op, nested}, " is linked to another op");
      continue;
    }
    bodies_.verifyArguments(op, nested);
    verifyBody(nested, &op, body);
  }
  claimedRegions_ -= isClaimedRegion;
  --depth_;
}

void TraceVerifier::defineResults(const Op &op, BodyId body) {
  for (unsigned i = 0; i < op.results().size(); ++i) {
    ValueId result = op.result(i);
    if (trace_.definingOp(result) != op.id() || trace_.index(result) != i)
      report_.error(op, ResultOf{op, i}, " is linked to another place");
    define(result, body, &op);
  }
}

/// `op`: the op that gives `value`, or whose body has it as an argument.
void TraceVerifier::define(ValueId value, BodyId body, const Op *op) {
  scopes_[value.index()] = body.index() + 1;
  llvm::StringRef name = trace_.name(value);
  if (name.empty())
    return;
  if (!Trace::isValueName(name))
    report_.errorInBody(op, "value name '%", name,
                        "' is malformed: expected a letter or '_', then letters, digits, '_', "
                        "'.', '$'");
  names_.push_back({reinterpret_cast<uintptr_t>(name.data()), uint32_t(names_.size()), value});
}

/// Sorts a sequence of a few sorted runs by merging them.
template <typename T, typename Less>
static void sortRuns(llvm::MutableArrayRef<T> items, Less isBefore) {
  constexpr size_t few = 256;
  llvm::SmallVector<T *, 16> bounds = {items.begin()};
  for (T *item = items.begin(); item != items.end() && bounds.size() < few; ++item)
    if (item != items.begin() && isBefore(*item, item[-1]))
      bounds.push_back(item);
  if (bounds.size() == few) {
    llvm::sort(items, isBefore);
    return;
  }
  for (bounds.push_back(items.end()); bounds.size() > 2;) {
    size_t kept = 1;
    for (size_t i = 2; i < bounds.size(); i += 2) {
      std::inplace_merge(bounds[i - 2], bounds[i - 1], bounds[i], isBefore);
      bounds[kept++] = bounds[i];
    }
    if (bounds.size() % 2 == 0) // a run without a partner
      bounds[kept++] = bounds.back();
    bounds.resize(kept);
  }
}

/// Looks for equal names from `first` on, those of a body of `parent`, and forgets them. Names that
/// were made in program order mostly have rising addresses, so that there is little to sort.
void TraceVerifier::verifyNames(const Op *parent, size_t first) {
  auto names = llvm::MutableArrayRef<NamedValue>(names_).drop_front(first);
  auto isBefore = [](const NamedValue &a, const NamedValue &b) {
    return std::tie(a.name, a.position) < std::tie(b.name, b.position);
  };
  sortRuns(names, isBefore);
  llvm::SmallVector<std::pair<NamedValue, ValueId>, 0> repeated; // and the one before
  for (size_t i = 1; i < names.size(); ++i)
    if (names[i].name == names[i - 1].name)
      repeated.push_back({names[i], names[i - 1].value});
  // Addresses differ from run to run, positions do not.
  llvm::sort(repeated,
             [](const auto &a, const auto &b) { return a.first.position < b.first.position; });
  for (const auto &[again, before] : repeated) {
    const Op *op = findOp(trace_, trace_.definingOp(again.value));
    report_.noteDefinition(report_.errorInBody(op ? op : parent, "value name '%",
                                               trace_.name(again.value),
                                               "' is used twice in one body"),
                           before);
  }
  names_.resize(first);
}

/// Returns true if `argument` is still one of its body.
static bool isListed(const Trace &trace, ValueId argument) {
  llvm::ArrayRef<ValueId> arguments = trace.arguments(trace.owner(argument));
  unsigned index = trace.index(argument);
  return index < arguments.size() && arguments[index] == argument;
}

void TraceVerifier::reportUndefined(const Op &op, unsigned operand, BodyId body) {
  ValueId value = op.operand(operand);
  if (value.index() >= trace_.numValues()) {
    report_.error(op, "'", op.name(), "' op operand #", operand, " does not exist");
    return;
  }
  OpId id = trace_.definingOp(value);
  const Op *definition = findOp(trace_, id);
  if (definition && definition->body() == body) {
    llvm::StringRef what =
        id == op.id() ? " is a result of the op itself" : " is used before its definition";
    report_.noteDefinition(report_.error(op, OperandOf{op, operand}, what), value);
    return;
  }
  bool isElsewhere = definition ? definition->body().isValid() : !id && isListed(trace_, value);
  if (isElsewhere) {
    report_.noteDefinition(report_.error(op, OperandOf{op, operand},
                                         " is defined in another body; a body must be given "
                                         "what it uses as arguments"),
                           value);
  } else {
    report_.error(op, OperandOf{op, operand}, " is no longer defined in the program");
  }
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void rondo::verify(const Trace &trace, DiagnosticList &diagnostics) {
  TraceVerifier(trace, diagnostics).run();
  if (diagnostics.hasErrors())
    return;
  Reporter report(trace, diagnostics);
  verifySound(trace, report);
}

llvm::Error rondo::verify(const Trace &trace) {
  DiagnosticList diagnostics;
  verify(trace, diagnostics);
  return diagnostics.takeError();
}
