//===- FXMapOptimizer.cpp - ATen's loss scaling and fused optimisers --------===//
//
// ATen updates lists of tensors at once, in place (`_fused_adam_`) or to new values that are a list
// each (`_fused_adam`). Here each parameter has its own update:
//
//   _fused_adam_([p, q], [g, h], [mp, mq], [vp, vq], [], [s, s], lr=0.1, …, found_inf=f)
//
//   %p1, %mp1, %vp1 = adam_(%p, %g, %mp, %vp, %s, none, %f) {lr = 0.1, …}
//   %q1, %mq1, %vq1 = adam_(%q, %h, %mq, %vq, %s, none, %f) {lr = 0.1, …}
//
// What such an update does besides is done by ops before it: it divides gradients by `grad_scale`
// (and keeps them so, unless the step is skipped), negates them to maximise, and lets the first
// step of SGD find a momentum buffer of zeros. The formulas are those of PyTorch's kernels,
// aten/src/ATen/native/cuda/fused_adam_utils.cuh and FusedSgdKernel.cu.
//
//===----------------------------------------------------------------------===//

#include "FXCall.h"
#include "FXOpMapping.h"

using namespace rondo;
using namespace rondo::fx;

//===----------------------------------------------------------------------===//
// Loss scaling
//===----------------------------------------------------------------------===//

void rondo::fx::lowerUnscale(Call &call, llvm::StringRef core) {
  unsigned numGradients = call.tensors("self").size();
  ValueId inverse = call.tensor("inv_scale");
  call.ignore("found_inf"); // read below
  std::optional<unsigned> foundElement;
  if (!call.isInPlace()) {
    // The flag comes after the list of gradients.
    foundElement = call.numElements() == 0 ? std::nullopt : std::optional(call.numElements() - 1);
  }
  llvm::SmallVector<ValueId, 8> operands = {call.writable("found_inf", 0, foundElement), inverse};
  llvm::SmallVector<unsigned, 8> renamed = {0};
  std::vector<std::optional<unsigned>> elements(numGradients);
  for (unsigned i = 0; i < numGradients; ++i) {
    if (!call.isInPlace())
      elements[i] = call.listElement(0, i);
    renamed.push_back(operands.size());
    operands.push_back(call.writable("self", i, elements[i]));
  }
  if (numGradients == 0) // nothing can be found, and nothing is written
    call.written("found_inf", 0, foundElement, operands[0]);
  if (numGradients == 0 || call.failed())
    return call.finishUpdates();
  llvm::SmallVector<ValueId, 4> results = call.emitUpdate(core, operands, {}, renamed);
  call.written("found_inf", 0, foundElement, results[0]);
  for (unsigned i = 0; i < numGradients; ++i)
    call.written("self", i, elements[i], results[1 + i]);
  call.finishUpdates();
}

void rondo::fx::lowerUpdateScale(Call &call, llvm::StringRef core) {
  std::optional<unsigned> scaleElement, trackerElement;
  if (!call.isInPlace()) {
    scaleElement = 0;
    trackerElement = 1;
  }
  AttributeList attributes = {{"growth_factor", call.number("scale_growth_factor")},
                              {"backoff_factor", call.number("scale_backoff_factor")},
                              {"growth_interval", call.integer("growth_interval")}};
  ValueId foundInf = call.tensor("found_inf");
  call.ignore("self growth_tracker"); // read below
  ValueId scale = call.writable("self", 0, scaleElement),
          tracker = call.writable("growth_tracker", 0, trackerElement);
  llvm::SmallVector<ValueId, 4> results =
      call.emitUpdate(core, {scale, tracker, foundInf}, attributes, {0, 1});
  if (call.failed())
    return;
  call.written("self", 0, scaleElement, results[0]);
  call.written("growth_tracker", 0, trackerElement, results[1]);
  call.finishUpdates(results[0]);
}

//===----------------------------------------------------------------------===//
// Optimisers
//===----------------------------------------------------------------------===//

namespace {

/// A call of a fused optimiser.
class Optimizer {
public:
  /// `lists`: the lists of tensors that it writes, in the order of the functional form's results:
  /// parameters and gradients first.
  Optimizer(Call &call, llvm::ArrayRef<llvm::StringLiteral> lists)
      : call_(call), lists_(lists), scale_(call.optionalTensor("grad_scale")),
        foundInf_(call.optionalTensor("found_inf")), maximizes_(call.boolean("maximize")) {
    std::tie(rate_, rateNumber_) = call.operandOrNumber("lr");
    for (llvm::StringRef list : lists)
      values_.push_back(call.tensors(list));
  }

