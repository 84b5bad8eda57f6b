//===- Canonicalise.cpp - Views and copies in their simplest form ---------===//
//
// Composes chains of views, and removes views and copies that change nothing:
//
//   %a: f32[4, 16] = reshape(%x) {...}            %b: f32[64] = reshape(%x) {...}
//   %b: f32[64] = reshape(%a) {...}               %e: f32[64] = exp(%b)
//   %c: f32[64] = detach(%b)             ==>      return(%e)
//   %d: f32[64] = cast(%c) {dtype = f32}
//   %e: f32[64] = exp(%d)
//   return(%e)
//
// This is about the algebra of particular ops, so there is a table of them, by spec. The rules, for
// an op `y = f(x)` without claim:
//
//   - A view that gives its operand's own type from its operand's own start is the operand.
//   - `reshape`, `squeeze` and `unsqueeze` of any of them are one `reshape`, or the operand if they
//     give back its type; `permute` of `permute`, `expand` of `expand`, and `slice` of `slice`
//     along one dimension, are one.
//   - A copy (`cast`, `to_device`, `contiguous`, `clone`) that gives its operand's own type is the
//     operand, unless the difference can be seen: one of the two storages may be written later; or
//     y leaves the body, and x leaves it too or came from outside: whoever gets y may take it for
//     a tensor of its own.
//
// The tags of y must be tags of x where x takes its place. Every rewritten op gives the type,
// strides included, that it gave before: inference is asked, and where it says otherwise the op
// stays. Views and copies of which this leaves no use are dropped.
//
// A view of a view names the same storage, so it is stale exactly when what it views is: composing
// never uses a stale name.
//
//===----------------------------------------------------------------------===//

#include "StorageWrites.h"

#include "rondo/ir/TraceBuilder.h"
#include "rondo/passes/Passes.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace rondo;

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

namespace {

/// What rules apply to an op.
enum class Family : uint8_t {
  Reshaping, ///< the elements in their order, in another shape
  Permute,
  Expand,
  Slice,
  Alias, ///< a view that is of interest only when it changes nothing
  Copy,  ///< fresh storage with the operand's elements
};

struct FamilyRow {
  llvm::StringLiteral name;
  Family family;
};

constexpr FamilyRow familyTable[] = {
    {"reshape", Family::Reshaping},   {"squeeze", Family::Reshaping},
    {"unsqueeze", Family::Reshaping}, {"permute", Family::Permute},
    {"expand", Family::Expand},       {"slice", Family::Slice},
    {"detach", Family::Alias},        {"split", Family::Alias},
    {"cast", Family::Copy},           {"to_device", Family::Copy},
    {"contiguous", Family::Copy},     {"clone", Family::Copy},
};

/// The table by spec, for the ops that a registry has.
class Families {
public:
  explicit Families(const OpRegistry &registry) : reshape_(registry.lookup("reshape")) {
    for (const FamilyRow &row : familyTable)
      if (const OpSpec *spec = registry.lookup(row.name))
        families_[spec] = row.family;
  }

  /// Nothing if no rule applies to the op.
  std::optional<Family> of(const Op &op) const {
    auto it = families_.find(&op.spec());
    if (it == families_.end() || op.claim() || op.results().size() != 1)
      return std::nullopt;
    return it->second;
  }
  const OpSpec *reshape() const { return reshape_; }

private:
  const OpSpec *reshape_;
  llvm::DenseMap<const OpSpec *, Family> families_;
};

/// What a `slice` takes: every step-th index from `start`, of one dimension.
struct SliceRule {
  unsigned dim = 0;
  int64_t start = 0, step = 1;
};

} // namespace

//===----------------------------------------------------------------------===//
// The algebra
//===----------------------------------------------------------------------===//

static std::optional<unsigned> wrapDim(std::optional<int64_t> dim, unsigned rank) {
  if (!dim || *dim < -int64_t(rank) || *dim >= int64_t(rank))
    return std::nullopt;
  return unsigned(*dim < 0 ? *dim + rank : *dim);
}

static std::optional<int64_t> intAttribute(const Op &op, llvm::StringRef name) {
  const Attribute *attribute = op.attribute(name);
  return attribute ? attribute->asInt() : std::nullopt;
}

/// What a `slice` of a tensor of type `x` takes; nothing unless its start is known.
static std::optional<SliceRule> sliceRule(const Op &op, const TensorType &x) {
  std::optional<unsigned> dim = wrapDim(intAttribute(op, "dim"), x.rank());
  std::optional<int64_t> start = intAttribute(op, "start"), step = intAttribute(op, "step");
  if (!dim || !start || !step)
    return std::nullopt;
  if (*start != 0) {
    std::optional<int64_t> size = x.shape[*dim].asConstant();
    if (!size)
      return std::nullopt;
    start = std::clamp<int64_t>(*start < 0 ? *start + *size : *start, 0, *size);
  }
  return SliceRule{*dim, *start, *step};
}

