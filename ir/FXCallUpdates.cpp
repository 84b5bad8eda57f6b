//===- FXCallUpdates.cpp - ATen calls that write their arguments ------------===//
//
// A call of ATen's that updates tensors has two forms: one writes its arguments, the other, which
// AOTAutograd makes of it, gives their new values. Core ops write and rename. So after the first
// form its arguments refer to the new names, and the second is an update of what nothing else
// needs, or of a copy.
//
//===----------------------------------------------------------------------===//

#include "FXCall.h"

using namespace rondo;
using namespace rondo::fx;

bool Call::isInPlace() const {
  return lowering_.graph.values[node_.value].result.kind != Result::Kind::Tuple;
}

std::optional<unsigned> Call::listElement(unsigned list, unsigned i) {
  llvm::ArrayRef<Result> lists = lowering_.graph.values[node_.value].result.elements;
  if (list >= lists.size()) {
    fail();
    return std::nullopt;
  }
  if (lists[list].kind == Result::Kind::Unused)
    return std::nullopt;
  if (lists[list].kind != Result::Kind::Tuple || i >= lists[list].elements.size()) {
    fail();
    return std::nullopt;
  }
  unsigned first = 0;
  for (const Result &before : lists.take_front(list))
    first += before.numLeaves();
  return first + i;
}

const Argument *Call::elementOf(llvm::StringRef parameter, unsigned i) {
  const Argument *argument = find(parameter);
  if (argument && argument->kind == Argument::Kind::List)
    argument = i < argument->list.size() ? &argument->list[i] : nullptr;
  if (argument && argument->kind == Argument::Kind::Ref)
    return argument;
  fail();
  return nullptr;
}

ValueId Call::writable(llvm::StringRef parameter, unsigned i, std::optional<unsigned> element) {
  const Argument *argument = elementOf(parameter, i);
  ValueId value = argument ? lowering_.valueOf(*argument) : ValueId();
  if (!value || !lowering_.trace.type(value).isTensor()) {
    fail();
    return {};
  }
  if (isInPlace())
    return value;
  if (element && lowering_.mayWrite(value, node_, *element)) {
    writtenInPlace_.insert(argument);
    return value;
  }
  bool isContiguous = true; // as ATen makes it, where that is known
  if (const TensorType *type = element ? recorded(*element) : nullptr)
    isContiguous = type->isContiguous();
  return emitValue("clone", {value}, {{"contiguous", isContiguous}});
}

void Call::written(llvm::StringRef parameter, unsigned i, std::optional<unsigned> element,
                   ValueId newValue) {
  if (const Argument *argument = elementOf(parameter, i))
    updates_.push_back({argument, element, newValue});
}

void Call::finishUpdates(ValueId result) {
  if (failed_)
    return;
  auto bind = [&](unsigned element, ValueId value) {
    Binding binding;
    binding.value = value;
    lowering_.bindElement(node_, element, std::move(binding));
  };
  if (isInPlace())
    bind(0, result);
  for (const Update &update : updates_) {
    ValueId oldValue = lowering_.binding(update.argument->ref).value;
    if (isInPlace()) {
      lowering_.rebind(*update.argument, update.newValue);
      continue;
    }
    if (!update.element)
      continue;
    bind(*update.element, update.newValue);
    if (update.newValue == oldValue)
      continue;
    if (llvm::StringRef name = lowering_.elementName(node_, *update.element); !name.empty())
      lowering_.trace.setName(update.newValue, name);
    if (writtenInPlace_.contains(update.argument))
      lowering_.noteWritten(oldValue, update.newValue);
  }
}
