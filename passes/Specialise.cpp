//===- Specialise.cpp - Symbols become numbers ------------------------------===//
//
//   %y: f32[B, 8] = expand(%x) {shape = [B, 8]}    with B = 2
//   %y: f32[2, 8] = expand(%x) {shape = [2, 8]}
//
// Types and attributes are substituted one by one, in all bodies of both traces. That gives what
// inference gives for the numbers, with one exception: the stride of a dimension of size 0 or 1 is
// a matter of choice, and inference may choose otherwise once it sees the size. So views are
// inferred again, in program order, and take such strides from there. The verifier then says
// whether the numbers fit.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/TraceBuilder.h"
#include "rondo/ir/Verifier.h"
#include "rondo/passes/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace rondo;

using Binding = std::pair<llvm::StringRef, int64_t>;

/// By name.
static std::vector<Binding> sortedBindings(const SymbolBindings &bindings) {
  std::vector<Binding> sorted;
  for (const auto &binding : bindings)
    sorted.push_back({binding.getKey(), binding.getValue()});
  llvm::sort(sorted);
  return sorted;
}

/// `B=8 S=128`.
static std::string bindingsText(const SymbolBindings &bindings) {
  std::string text;
  for (auto [symbol, value] : sortedBindings(bindings))
    text += (text.empty() ? "" : " ") + symbol.str() + "=" + std::to_string(value);
  return text;
}