  unsigned size() const { return values_[0].size(); }
  bool isEmpty(unsigned list) const { return values_[list].empty(); }
  /// There are as many tensors in `list` as there are parameters; refuses the call otherwise.
  void expectFull(unsigned list) { expectSize(lists_[list], values_[list].size()); }
  void expectSize(llvm::StringRef name, unsigned given) {
    if (given != size())
      call_.refuse("expects as many tensors in '" + name + "' as in '" + lists_[0] + "', got " +
                   llvm::Twine(given) + " and " + llvm::Twine(size()));
  }

  ValueId rate() const { return rate_; }
  ValueId foundInf() const { return foundInf_; }
  void addRate(AttributeList &attributes) const {
    if (rateNumber_)
      attributes.emplace_back("lr", *rateNumber_);
  }

  ValueId writable(unsigned list, unsigned i) {
    return call_.writable(lists_[list], i, element(list, i));
  }
  void written(unsigned list, unsigned i, ValueId value) {
    call_.written(lists_[list], i, element(list, i), value);
  }
  /// Gradient `i` as the update takes it.
  ValueId gradient(unsigned i);
  /// Is the step taken, as a bool on the device?
  ValueId isTaken();

private:
  static constexpr unsigned gradients = 1;

  std::optional<unsigned> element(unsigned list, unsigned i) {
    return call_.isInPlace() ? std::nullopt : call_.listElement(list, i);
  }
  ValueId scaled(unsigned i);
  ValueId divisor();

  Call &call_;
  llvm::ArrayRef<llvm::StringLiteral> lists_;
  std::vector<llvm::SmallVector<ValueId, 4>> values_; ///< by list
  ValueId scale_, foundInf_, rate_;
  std::optional<Attribute> rateNumber_;
  bool maximizes_;
  ValueId divisor_, isTaken_;
};

} // namespace

ValueId Optimizer::isTaken() {
  if (!isTaken_)
    isTaken_ = call_.emitValue("eq", {foundInf_}, {{"scalar", 0.0}});
  return isTaken_;
}

/// The scale; 1 if the step is skipped, since gradients then stay as they are.
ValueId Optimizer::divisor() {
  if (divisor_)
    return divisor_;
  divisor_ = scale_;
  if (foundInf_) {
    ValueId isSkipped = call_.emitValue("ne", {foundInf_}, {{"scalar", 0.0}});
    divisor_ = call_.emitValue("masked_fill", {scale_, isSkipped}, {{"scalar", 1.0}});
  }
  return divisor_;
}

/// The gradient, divided by the scale; rounded to its own dtype only where it is kept.
ValueId Optimizer::scaled(unsigned i) {
  ValueId whole = values_[gradients][i];
  bool isKept = call_.isInPlace() || element(gradients, i);
  DType dtype = call_.type(whole).dtype;
  if (dtype == DType::F32 || dtype == DType::F64) {
    if (!isKept)
      return call_.emitValue("div", {whole, divisor()}, {});
    ValueId kept = call_.emitUpdate("div_", {writable(gradients, i), divisor()}, {}, {0})[0];
    written(gradients, i, kept);
    return kept;
  }
  ValueId wide = call_.emitValue("cast", {whole}, {{"dtype", DType::F32}});
  ValueId divided = call_.emitValue("div", {wide, divisor()}, {});
  if (isKept)
    written(gradients, i,
            call_.emitUpdate("copy_", {writable(gradients, i), divided}, {}, {0})[0]);
  return divided;
}

ValueId Optimizer::gradient(unsigned i) {
  ValueId gradient = values_[gradients][i];
  if (scale_)
    gradient = scaled(i);
  else if (!call_.isInPlace())
    written(gradients, i, gradient); // its new value is the old one
  return maximizes_ ? call_.emitValue("neg", {gradient}, {}) : gradient;
}

