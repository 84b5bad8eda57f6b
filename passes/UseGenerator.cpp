//===- UseGenerator.cpp - Another generator for part of a pair ------------===//
//
//   %s = generator_read()
//   %a, %m = dropout(%x, %s) {offset = 0, p = 0.1}
//   %b, %n = dropout(%a, %s) {offset = 64, p = 0.1}      in the module blocks.0
//   generator_advance() {count = 128}
//
// becomes, by `use-generator{generator=rank path=blocks.0}`,
//
//   %s = generator_read()
//   %r = generator_read() {generator = "rank"}
//   %a, %m = dropout(%x, %s) {offset = 0, p = 0.1}
//   %b, %n = dropout(%a, %r) {offset = 64, p = 0.1}
//   generator_advance() {count = 128}
//   generator_advance() {count = 128, generator = "rank"}
//
// What is moved is a *place*: a state and an offset. All ops of the pair that draw from it go with
// the one that the path names: the op that a backward repeats, which gets the new state by a saved
// link, and those in `checkpoint` bodies, which get it as an argument.
//
// Offsets from one state lie apart from each other and below what its generator advances by. So
// moved ops keep their offsets, shifted by what the new generator advanced by before, and it
// advances by as much more: no two ops draw the same numbers, whatever their sizes, and no size
// needs to be known. What stays draws what it drew before. Numbers that nobody draws cost nothing.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <tuple>

using namespace rondo;

namespace {

/// Where an op draws from: a value of the forward's top body if the state is saved there, else of
/// the op's own trace.
struct DrawPlace {
  Side side = Side::Forward;
  ValueId state;
  int64_t offset = 0;
  friend bool operator<(const DrawPlace &a, const DrawPlace &b) {
    return std::tuple(a.side, a.state.index(), a.offset) <
           std::tuple(b.side, b.state.index(), b.offset);
  }
};

/// The state that takes another one's place, and what is added to offsets.
struct MovedState {
  ValueId state;
  int64_t shift = 0;
};

class UseGeneratorPass : public PairPass {
public:
  explicit UseGeneratorPass(UseGeneratorOptions options) : options_(std::move(options)) {}

  llvm::StringRef name() const override { return "use-generator"; }
  /// Claims were made for the ops as they were.
  PassProperties properties() const override { return {.forbids = TraceProperties::Claimed}; }

  std::string optionsText() const override {
    std::string text;
    if (options_.generator != UseGeneratorOptions().generator)
      text += "generator=" + quotePipelineValue(options_.generator);
    if (!options_.path.empty())
      text += (text.empty() ? "path=" : " path=") + quotePipelineValue(options_.path);
    return text;
  }

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &diagnostics) override;

private:
  UseGeneratorOptions options_;
};

/// One run on one pair.
class GeneratorMove {
public:
  GeneratorMove(TracePair &pair, const UseGeneratorOptions &options, DiagnosticList &diagnostics)
      : pair_(pair), options_(options), diagnostics_(diagnostics) {
    for (const SavedLink &link : pair.saved())
      savedFrom_[link.backward] = link.forward;
  }

  llvm::Expected<PassResult> run();

private:
  bool isInPath(const Op &op) const;
  DrawPlace placeOf(Side side, const Op &op, unsigned operand) const;
  bool isNamed(const Op &op) const;

  void collect(Side side);
  bool addState(const DrawPlace &place, Side side, OpId op);
  ValueId readIn(Trace &trace, const Op &oldRead);
  bool advance(Side side, const Op &read, OpId op, int64_t &shift);
  void move(Side side);
  ValueId stateIn(Side side, BodyId body, const DrawPlace &place, OpId op);

  template <typename Visit> void forEachDraw(Side side, Visit visit) const;
  Diagnostic &error(Side side, OpId op, const llvm::Twine &message) {
    const Trace &trace = pair_.trace(side);
    return diagnostics_.error(locationOf(trace, op), "'" + trace.op(op).name() + "' op " + message);
  }

  TracePair &pair_;
  const UseGeneratorOptions &options_;
  DiagnosticList &diagnostics_;
  llvm::DenseMap<ValueId, ValueId> savedFrom_; ///< of the backward's arguments
  bool isFound_ = false;                       ///< an op in the path that draws
  /// To move, with the first op that draws there.
  std::map<DrawPlace, std::pair<Side, OpId>> places_;
  std::map<std::pair<Side, uint32_t>, MovedState> states_; ///< by the old one
  /// The new state as a body has it: by side, body and the new state.
  std::map<std::tuple<Side, uint32_t, uint32_t>, ValueId> passed_;
};

} // namespace

//===----------------------------------------------------------------------===//
// What draws where
//===----------------------------------------------------------------------===//

