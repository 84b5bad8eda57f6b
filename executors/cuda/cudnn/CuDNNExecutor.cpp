//===- CuDNNExecutor.cpp - Attention by cuDNN -----------------------------===//
//
// Whether cuDNN takes an attention is known when it has made a plan, for which it may compile
// kernels. So plans are kept: layers that are alike share one.
//
//===----------------------------------------------------------------------===//

#include "CuDNNExecutor.h"

#include "ValueAlignment.h"

#include "rondo/cuda/CUDADevice.h"
#include "rondo/cuda/CUDAExecutors.h"
#include "rondo/executors/ErrorText.h"

#include "rondo/ir/Diagnostic.h"

using namespace rondo;
using namespace rondo::cuda;

/// From here on, plans that no kernel uses are dropped.
static constexpr size_t manyPlans = 512;

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

namespace {

class CuDNNKernel : public Kernel {
public:
  CuDNNKernel(std::shared_ptr<const CuDNNHandle> handle, std::shared_ptr<const CuDNNPlan> plan)
      : handle_(std::move(handle)), plan_(std::move(plan)) {}

  llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
    if (std::string which = plan_->findMisaligned(args); !which.empty())
      return makeDeviceError(DeviceErrorKind::InvalidArgument,
                             "cuDNN's plan is for tensors at multiples of 16 bytes, where " +
                                 which + " does not lie");
    return sink.call([&](Stream &stream) -> llvm::Error {
      llvm::Error error =
          plan_->execute(handle_, static_cast<cudaStream_t>(stream.nativeHandle()), args);
      if (!error || stream.captureStatus() != CaptureStatus::Invalidated)
        return error;
      // The library's answer does not tell that it was the capture.
      return makeDeviceError(DeviceErrorKind::CaptureInvalidated, llvm::toString(std::move(error)));
    });
  }

private:
  std::shared_ptr<const CuDNNHandle> handle_;
  std::shared_ptr<const CuDNNPlan> plan_;
};

} // namespace

//===----------------------------------------------------------------------===//
// Claims
//===----------------------------------------------------------------------===//

llvm::StringRef CuDNNExecutor::name() const {
  return "cudnn";
}

/// The GPU that the attention is on.
static unsigned gpuOf(const Trace &trace, OpId op) {
  return trace.type(trace.op(op).result(0)).asTensor()->device.index;
}

/// The first tensor that cuDNN reads and that does not lie at a multiple of 16 bytes: `operand #1`.
static std::string findUnaligned(const Trace &trace, OpId op) {
  llvm::ArrayRef<ValueId> operands = trace.op(op).operands();
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && trace.type(operands[i]).asTensor() && !liesAligned(trace, operands[i]))
      return "operand #" + std::to_string(i);
  return {};
}

ClaimAnswer CuDNNExecutor::claim(const Trace &trace, OpId op) const {
  llvm::Expected<FusedAttention> attention = describeFusedAttention(trace, op);
  if (!attention)
    return ClaimAnswer::decline(errorText(attention.takeError()));
  if (std::string which = findUnaligned(trace, op); !which.empty())
    return ClaimAnswer::decline(which + " does not lie at a multiple of 16 bytes");
  Answer answer = planFor(gpuOf(trace, op), *attention);
  if (!answer.plan)
    return ClaimAnswer::decline(std::move(answer.why));
  return ClaimAnswer::accept(answer.plan->workspaceBytes());
}

llvm::Expected<KernelRef> CuDNNExecutor::compile(const Trace &trace, OpId id,
                                                 const DeviceRef &device) const {
  llvm::Expected<FusedAttention> attention = describeFusedAttention(trace, id);
  if (!attention)
    return attention.takeError();
  llvm::Expected<HandleRef> handle = handleFor(device);
  if (!handle)
    return handle.takeError();
  Answer answer = planFor(device->device().index, *attention);
  if (!answer.plan)
    return makeError(answer.why);
  const Claim *claim = trace.op(id).claim();
  if (claim && claim->workspaceBytes < answer.plan->workspaceBytes())
    return makeError("its claim has " + llvm::Twine(claim->workspaceBytes) +
                     " bytes of workspace, cuDNN's plan on this GPU needs " +
                     llvm::Twine(answer.plan->workspaceBytes()) + ": claim it again");
  return std::make_shared<CuDNNKernel>(std::move(*handle), std::move(answer.plan));
}

//===----------------------------------------------------------------------===//
// Plans and handles
//===----------------------------------------------------------------------===//

CuDNNExecutor::Answer CuDNNExecutor::planFor(unsigned device,
                                             const FusedAttention &attention) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto known = plans_.find({device, attention});
  if (known != plans_.end())
    return known->second;
  if (plans_.size() >= manyPlans)
    std::erase_if(plans_, [](const auto &entry) { return entry.second.plan.use_count() <= 1; });
  return plans_[{device, attention}] = makePlan(device, attention);
}

CuDNNExecutor::Answer CuDNNExecutor::makePlan(unsigned device,
                                              const FusedAttention &attention) const {
  HandleRef &planner = planners_[device];
  if (!planner) {
    llvm::Expected<DeviceRef> made = createCUDADevice(device);
    if (!made)
      return {nullptr, errorText(made.takeError())};
    llvm::Expected<HandleRef> handle = CuDNNHandle::create(library_, *made);
    if (!handle)
      return {nullptr, errorText(handle.takeError())};
    planner = std::move(*handle);
  }
  llvm::Expected<std::shared_ptr<const CuDNNPlan>> plan = CuDNNPlan::create(planner, attention);
  if (!plan)
    return {nullptr, errorText(plan.takeError())};
  return {std::move(*plan), {}};
}

llvm::Expected<CuDNNExecutor::HandleRef> CuDNNExecutor::handleFor(const DeviceRef &device) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<const CuDNNHandle> &known = handles_[device.get()];
  if (HandleRef handle = known.lock())
    return handle;
  llvm::Expected<HandleRef> handle = CuDNNHandle::create(library_, device);
  if (handle)
    known = *handle;
  return handle;
}

llvm::Expected<std::unique_ptr<Executor>> rondo::createCuDNNExecutor() {
  llvm::Expected<std::shared_ptr<const CuDNNLibrary>> library = CuDNNLibrary::load();
  if (!library)
    return library.takeError();
  return std::make_unique<CuDNNExecutor>(std::move(*library));
}
