//===- ValueAlignment.cpp - Where the values of a trace lie ---------------===//

#include "ValueAlignment.h"

#include "rondo/executors/DeviceAPI.h"

#include "rondo/ir/StorageRoots.h"

using namespace rondo;
using namespace rondo::cuda;

bool rondo::cuda::liesAligned(const Trace &trace, ValueId value) {
  int64_t bytes = 0;
  while (true) {
    OpId definer = trace.definingOp(value);
    if (!definer) {
      OpId parent = trace.parentOp(trace.owner(value));
      if (!parent)
        return bytes % DeviceAPI::minAlignment == 0;
      if (trace.op(parent).spec().bodies != BodyKind::Region)
        return false;
      value = trace.op(parent).operand(trace.index(value));
      continue;
    }
    const Op &op = trace.op(definer);
    unsigned result = trace.index(value);
    llvm::SmallVector<unsigned, 1> viewed = getEffects(trace, definer).viewedBy(result);
    if (viewed.empty())
      return bytes % DeviceAPI::minAlignment == 0;
    const TensorType *type = trace.type(value).asTensor();
    if (!type || op.spec().bodies != BodyKind::None || op.spec().opaque ||
        op.spec().countsFromStorageStart)
      return false;
    std::optional<int64_t> offset = viewOffset(trace, definer, result).asConstant();
    if (!offset)
      return false;
    bytes += *offset * dtypeSize(type->dtype);
    value = op.operand(viewed.front());
  }
}