/// Calls `visit(op, operand)` for every op that draws numbers, or would if it were not dead, with
/// the number of the state among its operands.
template <typename Visit> void GeneratorMove::forEachDraw(Side side, Visit visit) const {
  const Trace &trace = pair_.trace(side);
  std::vector<std::pair<OpId, unsigned>> draws; // complete before visitors change operands
  forEachOp(trace, [&](const Op &op) {
    for (unsigned i = 0; i < op.operands().size(); ++i)
      if (op.operand(i) && trace.type(op.operand(i)).asRNGState() && op.attribute("offset"))
        draws.push_back({op.id(), i});
  });
  for (auto [op, operand] : draws)
    visit(trace.op(op), operand);
}

bool GeneratorMove::isInPath(const Op &op) const {
  llvm::StringRef rest = op.modulePath();
  return options_.path.empty() ||
         (rest.consume_front(options_.path) && (rest.empty() || rest.front() == '.'));
}

/// Follows the state out of bodies, and from the backward into the forward.
DrawPlace GeneratorMove::placeOf(Side side, const Op &op, unsigned operand) const {
  const Trace *trace = &pair_.trace(side);
  ValueId state = op.operand(operand);
  while (trace->isArgument(state) && trace->owner(state) != Trace::topBody()) {
    const Op &parent = trace->op(trace->parentOp(trace->owner(state)));
    state = parent.operand(trace->index(state) + (parent.spec().bodies == BodyKind::If ? 1 : 0));
  }
  auto saved = savedFrom_.find(state);
  if (side == Side::Backward && saved != savedFrom_.end()) {
    side = Side::Forward;
    state = saved->second;
  }
  return {side, state, op.attribute("offset")->asInt().value_or(0)};
}

/// Does the op name the generator that is to be used?
bool GeneratorMove::isNamed(const Op &op) const {
  const Attribute *generator = op.attribute("generator");
  return generator && generator->asString() && *generator->asString() == options_.generator;
}

/// The op that read `state`; null for a state that somebody gives.
static const Op *readOf(const Trace &trace, ValueId state) {
  if (trace.isArgument(state))
    return nullptr;
  const Op &op = trace.op(trace.definingOp(state));
  return op.name() == "generator_read" ? &op : nullptr;
}

/// Adds the places that the path names.
void GeneratorMove::collect(Side side) {
  forEachDraw(side, [&](const Op &op, unsigned operand) {
    DrawPlace place = placeOf(side, op, operand);
    const Op *read = readOf(pair_.trace(place.side), place.state);
    if (!read || !isInPath(op))
      return;
    isFound_ = true;
    if (!isNamed(*read))
      places_.try_emplace(place, side, op.id());
  });
}

//===----------------------------------------------------------------------===//
// New states
//===----------------------------------------------------------------------===//

static bool haveSameDevice(const Op &a, const Op &b) {
  const Attribute *first = a.attribute("device"), *second = b.attribute("device");
  return first && second ? *first == *second : first == second;
}

/// Makes `op {generator = …}` with the device of `other`.
static OpId createFor(Trace &trace, const OpSpec &spec, const std::string &generator,
                      const Op &other) {
  OpInit init;
  init.spec = &spec;
  init.attributes = {{"generator", Attribute(generator)}};
  if (const Attribute *device = other.attribute("device"))
    init.attributes.push_back({"device", *device});
  if (!other.results().empty())
    init.resultTypes = {trace.type(other.result())};
  OpId made = trace.createOp(std::move(init));
  trace.copyAnnotations(made, trace, other.id());
  return made;
}

/// The new generator's state on the device of `oldRead`, read among the reads with which the trace
/// begins: before it can be advanced.
ValueId GeneratorMove::readIn(Trace &trace, const Op &oldRead) {
  size_t position = 0;
  for (OpId id : trace.ops()) {
    const Op &op = trace.op(id);
    if (op.name() != "generator_read")
      break;
    if (isNamed(op) && haveSameDevice(op, oldRead))
      return op.result();
    ++position;
  }
  OpId made = createFor(trace, oldRead.spec(), options_.generator, oldRead);
  trace.insert(Trace::topBody(), position, made);
  return trace.op(made).result();
}

