//===- VerifierSound.cpp - What ops share, in a sound trace -----------------===//
//
// Two rules that need more than one sweep knows, and a trace that can be trusted:
//
//   %f1, %a, %b = unscale_(%f, %i, %g, %v)       error if %v is a part of %g: both are written
//
//   %s = generator_read()
//   %y, %m = dropout(%x, %s) {offset = 2}        error if %x has more than 2 elements: the next
//   generator_advance() {count = 4}              call would draw the same numbers again
//
//===----------------------------------------------------------------------===//

#include "VerifierImpl.h"

#include "rondo/ir/StorageRoots.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace rondo;
using namespace rondo::verifier;

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

namespace {

/// Where a value lies among the elements of its storage.
struct ElementRange {
  int64_t begin = 0, end = 0;
  bool isGapless = false; ///< it has every element of the range
};

/// An operand that an op writes.
struct Written {
  unsigned operand;
  ValueId root;
  std::optional<ElementRange> range; ///< none: unknown
};

class WriteVerifier {
public:
  WriteVerifier(const Trace &trace, Reporter &report) : trace_(trace), report_(report) {}

  void verify(const Op &op);

private:
  std::optional<int64_t> offsetInStorage(ValueId value);
  std::optional<ElementRange> rangeOf(ValueId value);
  bool share(const Op &op, const Written &a, const Written &b) const;

  const Trace &trace_;
  Reporter &report_;
  std::optional<StorageRoots> roots_; ///< once they are needed
  Effects effects_;
};

} // namespace

/// Elements from the first one of the storage, or of the argument whose storage it is, to that of
/// `value`; nothing where the trace does not say.
std::optional<int64_t> WriteVerifier::offsetInStorage(ValueId value) {
  int64_t offset = 0;
  Effects effects;
  while (value != roots_->root(value)) {
    OpId id = trace_.definingOp(value);
    if (!id || trace_.op(id).spec().bodies != BodyKind::None || trace_.op(id).spec().opaque ||
        trace_.op(id).spec().countsFromStorageStart)
      return std::nullopt;
    unsigned result = trace_.index(value);
    getEffects(trace_, id, effects);
    auto view =
        llvm::find_if(effects.views, [&](const ViewEffect &v) { return v.result == result; });
    if (view == effects.views.end())
      return std::nullopt;
    std::optional<int64_t> further = viewOffset(trace_, id, result).asConstant();
    if (!further || llvm::AddOverflow(offset, *further, offset))
      return std::nullopt;
    value = trace_.op(id).operand(view->operand);
  }
  return offset;
}

std::optional<ElementRange> WriteVerifier::rangeOf(ValueId value) {
  std::optional<int64_t> offset = offsetInStorage(value);
  if (!offset)
    return std::nullopt;
  const TensorType &type = trace_.tensorType(value);
  int64_t numElements = 1, extent = 1;
  for (unsigned i = 0; i < type.rank(); ++i) {
    std::optional<int64_t> size = type.shape[i].asConstant(), stride = type.strides[i].asConstant();
    if (!size || !stride)
      return std::nullopt;
    if (*size == 0)
      return ElementRange{*offset, *offset, true};
    numElements *= *size; // both can be counted: the type is sound
    extent += (*size - 1) * *stride;
  }
  int64_t end = 0;
  if (llvm::AddOverflow(*offset, extent, end))
    return std::nullopt;
  return ElementRange{*offset, end, numElements == extent};
}

/// Do two operands with one root have an element in common, for certain?
bool WriteVerifier::share(const Op &op, const Written &a, const Written &b) const {
  ValueId first = op.operand(a.operand), second = op.operand(b.operand);
  const TensorType &type = trace_.tensorType(first), &other = trace_.tensorType(second);
  if (first == second)
    return !type.numElements().isConstant(0);
  if (!a.range || !b.range || type.dtype != other.dtype)
    return false;
  if (a.range->end <= b.range->begin || b.range->end <= a.range->begin)
    return false;
  bool haveOneLayout = a.range->begin == b.range->begin && type == other;
  return haveOneLayout || (a.range->isGapless && b.range->isGapless);
}

