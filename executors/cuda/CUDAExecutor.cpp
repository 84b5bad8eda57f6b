//===- CUDAExecutor.cpp - Ops on a GPU ------------------------------------===//
//
// A kernel is what a table entry made for the op's types, and the entry's functions as they were
// loaded onto one device. What it launches takes a single struct as its parameter.
//
//===----------------------------------------------------------------------===//

#include "rondo/cuda/CUDAExecutor.h"

#include "CUDAFunctions.h"
#include "CUDAKernels.h"

#include "rondo/executors/ErrorText.h"

using namespace rondo;

namespace {

class CUDAKernel : public Kernel {
public:
  CUDAKernel(CUDAKernelFn kernel, const CUDAKernelSpec &spec, const OpView &op,
             llvm::SmallVector<const void *, 2> functions)
      : kernel_(std::move(kernel)), layouts_(op), functions_(std::move(functions)),
        isElementwise_(spec.isElementwise) {}

  llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
    return layouts_.bind(args, [&](auto operands, auto results, auto present) {
      return kernel_.enqueue(CUDAWork(sink, functions_),
                             TypedArgs(operands, results, present, args));
    });
  }

  bool canReuse(unsigned operand, unsigned result) const override {
    return isElementwise_ && layouts_.haveSameLayout(operand, result);
  }

private:
  CUDAKernelFn kernel_;
  ArgLayouts layouts_;
  llvm::SmallVector<const void *, 2> functions_;
  bool isElementwise_;
};

} // namespace

CUDAExecutor::CUDAExecutor() : name_("cuda") {
  cuda::addCreationKernels(*this);
  cuda::addPointwiseKernels(*this);
  cuda::addUnaryKernels(*this);
  cuda::addPointwiseBackwardKernels(*this);
  cuda::addCopyKernels(*this);
  cuda::addReductionKernels(*this);
  cuda::addDataMovementKernels(*this);
  cuda::addRandomKernels(*this);
  cuda::addMatmulKernels(*this);
  cuda::addSoftmaxKernels(*this);
  cuda::addNormalizationKernels(*this);
  cuda::addAttentionKernels(*this);
  cuda::addLossKernels(*this);
  cuda::addIndexKernels(*this);
  cuda::addEmbeddingKernels(*this);
  cuda::addSortKernels(*this);
  cuda::addGradientKernels(*this);
  cuda::addOptimizerKernels(*this);
  cuda::addHostEffectKernels(*this);
}

ClaimAnswer CUDAExecutor::claim(const Trace &trace, OpId id) const {
  OpView view(trace, id);
  const CUDAKernelSpec *spec = find(view.op().name());
  auto isOurs = [&](Device device) {
    return device.kind == DeviceKind::CUDA || (spec && spec->movesBetweenDevices);
  };
  if (std::optional<ClaimAnswer> answer = claimWithoutKernel(view, isOurs, "a CUDA device"))
    return *answer;
  if (!spec)
    return ClaimAnswer::decline("it has no CUDA kernel for '" + view.op().name().str() +
                                "': add one with CUDAExecutor::add");
  llvm::Expected<CUDAKernelFn> kernel = spec->make(view.context());
  if (!kernel)
    return ClaimAnswer::decline(errorText(kernel.takeError()));
  if (spec->synchronises)
    return ClaimAnswer::acceptUncapturable("waits for the device");
  return ClaimAnswer::accept(kernel->workspaceBytes);
}

llvm::Expected<KernelRef> CUDAExecutor::compile(const Trace &trace, OpId id,
                                                const DeviceRef &device) const {
  OpView view(trace, id);
  const CUDAKernelSpec *spec = find(view.op().name());
  if (!spec)
    return makeError("executor '" + name_ + "' has no kernel for '" + view.op().name() + "'");
  llvm::Expected<CUDAKernelFn> kernel = spec->make(view.context());
  if (!kernel)
    return kernel.takeError();
  llvm::SmallVector<const void *, 2> functions;
  for (const CUDAFunction &function : kernel->functions) {
    llvm::Expected<const void *> loaded =
        cuda::loadFunction(*device, function.symbol, function.sharedBytes);
    if (!loaded)
      return loaded.takeError();
    functions.push_back(*loaded);
  }
  return std::make_shared<CUDAKernel>(std::move(*kernel), *spec, view, std::move(functions));
}
