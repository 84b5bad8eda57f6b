//===- AccumulateGradients.cpp - Gradients added to the caller's buffers --===//
//
//   backward @backward(%x: f32[8] saved #0, %t: f32[8]) {
//     %g: f32[8] = mul(%x, %t)
//     %h: f32[8] = neg(%t)
//     return(%g, %h)
//   }
//
// becomes, where %g is the gradient of the parameter %w,
//
//   backward @backward(%x: f32[8] saved #0, %t: f32[8], %grad_w: f32[8] static,
//                      %first_microbatch: bool[]) {
//     %g: f32[8] = mul(%x, %t)
//     %accumulated_w: f32[8] = accumulate_(%grad_w, %g, %first_microbatch)
//     %h: f32[8] = neg(%t)
//     return(%accumulated_w, %h)
//   }
//
// or, without a flag, with `add_(%grad_w, %g)`. The sum is made as soon as there is the gradient,
// so that the gradient's memory lives no longer than it has to. Until the `return` nothing writes
// to the gradient's storage: the name that is returned would be stale.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/StorageRoots.h"
#include "rondo/passes/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Which gradients there are
//===----------------------------------------------------------------------===//

/// Is result i of the backward the gradient of argument i of the forward? So it is in the pairs
/// that autograd makes. Returns false if the numbers or any shape or dtype speak against it.
static bool followsArguments(const TracePair &pair, llvm::ArrayRef<ValueId> results) {
  const Trace &forward = pair.forward(), &backward = pair.backward();
  if (results.size() != forward.arguments().size())
    return false;
  for (auto [result, argument] : llvm::zip(results, forward.arguments())) {
    if (!result)
      continue;
    const TensorType *gradient = backward.type(result).asTensor(),
                     *value = forward.type(argument).asTensor();
    if (!gradient || !value || gradient->shape != value->shape || gradient->dtype != value->dtype)
      return false;
  }
  return true;
}

static bool hasParameters(const Trace &trace) {
  return llvm::any_of(trace.arguments(), [&](ValueId argument) {
    return any(trace.tags(argument) & ValueTags::Parameter);
  });
}

/// Is `value` what an op made of an argument that the caller gives, in place?
static bool isInCallersBuffer(const Trace &trace, const StorageRoots &roots, ValueId value) {
  if (trace.isArgument(value))
    return false;
  ValueId root = roots.root(value);
  if (!trace.isArgument(root) || trace.savedArgument(trace.index(root)))
    return false;
  OpId maker = trace.definingOp(value);
  Effects effects = getEffects(trace, maker);
  return llvm::any_of(effects.viewedBy(trace.index(value)),
                      [&](unsigned operand) { return effects.writesOperand(operand); });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

/// Which results of a backward are to be accumulated.
class GradientChoice {
public:
  /// The backward has a `return`.
  GradientChoice(const TracePair &pair, const AccumulateGradientsOptions &options)
      : pair_(pair), options_(options), results_(pair.backward().terminator()->operands()),
        roots_(pair.backward()), isKnown_(followsArguments(pair, results_)) {}

  llvm::Expected<std::vector<GradientQuery>> run();

private:
  ValueId argument(unsigned result) const {
    return isKnown_ ? pair_.forward().arguments()[result] : ValueId();
  }
  bool isNamed(unsigned result, llvm::StringRef text) const;
  llvm::Error checkName(llvm::StringRef text) const;
  llvm::SmallVector<llvm::StringRef> allNames() const;
  bool isAskedFor(const GradientQuery &gradient) const;

  const TracePair &pair_;
  const AccumulateGradientsOptions &options_;
  llvm::ArrayRef<ValueId> results_;
  StorageRoots roots_;
  const bool isKnown_; ///< what results are the gradients of
};

/// Adds arguments and sums to a backward.
class Accumulation {
public:
  Accumulation(TracePair &pair, FirstMicrobatch first);

  void add(llvm::ArrayRef<GradientQuery> gradients);

private:
  std::string uniqueName(const std::string &name);
  TensorType bufferType(const GradientQuery &gradient) const;
  ValueId flagOn(Device device);
  OpId createSum(const GradientQuery &gradient, ValueId buffer, const std::string &name);
  void placeSums(llvm::ArrayRef<std::pair<ValueId, OpId>> sums);

  TracePair &pair_;
  Trace &trace_;
  const FirstMicrobatch first_;
  llvm::StringSet<> names_; ///< in the top body
  llvm::SmallVector<std::pair<Device, ValueId>, 1> flags_;
};

class AccumulateGradientsPass : public PairPass {
public:
  explicit AccumulateGradientsPass(AccumulateGradientsOptions options)
      : options_(std::move(options)) {}

  llvm::StringRef name() const override { return "accumulate-gradients"; }
  PassProperties properties() const override {
    return {.forbids = TraceProperties::Claimed | TraceProperties::HasDels};
  }
  std::string optionsText() const override {
    std::string text;
    if (!options_.gradients.empty())
      text = "gradients=" + quotePipelineValue(llvm::join(options_.gradients, "+"));
    if (options_.firstMicrobatch == FirstMicrobatch::Flag)
      text += text.empty() ? "first-microbatch=flag" : " first-microbatch=flag";
    return text;
  }

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &) override {
    if (!pair.hasBackward() || !pair.backward().terminator()) {
      if (options_.gradients.empty())
        return PassResult::Unchanged;
      return makeError("option 'gradients' names gradients, but the pair has no backward");
    }
    llvm::Expected<std::vector<GradientQuery>> gradients = GradientChoice(pair, options_).run();
    if (!gradients)
      return gradients.takeError();
    if (gradients->empty())
      return PassResult::Unchanged;
    Accumulation(pair, options_.firstMicrobatch).add(*gradients);
    return PassResult::Changed;
  }

private:
  AccumulateGradientsOptions options_;
};

} // namespace