static void lowerAdamOf(Call &call, llvm::StringRef core, bool isDecoupled) {
  static constexpr llvm::StringLiteral lists[] = {"self", "grads", "exp_avgs", "exp_avg_sqs",
                                                  "max_exp_avg_sqs"};
  Optimizer optimizer(call, lists);
  llvm::SmallVector<ValueId, 4> steps = call.tensors("state_steps");
  for (unsigned list : {1U, 2U, 3U})
    optimizer.expectFull(list);
  optimizer.expectSize("state_steps", steps.size());
  if (call.boolean("amsgrad"))
    call.refuse("with 'amsgrad' cannot be imported: '" + core +
                "' keeps no maximum of the second moment");
  AttributeList attributes = {{"beta1", call.number("beta1")},
                              {"beta2", call.number("beta2")},
                              {"eps", call.number("eps")},
                              {"weight_decay", call.number("weight_decay")},
                              {"decoupled", isDecoupled}};
  optimizer.addRate(attributes);
  for (unsigned i = 0; i < optimizer.size() && !call.failed(); ++i) {
    ValueId gradient = optimizer.gradient(i);
    ValueId param = optimizer.writable(0, i), m = optimizer.writable(2, i),
            v = optimizer.writable(3, i);
    llvm::SmallVector<ValueId, 4> results = call.emitUpdate(
        core, {param, gradient, m, v, steps[i], optimizer.rate(), optimizer.foundInf()}, attributes,
        {0, 2, 3});
    if (call.failed())
      return;
    optimizer.written(0, i, results[0]);
    optimizer.written(2, i, results[1]);
    optimizer.written(3, i, results[2]);
  }
  call.finishUpdates();
}

void rondo::fx::lowerAdam(Call &call, llvm::StringRef core) {
  lowerAdamOf(call, core, /*isDecoupled=*/false);
}
void rondo::fx::lowerAdamW(Call &call, llvm::StringRef core) {
  lowerAdamOf(call, core, /*isDecoupled=*/true);
}

void rondo::fx::lowerSGD(Call &call, llvm::StringRef core) {
  static constexpr llvm::StringLiteral lists[] = {"self", "grads", "momentum_buffer_list"};
  constexpr unsigned buffers = 2;
  Optimizer optimizer(call, lists);
  optimizer.expectFull(1);
  bool hasBuffers = !optimizer.isEmpty(buffers);
  Attribute momentum = call.number("momentum");
  if (hasBuffers)
    optimizer.expectFull(buffers);
  else if (momentum.asNumber() != 0)
    call.refuse("with momentum expects a tensor in 'momentum_buffer_list' for each parameter");
  bool isFirst = call.boolean("is_first_step") && hasBuffers;
  AttributeList attributes = {{"momentum", momentum},
                              {"dampening", call.number("dampening")},
                              {"weight_decay", call.number("weight_decay")},
                              {"nesterov", call.boolean("nesterov") && hasBuffers}};
  if (isFirst) // the buffer becomes the gradient, whatever it holds
    attributes[1].second = 0.0;
  optimizer.addRate(attributes);
  for (unsigned i = 0; i < optimizer.size() && !call.failed(); ++i) {
    ValueId gradient = optimizer.gradient(i), param = optimizer.writable(0, i), buffer;
    if (hasBuffers)
      buffer = optimizer.writable(buffers, i);
    if (isFirst && optimizer.foundInf())
      buffer = call.emitUpdate("masked_fill_", {buffer, optimizer.isTaken()}, {{"scalar", 0.0}},
                               {0})[0];
    else if (isFirst)
      buffer = call.emitUpdate("zero_", {buffer}, {}, {0})[0];
    llvm::SmallVector<ValueId, 4> results =
        call.emitUpdate(core, {param, gradient, buffer, optimizer.rate(), optimizer.foundInf()},
                        attributes, {0, 2});
    if (call.failed())
      return;
    optimizer.written(0, i, results[0]);
    if (hasBuffers)
      optimizer.written(buffers, i, results[1]);
  }
  call.finishUpdates();
}

//===----------------------------------------------------------------------===//
// Step counts
//===----------------------------------------------------------------------===//

/// Optimisers count steps, 0-d tensors, in lists: `_foreach_add_(steps, 1)` before the update,
/// `_foreach_sub_(steps, [found_inf, ...])` after it.
void rondo::fx::lowerForeach(Call &call, llvm::StringRef core) {
  llvm::SmallVector<ValueId, 4> values = call.tensors("self"), others;
  AttributeList attributes;
  if (call.isAbsent("scalar")) {
    others = call.tensors("other");
    if (others.size() != values.size())
      return call.fail();
    if (std::optional<Attribute> alpha = call.optionalNumber("alpha"))
      attributes.emplace_back("alpha", *alpha);
  } else {
    attributes.emplace_back("scalar", call.number("scalar"));
  }
  if (!call.isInPlace() && call.numElements() != values.size())
    return call.fail();
  for (unsigned i = 0; i < values.size() && !call.failed(); ++i) {
    llvm::SmallVector<ValueId, 2> operands = {values[i]};
    if (!others.empty())
      operands.push_back(others[i]);
    if (call.isInPlace())
      call.written("self", i, std::nullopt, call.emitUpdate(core, operands, attributes, {0})[0]);
    else
      call.written("self", i, i, call.emitValue(core, operands, attributes));
  }
  call.finishUpdates();
}