/// The dimensions of a `permute` of a tensor of rank `rank`, none negative.
static std::optional<llvm::SmallVector<int64_t, 4>> permutationOf(const Op &op, unsigned rank) {
  const Attribute *attribute = op.attribute("dims");
  std::optional<llvm::SmallVector<int64_t, 4>> dims =
      attribute ? attribute->asInts() : std::nullopt;
  if (!dims || dims->size() != rank)
    return std::nullopt;
  for (int64_t &dim : *dims) {
    std::optional<unsigned> wrapped = wrapDim(dim, rank);
    if (!wrapped)
      return std::nullopt;
    dim = *wrapped;
  }
  return dims;
}

/// Returns true if inference gives exactly `result` for `spec` of a tensor of type `operand`.
static bool infersTo(const OpSpec &spec, const Type &operand,
                     llvm::ArrayRef<NamedAttribute> attributes, const Type &result) {
  const Type *operands[] = {&operand};
  llvm::SmallVector<Type, 1> results;
  if (llvm::Error error = inferResultTypes(spec, operands, attributes, results)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  return results.size() == 1 && results.front() == result;
}

//===----------------------------------------------------------------------===//
// One trace
//===----------------------------------------------------------------------===//

namespace {

/// Rewrites one trace: each body in one sweep, operands before their users, then one sweep back
/// that drops what lost its last use.
class TraceCanonicaliser {
public:
  explicit TraceCanonicaliser(Trace &trace)
      : trace_(trace), families_(trace.registry()), roots_(trace), writes_(trace, roots_),
        isExposed_(trace.numValues(), false), replacedBy_(trace.numValues()),
        lostUse_(trace.numOps(), false) {}

  /// Returns true if the trace changed.
  bool run() {
    exposeReturned(Trace::topBody());
    rewriteIn(Trace::topBody());
    for (OpId op : dropped_)
      trace_.eraseOp(op);
    return isChanged_;
  }

private:
  using Roots = llvm::SmallVector<ValueId, 1>;

  //===--- Storage --------------------------------------------------------===//

  void exposeReturned(BodyId body) {
    for (OpId id : trace_.ops(body)) {
      for (BodyId nested : trace_.op(id).bodies())
        exposeReturned(nested);
      if (trace_.op(id).spec().terminator)
        for (ValueId operand : trace_.op(id).operands())
          if (operand)
            expose(operand);
    }
  }

  void expose(ValueId value) {
    for (ValueId root : rootsOf(value))
      isExposed_[root.index()] = true;
  }

  /// The roots of a value as the trace is now.
  Roots rootsOf(ValueId value) const {
    // A value made here names what the one it was made for named.
    if (auto it = madeFor_.find(value); it != madeFor_.end())
      value = it->second;
    Roots roots;
    for (ValueId root : roots_.roots(value)) {
      auto it = rootsOfCopied_.find(root);
      if (it == rootsOfCopied_.end())
        roots.push_back(root);
      else
        roots.append(it->second.begin(), it->second.end());
    }
    return roots;
  }

  /// Returns true if nobody can tell the result of the copy `op` from its operand.
  bool isUnobservable(const Op &op, uint32_t position) const {
    if (writes_.isWrittenAfter(op.result(), position))
      return false;
    bool isCopySeen = isExposed_[op.result().index()];
    return llvm::none_of(rootsOf(op.operand(0)), [&](ValueId root) {
      return writes_.isWrittenAfter(root, position) ||
             (isCopySeen && (isExposed_[root.index()] || writes_.isShared(root)));
    });
  }

  //===--- Edits ----------------------------------------------------------===//

  void setOperand(const Op &op, unsigned i, ValueId value) {
    if (OpId definition = trace_.definingOp(op.operand(i)))
      lostUse_[definition.index()] = true;
    trace_.setOperand(op.id(), i, value);
    isChanged_ = true;
  }

  void replaceOperands(const Op &op) {
    for (unsigned i = 0; i < op.operands().size(); ++i)
      if (ValueId operand = op.operand(i); operand && replacedBy_[operand.index()])
        setOperand(op, i, replacedBy_[operand.index()]);
  }

  /// Uses of the op's result, all of which come later, become uses of `value`.
  void replaceResult(const Op &op, ValueId value) {
    replacedBy_[op.result().index()] = value;
    lostUse_[op.id().index()] = true;
    isChanged_ = true;
  }

  /// Makes an op `spec(x)` that gives what `outer` gives, in its place.
  OpId replaceOp(const Op &outer, const OpSpec &spec, ValueId x, const NamedAttribute &attribute) {
    ValueId old = outer.result();
    OpInit init;
    init.spec = &spec;
    init.operands = {x};
    init.attributes = {{attribute.name, attribute.value}};
    init.resultTypes = {trace_.type(old)};
    init.resultNames = {trace_.name(old)};
    OpId id = trace_.createOp(std::move(init));
    trace_.copyAnnotations(id, trace_, outer.id());
    ValueId result = trace_.op(id).result();
    trace_.setTags(result, trace_.tags(old));
    auto it = madeFor_.find(old);
    const ValueId origin = it == madeFor_.end() ? old : it->second;
    madeFor_[result] = origin;
    replacedBy_.resize(trace_.numValues());
    lostUse_.resize(trace_.numOps());
    replaceResult(outer, result);
    return id;
  }

  //===--- Rules ----------------------------------------------------------===//

  bool isIdentity(const Op &op, Family family, uint32_t position) const {
    ValueId x = op.operand(0);
    if (trace_.type(op.result()) != trace_.type(x) || !tagsAllow(op, x))
      return false;
    if (family == Family::Copy)
      return isUnobservable(op, position);
    // Of a known start, the same size is the whole; of a symbolic one it need not be.
    return family != Family::Slice || sliceRule(op, trace_.tensorType(x));
  }

  bool tagsAllow(const Op &op, ValueId replacement) const {
    return (trace_.tags(op.result()) | trace_.tags(replacement)) == trace_.tags(replacement);
  }

  void replaceByOperand(const Op &op, Family family) {
    if (family == Family::Copy) {
      rootsOfCopied_[op.result()] = rootsOf(op.operand(0));
      if (isExposed_[op.result().index()])
        expose(op.operand(0));
    }
    replaceResult(op, op.operand(0));
  }

  /// Makes `outer` the same op on what `inner` is given, with other attributes. Returns false,
  /// having changed nothing, if that would give another type.
  bool recompose(const Op &outer, const Op &inner, llvm::ArrayRef<NamedAttribute> attributes) {
    ValueId x = inner.operand(0);
    if (!infersTo(outer.spec(), trace_.type(x), attributes, trace_.type(outer.result())))
      return false;
    for (const NamedAttribute &attribute : attributes)
      trace_.setAttribute(outer.id(), attribute.name, attribute.value);
    setOperand(outer, 0, x);
    return true;
  }

  std::optional<OpId> composeReshaping(const Op &outer, const Op &inner) {
    ValueId x = inner.operand(0);
    if (trace_.type(outer.result()) == trace_.type(x) && tagsAllow(outer, x)) {
      replaceResult(outer, x);
      return outer.id();
    }
    const OpSpec *reshape = families_.reshape();
    NamedAttribute shape{"shape", trace_.tensorType(outer.result()).shape};
    if (&outer.spec() == reshape)
      return recompose(outer, inner, shape) ? std::optional(outer.id()) : std::nullopt;
    if (!reshape || !infersTo(*reshape, trace_.type(x), shape, trace_.type(outer.result())))
      return std::nullopt;
    return replaceOp(outer, *reshape, x, shape);
  }

  bool composePermute(const Op &outer, const Op &inner) {
    unsigned rank = trace_.tensorType(outer.result()).rank();
    auto first = permutationOf(inner, rank), second = permutationOf(outer, rank);
    if (!first || !second)
      return false;
    for (int64_t &dim : *second)
      dim = (*first)[dim];
    return recompose(outer, inner, NamedAttribute{"dims", *second});
  }

  bool composeSlice(const Op &outer, const Op &inner) {
    std::optional<SliceRule> first = sliceRule(inner, trace_.tensorType(inner.operand(0)));
    std::optional<SliceRule> second = sliceRule(outer, trace_.tensorType(outer.operand(0)));
    if (!first || !second || first->dim != second->dim)
      return false;
    // The last index taken is the last that either takes, so the end may stop right behind it. A
    // step too large to count in overflows, and inference refuses it.
    Dim length = trace_.tensorType(outer.result()).shape[first->dim];
    Dim start = Dim(first->start) + Dim(second->start) * Dim(first->step);
    Dim step = Dim(first->step) * Dim(second->step);
    Dim end = start + (length - Dim(1)) * step + Dim(1);
    if (!end.isConstant() || !length.isConstant() || length.value() < 1)
      return false;
    return recompose(
        outer, inner,
        {{"dim", int64_t(first->dim)}, {"start", start}, {"end", end}, {"step", step}});
  }

  /// Composes `outer` with the op that makes its operand. Returns the op in its place; nothing, and
  /// nothing is changed, if they do not compose.
  std::optional<OpId> compose(const Op &outer, Family family) {
    OpId definition = trace_.definingOp(outer.operand(0));
    if (!definition || families_.of(trace_.op(definition)) != family)
      return std::nullopt;
    const Op &inner = trace_.op(definition);
    bool isComposed = false;
    switch (family) {
    case Family::Reshaping:
      return composeReshaping(outer, inner);
    case Family::Permute:
      isComposed = composePermute(outer, inner);
      break;
    case Family::Expand: {
      NamedAttribute shape{"shape", trace_.tensorType(outer.result()).shape};
      isComposed = recompose(outer, inner, shape);
      break;
    }
    case Family::Slice:
      isComposed = composeSlice(outer, inner);
      break;
    case Family::Alias:
    case Family::Copy:
      break;
    }
    return isComposed ? std::optional(outer.id()) : std::nullopt;
  }

  /// Applies rules to an op until none does, or its result is replaced. Appends it, or what it
  /// became, to `order`.
  void rewrite(OpId id, uint32_t position, std::vector<OpId> &order) {
    order.push_back(id);
    while (std::optional<Family> family = families_.of(trace_.op(id))) {
      if (isIdentity(trace_.op(id), *family, position))
        return replaceByOperand(trace_.op(id), *family);
      std::optional<OpId> composed = compose(trace_.op(id), *family);
      if (!composed)
        return;
      if (*composed != id)
        order.push_back(*composed);
      else if (replacedBy_[trace_.op(id).result().index()])
        return;
      id = *composed;
    }
  }

  void rewriteIn(BodyId body) {
    std::vector<OpId> order;
    llvm::ArrayRef<OpId> before = trace_.ops(body);
    order.reserve(before.size());
    for (uint32_t position = 0; position < before.size(); ++position) {
      const Op &op = trace_.op(before[position]);
      replaceOperands(op);
      for (BodyId nested : op.bodies())
        rewriteIn(nested);
      rewrite(op.id(), position, order);
    }
    dropUnused(order);
    if (!llvm::equal(order, trace_.ops(body)))
      trace_.setOps(body, std::move(order));
  }

  /// Drops the views and copies that lost a use and have none left.
  void dropUnused(std::vector<OpId> &order) {
    std::vector<OpId> kept;
    kept.reserve(order.size());
    isUsed_.resize(trace_.numValues());
    for (OpId id : llvm::reverse(order)) {
      const Op &op = trace_.op(id);
      if (lostUse_[id.index()] && families_.of(op) && !isUsed_[op.result().index()]) {
        if (OpId definition = trace_.definingOp(op.operand(0)))
          lostUse_[definition.index()] = true;
        dropped_.push_back(id);
        continue;
      }
      kept.push_back(id);
      for (ValueId operand : op.operands())
        if (operand)
          isUsed_[operand.index()] = true;
    }
    std::reverse(kept.begin(), kept.end());
    order = std::move(kept);
  }

  Trace &trace_;
  Families families_;
  StorageRoots roots_;
  StorageWrites writes_;
  std::vector<bool> isExposed_;                  // by root: its body returns it
  std::vector<ValueId> replacedBy_;              // by value
  std::vector<bool> lostUse_;                    // by op: a use of its result went
  std::vector<bool> isUsed_;                     // by value, when dropping
  llvm::DenseMap<ValueId, ValueId> madeFor_;     // for values newer than `roots_`
  llvm::DenseMap<ValueId, Roots> rootsOfCopied_; // of replaced copies: those of what they copied
  std::vector<OpId> dropped_;
  bool isChanged_ = false;
};

class Canonicalise : public TracePass {
public:
  llvm::StringRef name() const override { return "canonicalise"; }
  PassProperties properties() const override {
    PassProperties properties;
    // A claim is for an op as it was. A replacement may be used after the `del` of its name.
    properties.forbids = TraceProperties::Claimed | TraceProperties::HasDels;
    return properties;
  }

protected:
  llvm::Expected<PassResult> runOnTrace(Trace &trace, Side, DiagnosticList &) override {
    return TraceCanonicaliser(trace).run() ? PassResult::Changed : PassResult::Unchanged;
  }
};

} // namespace

std::unique_ptr<Pass> rondo::createCanonicalisePass() {
  return std::make_unique<Canonicalise>();
}