/// Lets the new generator advance by as much as that of `read` does, for `op`. `shift`: what it
/// advanced by before.
bool GeneratorMove::advance(Side side, const Op &read, OpId op, int64_t &shift) {
  Trace &trace = pair_.trace(side);
  const Op *old = nullptr, *named = nullptr;
  size_t position = 0;
  for (size_t i = 0; i < trace.ops().size(); ++i) {
    const Op &other = trace.op(trace.ops()[i]);
    if (other.name() == "generator_seed" && isNamed(other)) {
      error(side, other.id(),
            "seeds generator '" + llvm::Twine(options_.generator) +
                "', which is to be read before it");
      return false;
    }
    if (other.name() != "generator_advance" || !haveSameDevice(other, read))
      continue;
    if (isNamed(other))
      named = &other;
    if (*other.attribute("generator") != *read.attribute("generator"))
      continue;
    old = &other;
    position = i + 1;
  }
  if (!old) {
    error(side, op,
          "draws from generator '" + llvm::Twine(*read.attribute("generator")->asString()) +
              "', which nothing advances: what it draws has no bound");
    return false;
  }
  int64_t count = old->attribute("count")->asInt().value_or(0), total = 0;
  shift = named ? named->attribute("count")->asInt().value_or(0) : 0;
  if (llvm::AddOverflow(shift, count, total)) {
    error(side, op,
          "cannot draw from generator '" + llvm::Twine(options_.generator) +
              "', too: it would advance by more than 2^63 - 1");
    return false;
  }
  OpId made = named ? named->id() : createFor(trace, old->spec(), options_.generator, *old);
  trace.setAttribute(made, "count", total);
  if (!named)
    trace.insert(Trace::topBody(), position, made);
  return true;
}

/// Makes the state that takes the place of that of `place`, for `op` of `side`.
bool GeneratorMove::addState(const DrawPlace &place, Side side, OpId op) {
  std::pair<Side, uint32_t> key(place.side, place.state.index());
  if (states_.count(key))
    return true;
  Trace &trace = pair_.trace(place.side);
  const Op &read = *readOf(trace, place.state);
  if (read.body() != Trace::topBody()) {
    error(side, op, "draws from a generator that is read in a nested body");
    return false;
  }
  MovedState moved;
  OpId user = side == place.side ? op : read.id();
  if (!advance(place.side, read, user, moved.shift))
    return false;
  moved.state = readIn(trace, read);
  states_[key] = moved;
  return true;
}

/// The state that takes the place of that of `place`, as `body` of `side` has it, for `op`; invalid
/// after an error.
ValueId GeneratorMove::stateIn(Side side, BodyId body, const DrawPlace &place, OpId op) {
  ValueId state = states_.find({place.side, place.state.index()})->second.state;
  if (body == Trace::topBody() && side == place.side)
    return state;
  ValueId &passed = passed_[{side, body.index(), state.index()}];
  if (passed)
    return passed;
  if (body == Trace::topBody())
    return passed = pair_.findSaved(pair_.addSaved(state))->backward;

  Trace &trace = pair_.trace(side);
  const Op &parent = trace.op(trace.parentOp(body));
  if (parent.spec().bodies != BodyKind::Region) {
    error(side, op, "is in a body of '" + parent.name() + "', which cannot be given another state");
    return {};
  }
  ValueId outer = stateIn(side, parent.body(), place, op);
  if (!outer)
    return {};
  llvm::SmallVector<ValueId, 8> operands(parent.operands().begin(), parent.operands().end());
  operands.push_back(outer);
  trace.setOperands(parent.id(), operands);
  return passed_[{side, body.index(), state.index()}] = trace.addArgument(body, trace.type(outer));
}

//===----------------------------------------------------------------------===//
// The move
//===----------------------------------------------------------------------===//

void GeneratorMove::move(Side side) {
  forEachDraw(side, [&](const Op &op, unsigned operand) {
    DrawPlace place = placeOf(side, op, operand);
    if (!places_.count(place))
      return;
    int64_t shift = states_.find({place.side, place.state.index()})->second.shift, offset = 0;
    if (llvm::AddOverflow(place.offset, shift, offset)) {
      error(side, op.id(),
            "cannot draw from offset " + llvm::Twine(place.offset) + " + " + llvm::Twine(shift));
      return;
    }
    ValueId state = stateIn(side, op.body(), place, op.id());
    if (!state)
      return;
    pair_.trace(side).setOperand(op.id(), operand, state);
    pair_.trace(side).setAttribute(op.id(), "offset", offset);
  });
}

llvm::Expected<PassResult> GeneratorMove::run() {
  llvm::SmallVector<Side, 2> sides = {Side::Forward};
  if (pair_.hasBackward())
    sides.push_back(Side::Backward);
  for (Side side : sides)
    collect(side);
  if (!isFound_)
    return makeError(
        "no op" +
        (options_.path.empty() ? std::string() : " in module path '" + options_.path + "'") +
        " draws from a generator that is read in the pair");
  if (places_.empty())
    return PassResult::Unchanged;
  bool isGood = true;
  for (const auto &[place, first] : places_)
    isGood = isGood && addState(place, first.first, first.second);
  if (isGood)
    for (Side side : sides)
      move(side);
  if (llvm::Error error = diagnostics_.takeError())
    return error;
  return PassResult::Changed;
}

llvm::Expected<PassResult> UseGeneratorPass::runOnPair(TracePair &pair,
                                                       DiagnosticList &diagnostics) {
  return GeneratorMove(pair, options_, diagnostics).run();
}

std::unique_ptr<Pass> rondo::createUseGeneratorPass(UseGeneratorOptions options) {
  return std::make_unique<UseGeneratorPass>(std::move(options));
}
