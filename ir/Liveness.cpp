//===- Liveness.cpp - Last uses and live bytes ------------------------------===//

#include "rondo/ir/Liveness.h"

#include "llvm/Support/MathExtras.h"

using namespace rondo;

Liveness::Liveness(const Trace &trace, BodyId body, const StorageRoots &roots)
    : lastUse_(trace.numValues(), neverUsed), lastUseOfRoot_(trace.numValues(), neverUsed) {
  llvm::ArrayRef<OpId> order = trace.ops(body);
  auto use = [](uint32_t &last, uint32_t position) {
    if (last == neverUsed)
      last = position;
  };
  for (uint32_t position = order.size(); position-- > 0;) {
    const Op &op = trace.op(order[position]);
    for (ValueId operand : op.operands()) {
      if (!operand)
        continue;
      use(lastUse_[operand.index()], position);
      for (ValueId root : roots.roots(operand))
        use(lastUseOfRoot_[root.index()], position);
    }
    // Storage that nothing uses lives at its definition only.
    for (ValueId result : op.results())
      for (ValueId root : roots.roots(result))
        use(lastUseOfRoot_[root.index()], position);
  }
}

std::optional<int64_t> rondo::storageBytes(const Type &type) {
  const TensorType *tensor = type.asTensor();
  if (!tensor)
    return 0;
  // The extent of a strided tensor: the offset of its last element, plus one.
  int64_t extent = 1;
  for (unsigned i = 0; i < tensor->rank(); ++i) {
    if (!tensor->shape[i].isConstant() || !tensor->strides[i].isConstant())
      return std::nullopt;
    int64_t size = tensor->shape[i].value(), stride = tensor->strides[i].value(), span = 0;
    if (size == 0)
      return 0;
    if (llvm::MulOverflow(size - 1, stride, span) || llvm::AddOverflow(extent, span, extent))
      return std::nullopt;
  }
  int64_t bytes = 0;
  if (llvm::MulOverflow<int64_t>(extent, dtypeSize(tensor->dtype), bytes))
    return std::nullopt;
  return bytes;
}

LivenessPeak rondo::livenessPeak(const Trace &trace, llvm::ArrayRef<OpId> order,
                                 const StorageRoots &roots) {
  std::vector<uint32_t> lastUse(trace.numValues(), Liveness::neverUsed);
  for (uint32_t position = order.size(); position-- > 0;)
    for (ValueId operand : trace.op(order[position]).operands())
      if (operand)
        for (ValueId root : roots.roots(operand))
          if (lastUse[root.index()] == Liveness::neverUsed)
            lastUse[root.index()] = position;

  LivenessPeak peak;
  int64_t live = 0;
  BodyId body = order.empty() ? Trace::topBody() : trace.op(order.front()).body();
  if (body)
    for (ValueId argument : trace.arguments(body))
      live += storageBytes(trace.type(argument)).value_or(0);
  peak.bytes = live;

  std::vector<int64_t> dies(order.size() + 1, 0);
  for (uint32_t position = 0; position < order.size(); ++position) {
    for (ValueId result : trace.op(order[position]).results()) {
      if (roots.root(result) != result)
        continue;
      int64_t bytes = storageBytes(trace.type(result)).value_or(0);
      live += bytes;
      uint32_t last = lastUse[result.index()];
      dies[last == Liveness::neverUsed ? position : last] += bytes;
    }
    if (live > peak.bytes)
      peak = {live, position};
    live -= dies[position];
  }
  return peak;
}
