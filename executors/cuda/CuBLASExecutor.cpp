//===- CuBLASExecutor.cpp - Products of matrices by cuBLASLt --------------===//
//
// A single op is a product of its own. A `fused` op has the ops of a group in its body, which the
// group is found in again.
//
//===----------------------------------------------------------------------===//

#include "CuBLASExecutor.h"

#include "CuBLASKernel.h"

#include "rondo/cuda/CUDAExecutors.h"
#include "rondo/executors/ErrorText.h"

#include "rondo/ir/CoreOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::cuda;

llvm::StringRef CuBLASExecutor::name() const {
  return cublasName;
}

/// The plan of the group that fills `body`, whose terminator, and what `del` frees, aside.
static llvm::Expected<CuBLASPlan> planBody(const Trace &trace, BodyId body) {
  size_t numOps = llvm::count_if(trace.ops(body), [&](OpId id) {
    const Op &op = trace.op(id);
    return !op.spec().terminator && op.name() != core::delOp;
  });
  std::vector<CuBLASGroup> groups = findGroups(trace, body);
  if (groups.size() != 1 || groups[0].ops.size() != numOps)
    return makeError("its ops are no group that cuBLASLt computes at once");
  return std::move(groups[0].plan);
}

ClaimAnswer CuBLASExecutor::claim(const Trace &trace, OpId id) const {
  const Op &op = trace.op(id);
  llvm::Expected<CuBLASPlan> plan = op.name() == core::fusedOp && op.bodies().size() == 1
                                        ? planBody(trace, op.bodies().front())
                                        : planOp(trace, id);
  if (!plan)
    return ClaimAnswer::decline(errorText(plan.takeError()));
  return ClaimAnswer::accept(workspaceBytes(*plan));
}

void CuBLASExecutor::claimGroups(const Trace &trace, BodyId body,
                                 std::vector<GroupClaim> &groups) const {
  for (CuBLASGroup &group : findGroups(trace, body))
    groups.push_back({std::move(group.ops), ClaimAnswer::accept(workspaceBytes(group.plan))});
}

llvm::Expected<KernelRef> CuBLASExecutor::compile(const Trace &trace, OpId id,
                                                  const DeviceRef &device) const {
  const Op &op = trace.op(id);
  bool isGroup = op.name() == core::fusedOp;
  llvm::Expected<CuBLASPlan> plan =
      isGroup ? planBody(trace, op.bodies().front()) : planOp(trace, id);
  if (!plan)
    return plan.takeError();
  llvm::Expected<std::shared_ptr<const CuBLASHandle>> handle = handleFor(device);
  if (!handle)
    return handle.takeError();
  uint64_t bytes = op.claim() ? op.claim()->workspaceBytes : workspaceBytes(*plan);
  if (!isGroup)
    return makeCuBLASKernel(std::move(*handle), *plan, op.operands(), op.results(), bytes);
  BodyId body = op.bodies().front();
  return makeCuBLASKernel(std::move(*handle), *plan, trace.arguments(body),
                          trace.terminator(body)->operands(), bytes);
}

llvm::Expected<std::shared_ptr<const CuBLASHandle>>
CuBLASExecutor::handleFor(const DeviceRef &device) const {
  if (!library_)
    return makeDeviceError(DeviceErrorKind::InvalidArgument, "cuBLASLt is not loaded");
  std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<const CuBLASHandle> &known = handles_[device.get()];
  if (std::shared_ptr<const CuBLASHandle> handle = known.lock())
    return handle;
  llvm::Expected<std::shared_ptr<const CuBLASHandle>> handle =
      CuBLASHandle::create(library_, device);
  if (handle)
    known = *handle;
  return handle;
}

llvm::Expected<std::unique_ptr<Executor>> rondo::createCuBLASExecutor() {
  llvm::Expected<std::shared_ptr<const CuBLASLibrary>> library = CuBLASLibrary::load();
  if (!library)
    return library.takeError();
  return std::make_unique<CuBLASExecutor>(std::move(*library));
}