void WriteVerifier::verify(const Op &op) {
  const OpSpec &spec = op.spec();
  if (spec.opaque || spec.bodies != BodyKind::None ||
      spec.writes.size() + (spec.effects != nullptr) < 2)
    return;
  getEffects(trace_, op.id(), effects_);
  if (effects_.writes.size() < 2)
    return;
  if (!roots_)
    roots_.emplace(trace_);
  std::vector<Written> all;
  for (unsigned i : effects_.writes) {
    ValueId operand = i < op.operands().size() ? op.operand(i) : ValueId();
    if (!operand || !trace_.type(operand).isTensor() || roots_->roots(operand).size() != 1)
      continue;
    all.push_back({i, roots_->root(operand), rangeOf(operand)});
  }
  // By storage, then by where they begin: what shares with one before shares with that which
  // reaches furthest, or begins where it does.
  llvm::stable_sort(all, [](const Written &a, const Written &b) {
    return std::pair(a.root, a.range ? a.range->begin : -1) <
           std::pair(b.root, b.range ? b.range->begin : -1);
  });
  for (size_t i = 1, furthest = 0; i < all.size(); ++i) {
    bool isNew = all[i].root != all[furthest].root;
    for (size_t other : {furthest, i - 1}) {
      if (isNew || all[other].root != all[i].root || !share(op, all[other], all[i]))
        continue;
      unsigned first = std::min(all[other].operand, all[i].operand),
               second = std::max(all[other].operand, all[i].operand);
      Diagnostic *error =
          report_.error(op, OperandOf{op, second}, " shares memory with operand #", first, " (",
                        Named{op.operand(first)}, "); the op writes both");
      report_.noteDefinition(error, op.operand(second));
      break;
    }
    if (isNew || !all[furthest].range ||
        (all[i].range && all[i].range->end > all[furthest].range->end))
      furthest = i;
  }
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

namespace {

/// An op that draws from a state.
struct Draw {
  OpId op;
  ValueId state;
  int64_t offset, count;
};

/// What a trace draws, and by what it advances generators.
class Draws {
public:
  explicit Draws(const Trace &trace)
      : trace_(trace), read_(trace.registry().lookup("generator_read")),
        advance_(trace.registry().lookup("generator_advance")) {}

  void note(const Op &op);
  llvm::ArrayRef<Draw> all() const { return all_; }
  /// The value that `state` is, outside of bodies that it was given to or comes out of; invalid if
  /// it may be one of several.
  ValueId origin(ValueId state) const;
  /// Checks that `draw`, of the trace `drawing`, which may be another one, stays below what the
  /// generator advances by that `state` was read from, in this one.
  void check(const Draw &draw, const Trace &drawing, ValueId state, Reporter &report,
             Reporter &advancing) const;

private:
  bool isOf(const Op &advance, const Op &read) const;
  bool runsOnce(const Op &op) const;

  const Trace &trace_;
  const OpSpec *read_, *advance_; ///< null: not registered
  std::vector<Draw> all_;
  std::vector<OpId> advances_;
};

} // namespace

void Draws::note(const Op &op) {
  if (&op.spec() == advance_)
    advances_.push_back(op.id());
  if (!op.spec().draws)
    return;
  llvm::SmallVector<const Type *, 8> operands, results;
  ValueId state;
  for (ValueId operand : op.operands()) {
    operands.push_back(operand ? &trace_.type(operand) : nullptr);
    if (operand && trace_.type(operand).asRNGState())
      state = operand;
  }
  for (ValueId result : op.results())
    results.push_back(&trace_.type(result));
  const Attribute *attribute = op.attribute("offset");
  std::optional<int64_t> offset = attribute ? attribute->asInt() : std::nullopt;
  std::optional<int64_t> count =
      op.spec().draws(OpContext(op.spec(), operands, op.attributes(), results)).asConstant();
  if (state && offset && count && *count != 0)
    all_.push_back({op.id(), state, *offset, *count});
}

ValueId Draws::origin(ValueId state) const {
  while (state) {
    if (trace_.isArgument(state)) {
      BodyId body = trace_.owner(state);
      if (body == Trace::topBody())
        return state;
      const Op &parent = trace_.op(trace_.parentOp(body));
      if (parent.spec().bodies != BodyKind::Region)
        return {};
      state = parent.operand(trace_.index(state));
      continue;
    }
    const Op &op = trace_.op(trace_.definingOp(state));
    if (op.spec().bodies == BodyKind::None)
      return state;
    if (op.spec().bodies != BodyKind::Region)
      return {};
    state = trace_.terminator(op.bodies()[0])->operand(trace_.index(state));
  }
  return {};
}

bool Draws::isOf(const Op &advance, const Op &read) const {
  auto deviceOf = [](const Op &op) {
    const Attribute *device = op.attribute("device");
    return device && device->asDevice() ? *device->asDevice() : Device::host();
  };
  return *advance.attribute("generator") == *read.attribute("generator") &&
         deviceOf(advance) == deviceOf(read);
}

/// Is it in no body but those of regions?
bool Draws::runsOnce(const Op &op) const {
  for (BodyId body = op.body(); body != Trace::topBody();) {
    const Op &parent = trace_.op(trace_.parentOp(body));
    if (parent.spec().bodies != BodyKind::Region)
      return false;
    body = parent.body();
  }
  return true;
}

void Draws::check(const Draw &draw, const Trace &drawing, ValueId state, Reporter &report,
                  Reporter &advancing) const {
  OpId id = state ? trace_.definingOp(state) : OpId();
  if (!id || &trace_.op(id).spec() != read_)
    return;
  const Op *advance = nullptr;
  for (OpId candidate : advances_) {
    if (!isOf(trace_.op(candidate), trace_.op(id)))
      continue;
    if (advance)
      return; // by how much depends on the way that the program takes
    advance = &trace_.op(candidate);
  }
  const Attribute *attribute = advance ? advance->attribute("count") : nullptr;
  std::optional<int64_t> count = attribute ? attribute->asInt() : std::nullopt;
  if (!count || !runsOnce(*advance) || !runsOnce(trace_.op(id)))
    return;
  if (draw.offset <= *count && draw.count <= *count - draw.offset)
    return;
  const Op &op = drawing.op(draw.op);
  Diagnostic *error =
      report.error(op, "'", op.name(), "' op draws ", Counted{size_t(draw.count), "number"},
                   " from offset ", draw.offset, " on, but generator ",
                   trace_.op(id).attribute("generator")->str(), " advances by ", *count);
  advancing.note(error, *advance, "advanced here");
}

void rondo::verifier::verifySound(const Trace &trace, Reporter &report) {
  WriteVerifier writes(trace, report);
  Draws draws(trace);
  forEachOp(trace, [&](const Op &op) {
    writes.verify(op);
    draws.note(op);
  });
  for (const Draw &draw : draws.all())
    draws.check(draw, trace, draws.origin(draw.state), report, report);
}

void rondo::verifier::verifySavedDraws(const TracePair &pair, DiagnosticList &diagnostics) {
  const Trace &forward = pair.forward(), &backward = pair.backward();
  Draws drawn(backward);
  forEachOp(backward, [&](const Op &op) { drawn.note(op); });
  if (drawn.all().empty())
    return;
  Draws read(forward);
  forEachOp(forward, [&](const Op &op) { read.note(op); });
  Reporter report(backward, diagnostics), advancing(forward, diagnostics);
  llvm::DenseMap<SavedId, ValueId> saved;
  llvm::ArrayRef<ValueId> returned = forward.terminator()->operands();
  for (unsigned i = 0; i < returned.size(); ++i)
    if (SavedId id = forward.savedReturn(i))
      saved[id] = returned[i];
  for (const Draw &draw : drawn.all()) {
    ValueId state = drawn.origin(draw.state);
    if (!state || !backward.isArgument(state))
      continue;
    if (SavedId id = backward.savedArgument(backward.index(state)))
      read.check(draw, backward, read.origin(saved.lookup(id)), report, advancing);
  }
}