/// Calls `visit(value)` for every argument and result of `trace` and its bodies.
template <typename Visit> static void forEachValue(const Trace &trace, Visit &&visit) {
  llvm::for_each(trace.arguments(), visit);
  forEachOp(trace, [&](const Op &op) {
    llvm::for_each(op.results(), visit);
    for (BodyId body : op.bodies())
      llvm::for_each(trace.arguments(body), visit);
  });
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

static void collectSymbols(const Trace &trace, llvm::StringSet<> &symbols) {
  llvm::SmallVector<std::string, 8> names;
  forEachValue(trace, [&](ValueId value) { trace.type(value).collectSymbols(names); });
  forEachOp(trace, [&](const Op &op) {
    for (const NamedAttribute &attribute : op.attributes())
      attribute.value.collectSymbols(names);
  });
  for (const std::string &name : names)
    symbols.insert(name);
}

static std::vector<llvm::StringRef> symbolsOf(const TracePair &pair, llvm::StringSet<> &storage) {
  collectSymbols(pair.forward(), storage);
  if (pair.hasBackward())
    collectSymbols(pair.backward(), storage);
  std::vector<llvm::StringRef> sorted(storage.keys().begin(), storage.keys().end());
  llvm::sort(sorted);
  return sorted;
}

static llvm::Error checkBindings(const TracePair &pair, const SymbolBindings &bindings) {
  llvm::StringSet<> storage;
  std::vector<llvm::StringRef> symbols = symbolsOf(pair, storage);
  DiagnosticList diagnostics;
  for (auto [symbol, value] : sortedBindings(bindings)) {
    if (!llvm::is_contained(symbols, symbol)) {
      diagnostics
          .error({}, "'" + symbol + "' is no symbol of pair '" + pair.name() + "'" +
                         didYouMean(symbol, symbols))
          .note({}, symbols.empty() ? "it has no symbols"
                                    : "its symbols are " + llvm::join(symbols, ", "));
    }
    if (value < 0)
      diagnostics.error({}, "symbol '" + symbol + "' stands for a size and cannot be " +
                                llvm::Twine(value));
  }
  return diagnostics.takeError();
}

//===----------------------------------------------------------------------===//
// Substitution
//===----------------------------------------------------------------------===//

static void substitute(Trace &trace, const SymbolBindings &bindings) {
  forEachValue(trace, [&](ValueId value) {
    Type type = trace.type(value).substitute(bindings);
    if (type != trace.type(value))
      trace.setType(value, type);
  });
  forEachOp(trace, [&](const Op &op) {
    // A copy: setting an attribute changes the list.
    for (const NamedAttribute &attribute : op.attributes().vec()) {
      Attribute value = attribute.value.substitute(bindings);
      if (!(value == attribute.value))
        trace.setAttribute(op.id(), attribute.name, std::move(value));
    }
  });
}

/// Returns true if the types differ in strides only, and only where a stride does not matter.
static bool areSameButForIdleStrides(const Type &a, const Type &b) {
  const TensorType *x = a.asTensor(), *y = b.asTensor();
  if (!x || !y || x->dtype != y->dtype || x->device != y->device || x->shape != y->shape ||
      x->strides.size() != x->rank() || y->strides.size() != y->rank())
    return false;
  if (llvm::any_of(x->shape, [](const Dim &size) { return size.isConstant(0); }))
    return true;
  for (unsigned i = 0; i < x->rank(); ++i)
    if (!x->shape[i].isConstant(1) && x->strides[i] != y->strides[i])
      return false;
  return true;
}

namespace {

/// Gives views the strides that inference finds for them now.
class StrideUpdater {
public:
  explicit StrideUpdater(Trace &trace) : trace_(trace) {}

  void update(BodyId body) {
    for (OpId id : trace_.ops(body)) {
      const Op &op = trace_.op(id);
      if (op.bodies().empty())
        updateViews(op);
      else
        updateBodies(op);
    }
  }

  void adopt(ValueId value, const Type &type) {
    if (type != trace_.type(value) && areSameButForIdleStrides(type, trace_.type(value)))
      trace_.setType(value, type);
  }

private:
  void updateViews(const Op &op) {
    getEffects(trace_, op.id(), effects_);
    if (effects_.views.empty() || !op.spec().infer)
      return;
    llvm::SmallVector<const Type *, 4> operands;
    for (ValueId operand : op.operands())
      operands.push_back(operand ? &trace_.type(operand) : nullptr);
    llvm::SmallVector<Type, 2> inferred;
    if (llvm::Error error = inferResultTypes(op.spec(), operands, op.attributes(), inferred)) {
      llvm::consumeError(std::move(error)); // the verifier reports it, with the place
      return;
    }
    for (ViewEffect view : effects_.views)
      if (view.result < inferred.size())
        adopt(op.result(view.result), inferred[view.result]);
  }

  void updateBodies(const Op &op) {
    bool isLoop = op.spec().bodies == BodyKind::While;
    llvm::ArrayRef<ValueId> passed =
        op.operands().drop_front(op.spec().bodies == BodyKind::If ? 1 : 0);
    for (BodyId body : op.bodies()) {
      for (auto [argument, operand] : llvm::zip(trace_.arguments(body), passed))
        if (operand)
          adopt(argument, trace_.type(operand));
      update(body);
    }
    const Op *ret = isLoop ? nullptr : trace_.terminator(op.bodies().front());
    llvm::ArrayRef<ValueId> given = ret ? ret->operands() : passed;
    for (auto [result, value] : llvm::zip(op.results(), given))
      if (value)
        adopt(result, trace_.type(value));
  }

  Trace &trace_;
  Effects effects_;
};

} // namespace

static void updateStrides(TracePair &pair) {
  StrideUpdater(pair.forward()).update(Trace::topBody());
  if (!pair.hasBackward())
    return;
  StrideUpdater backward(pair.backward());
  for (const SavedLink &link : pair.saved())
    backward.adopt(link.backward, pair.forward().type(link.forward));
  backward.update(Trace::topBody());
}

llvm::Error rondo::specialise(TracePair &pair, const SymbolBindings &bindings) {
  if (bindings.empty())
    return llvm::Error::success();
  if (llvm::Error error = checkBindings(pair, bindings))
    return error;
  substitute(pair.forward(), bindings);
  if (pair.hasBackward())
    substitute(pair.backward(), bindings);
  updateStrides(pair);

  return llvm::handleErrors(verify(pair), [&](const DiagnosticError &fault) -> llvm::Error {
    std::vector<Diagnostic> diagnostics(1);
    diagnostics.front().message =
        ("pair '" + pair.name() + "' does not allow " + bindingsText(bindings)).str();
    llvm::append_range(diagnostics, fault.diagnostics());
    return llvm::make_error<DiagnosticError>(std::move(diagnostics));
  });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

class SpecialisePass : public PairPass {
public:
  explicit SpecialisePass(SymbolBindings bindings) : bindings_(std::move(bindings)) {}

  llvm::StringRef name() const override { return "specialise"; }
  /// Claims were made for the shapes as they were.
  PassProperties properties() const override { return {.forbids = TraceProperties::Claimed}; }
  std::string optionsText() const override { return bindingsText(bindings_); }

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &) override {
    if (llvm::Error error = specialise(pair, bindings_))
      return error;
    return bindings_.empty() ? PassResult::Unchanged : PassResult::Changed;
  }

private:
  SymbolBindings bindings_;
};

} // namespace

std::unique_ptr<Pass> rondo::createSpecialisePass(SymbolBindings bindings) {
  return std::make_unique<SpecialisePass>(std::move(bindings));
}
