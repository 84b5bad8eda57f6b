//===- TypedArgs.cpp - The arguments of a run with their layouts ----------===//

#include "rondo/executors/TypedArgs.h"

using namespace rondo;

OpView::OpView(const Trace &trace, OpId id) : op_(trace.op(id)) {
  for (ValueId value : op_.operands())
    operands_.push_back(value ? &trace.type(value) : nullptr);
  for (ValueId value : op_.results())
    results_.push_back(&trace.type(value));
}

OpContext OpView::context() const {
  return OpContext(op_.spec(), operands_, op_.attributes(), results_);
}

std::string rondo::findForeignType(const OpView &op, llvm::function_ref<bool(Device)> isOurs,
                                   llvm::StringRef devices) {
  for (llvm::ArrayRef<const Type *> types : {op.operands(), op.results()}) {
    for (const Type *type : types)
      if (type && type->device() && !isOurs(*type->device()))
        return "it is not on " + devices.str();
    for (const Type *type : types)
      if (type && type->asTensor() && type->asTensor()->hasSymbols())
        return "its sizes are symbols: specialise the trace first";
  }
  return {};
}

ArgLayouts::Layout::Layout(const Type *type) {
  if (const TensorType *tensor = type ? type->asTensor() : nullptr) {
    isTensor = true;
    dtype = tensor->dtype;
    shape = constantDims(tensor->shape);
    strides = constantDims(tensor->strides);
  }
}

ArgLayouts::ArgLayouts(const OpView &op) {
  for (const Type *type : op.operands()) {
    operands_.emplace_back(type);
    present_.push_back(type != nullptr);
  }
  for (const Type *type : op.results())
    results_.emplace_back(type);
}

bool ArgLayouts::haveSameLayout(unsigned operand, unsigned result) const {
  const Layout &from = operands_[operand], &to = results_[result];
  return from.isTensor && to.isTensor && dtypeSize(from.dtype) == dtypeSize(to.dtype) &&
         from.shape == to.shape && from.strides == to.strides;
}