std::unique_ptr<Pass> rondo::createAccumulateGradientsPass(AccumulateGradientsOptions options) {
  return std::make_unique<AccumulateGradientsPass>(std::move(options));
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

llvm::Expected<std::vector<GradientQuery>> GradientChoice::run() {
  llvm::Error error = llvm::Error::success();
  for (const std::string &text : options_.gradients)
    error = llvm::joinErrors(std::move(error), checkName(text));
  if (error)
    return error;
  const Trace &trace = pair_.backward();
  std::vector<GradientQuery> chosen;
  for (unsigned i = 0; i < results_.size(); ++i) {
    const TensorType *type = results_[i] ? trace.type(results_[i]).asTensor() : nullptr;
    if (!type || !isFloat(type->dtype) || isInCallersBuffer(trace, roots_, results_[i]))
      continue;
    GradientQuery gradient{pair_, i, results_[i], *type, argument(i)};
    if (isAskedFor(gradient))
      chosen.push_back(gradient);
  }
  return chosen;
}

bool GradientChoice::isAskedFor(const GradientQuery &gradient) const {
  if (!options_.gradients.empty()) {
    if (llvm::none_of(options_.gradients,
                      [&](const std::string &text) { return isNamed(gradient.result, text); }))
      return false;
  } else if (!options_.isAccumulated && isKnown_ && hasParameters(pair_.forward())) {
    return any(pair_.forward().tags(gradient.argument) & ValueTags::Parameter);
  }
  return !options_.isAccumulated || options_.isAccumulated(gradient);
}

/// By the result's name, or, where it is known what it is the gradient of, by the name, the path or
/// a module of that.
bool GradientChoice::isNamed(unsigned result, llvm::StringRef text) const {
  if (results_[result] && text == pair_.backward().name(results_[result]))
    return true;
  if (!isKnown_)
    return false;
  llvm::StringRef path = pair_.forward().valuePath(argument(result));
  return text == pair_.forward().name(argument(result)) || text == path ||
         (path.consume_front(text) && path.consume_front("."));
}

/// A name may be that of a gradient which is missing; not of something else.
llvm::Error GradientChoice::checkName(llvm::StringRef text) const {
  const Trace &trace = pair_.backward();
  bool isFound = false;
  for (unsigned i = 0; i < results_.size(); ++i) {
    if (!isNamed(i, text))
      continue;
    isFound = true;
    const TensorType *type = results_[i] ? trace.type(results_[i]).asTensor() : nullptr;
    if (results_[i] && !(type && isFloat(type->dtype)))
      return makeError("option 'gradients' names '" + text + "', whose result #" + llvm::Twine(i) +
                       " has type " + trace.type(results_[i]).str() +
                       ": only tensors of floating-point numbers are accumulated");
  }
  if (isFound)
    return llvm::Error::success();
  llvm::SmallVector<llvm::StringRef> names = allNames();
  return makeError("option 'gradients' names '" + text + "', which is no gradient" +
                   didYouMean(text, names));
}

llvm::SmallVector<llvm::StringRef> GradientChoice::allNames() const {
  llvm::SmallVector<llvm::StringRef> names;
  auto add = [&](llvm::StringRef name) {
    if (!name.empty())
      names.push_back(name);
  };
  for (unsigned i = 0; i < results_.size(); ++i) {
    if (results_[i])
      add(pair_.backward().name(results_[i]));
    if (!isKnown_)
      continue;
    add(pair_.forward().name(argument(i)));
    add(pair_.forward().valuePath(argument(i)));
  }
  return names;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

Accumulation::Accumulation(TracePair &pair, FirstMicrobatch first)
    : pair_(pair), trace_(pair.backward()), first_(first) {
  for (ValueId argument : trace_.arguments())
    names_.insert(trace_.name(argument));
  for (OpId op : trace_.ops())
    for (ValueId result : trace_.op(op).results())
      names_.insert(trace_.name(result));
}

std::string Accumulation::uniqueName(const std::string &name) {
  std::string unique = name;
  for (unsigned i = 1; !names_.insert(unique).second; ++i)
    unique = name + "_" + std::to_string(i);
  return unique;
}

/// Returns true if the elements lie side by side, in the order of any of the dimensions.
static bool isDense(const TensorType &type) {
  llvm::SmallVector<unsigned, 5> rest;
  for (unsigned d = 0; d < type.rank(); ++d)
    if (!type.shape[d].isConstant(1))
      rest.push_back(d);
  for (Dim stride = 1; !rest.empty();) {
    auto next = llvm::find_if(rest, [&](unsigned d) { return type.strides[d] == stride; });
    if (next == rest.end())
      return false;
    stride = stride * type.shape[*next];
    rest.erase(next);
  }
  return true;
}

/// As the parameter lies in memory, or else as the gradient does, unless that has gaps or overlaps.
TensorType Accumulation::bufferType(const GradientQuery &gradient) const {
  TensorType type = gradient.type;
  if (gradient.argument)
    type.strides = pair_.forward().tensorType(gradient.argument).strides;
  return isDense(type) ? type : TensorType(type.dtype, type.shape, type.device);
}

/// The argument that says whether this is the first microbatch, which must be on the device that
/// looks at it.
ValueId Accumulation::flagOn(Device device) {
  for (const auto &[known, flag] : flags_)
    if (known == device)
      return flag;
  ValueId flag =
      trace_.addArgument(TensorType(DType::Bool, {}, device), uniqueName("first_microbatch"));
  flags_.emplace_back(device, flag);
  return flag;
}

OpId Accumulation::createSum(const GradientQuery &gradient, ValueId buffer,
                             const std::string &name) {
  OpInit init;
  init.operands = {buffer, gradient.value};
  if (first_ == FirstMicrobatch::Flag)
    init.operands.push_back(flagOn(*trace_.type(buffer).device()));
  init.spec = trace_.registry().lookup(init.operands.size() == 2 ? "add_" : "accumulate_");
  init.resultTypes = {trace_.type(buffer)};
  init.resultNames = {trace_.intern(uniqueName("accumulated_" + name))};
  OpId sum = trace_.createOp(std::move(init));
  if (!trace_.isArgument(gradient.value))
    trace_.copyAnnotations(sum, trace_, trace_.definingOp(gradient.value));
  return sum;
}

/// Puts each sum behind the op that makes its gradient; those of arguments come first.
void Accumulation::placeSums(llvm::ArrayRef<std::pair<ValueId, OpId>> sums) {
  llvm::DenseMap<OpId, llvm::SmallVector<OpId, 1>> sumsAfter;
  std::vector<OpId> order;
  for (auto [gradient, sum] : sums) {
    if (trace_.isArgument(gradient))
      order.push_back(sum);
    else
      sumsAfter[trace_.definingOp(gradient)].push_back(sum);
  }
  for (OpId op : trace_.ops()) {
    order.push_back(op);
    if (auto after = sumsAfter.find(op); after != sumsAfter.end())
      llvm::append_range(order, after->second);
  }
  trace_.setOps(Trace::topBody(), std::move(order));
}

void Accumulation::add(llvm::ArrayRef<GradientQuery> gradients) {
  struct Buffer {
    std::string name;
    ValueId value;
  };
  std::vector<Buffer> buffers; // the flags follow them
  for (const GradientQuery &gradient : gradients) {
    const Trace &forward = pair_.forward();
    llvm::StringRef known =
        gradient.argument ? forward.name(gradient.argument) : trace_.name(gradient.value);
    std::string name = known.empty() ? std::to_string(gradient.result) : known.str();
    ValueId buffer =
        trace_.addArgument(bufferType(gradient), uniqueName("grad_" + name), ValueTags::Static);
    if (gradient.argument)
      trace_.setValuePath(buffer, forward.valuePath(gradient.argument));
    buffers.push_back({std::move(name), buffer});
  }
  llvm::SmallVector<std::pair<ValueId, OpId>, 0> sums;
  OpId end = trace_.terminator()->id();
  for (auto [gradient, buffer] : llvm::zip(gradients, buffers)) {
    OpId sum = createSum(gradient, buffer.value, buffer.name);
    sums.emplace_back(gradient.value, sum);
    trace_.setOperand(end, gradient.result, trace_.op(sum).result());
  }
  placeSums(sums);
}
