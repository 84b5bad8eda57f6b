//===- HostExecutor.cpp - Ops on the CPU ----------------------------------===//
//
// A kernel is the function that a table entry made for the op's types, and those types. On a sink
// it is one launch, whose parameter block holds the address of the kernel and then the slots of one
// run.
//
//===----------------------------------------------------------------------===//

#include "rondo/host/HostExecutor.h"

#include "HostKernels.h"

#include "rondo/executors/ErrorText.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

class HostKernel : public Kernel {
public:
  HostKernel(HostKernelFn function, const HostKernelSpec &spec, const OpView &op,
             unsigned numGenerators)
      : function_(std::move(function)), layouts_(op), numGenerators_(numGenerators),
        synchronises_(spec.synchronises), isElementwise_(spec.isElementwise) {}

  llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
    assert(args.generators.size() == numGenerators_ && "arguments of another op");
    if (synchronises_) {
      if (llvm::Error error = sink.synchronize())
        return error;
      run(args);
      return llvm::Error::success();
    }
    // this, workspace, operands, results, generators
    llvm::SmallVector<Slot, 16> block(2);
    block[0].address = const_cast<HostKernel *>(this); // read back as const
    block[1].address = args.workspace;
    block.append(args.operands.begin(), args.operands.end());
    block.append(args.results.begin(), args.results.end());
    for (RNGState *generator : args.generators)
      block.emplace_back().address = generator;
    KernelLaunch launch;
    launch.function = reinterpret_cast<const void *>(&runBlock);
    launch.parameters = {reinterpret_cast<const std::byte *>(block.data()),
                         block.size() * sizeof(Slot)};
    return sink.launch(launch);
  }

  bool canReuse(unsigned operand, unsigned result) const override {
    return isElementwise_ && layouts_.haveSameLayout(operand, result);
  }

private:
  static void runBlock(const std::byte *parameters) {
    const Slot *slots = reinterpret_cast<const Slot *>(parameters);
    const HostKernel *self = static_cast<const HostKernel *>(slots[0].address);
    KernelArgs args;
    args.workspace = slots[1].address;
    args.operands = {slots + 2, self->layouts_.numOperands()};
    args.results = {args.operands.end(), self->layouts_.numResults()};
    llvm::SmallVector<RNGState *, 2> generators;
    for (unsigned i = 0; i < self->numGenerators_; ++i)
      generators.push_back(static_cast<RNGState *>(args.results.end()[i].address));
    args.generators = generators;
    self->run(args);
  }

  void run(const KernelArgs &args) const {
    layouts_.bind(args, [&](auto operands, auto results, auto present) {
      function_(HostArgs(operands, results, present, args));
    });
  }

  HostKernelFn function_;
  ArgLayouts layouts_;
  unsigned numGenerators_;
  bool synchronises_, isElementwise_;
};

} // namespace

//===----------------------------------------------------------------------===//
// The executor
//===----------------------------------------------------------------------===//

HostExecutor::HostExecutor() : name_("host") {
  host::addCreationKernels(*this);
  host::addPointwiseKernels(*this);
  host::addUnaryKernels(*this);
  host::addCopyKernels(*this);
  host::addPointwiseBackwardKernels(*this);
  host::addReductionKernels(*this);
  host::addDataMovementKernels(*this);
  host::addRandomKernels(*this);
  host::addMatmulKernels(*this);
  host::addSoftmaxKernels(*this);
  host::addNormalizationKernels(*this);
  host::addAttentionKernels(*this);
  host::addLossKernels(*this);
  host::addIndexKernels(*this);
  host::addGradientKernels(*this);
  host::addOptimizerKernels(*this);
  host::addHostEffectKernels(*this);
}

ClaimAnswer HostExecutor::claim(const Trace &trace, OpId id) const {
  OpView view(trace, id);
  auto isHost = [](Device device) { return device.isHost(); };
  if (std::optional<ClaimAnswer> answer = claimWithoutKernel(view, isHost, "the host"))
    return *answer;
  const HostKernelSpec *spec = find(view.op().name());
  if (!spec)
    return ClaimAnswer::decline("it has no kernel for '" + view.op().name().str() +
                                "': add one with HostExecutor::add");
  OpContext context = view.context();
  ClaimAnswer answer = ClaimAnswer::accept();
  if (spec->claim) {
    answer = spec->claim(context);
  } else if (llvm::Expected<HostKernelFn> function = spec->make(context); !function) {
    answer = ClaimAnswer::decline(errorText(function.takeError()));
  }
  if (answer.accepted && spec->synchronises)
    answer = ClaimAnswer::acceptUncapturable("waits for the device");
  if (answer.accepted && spec->workspaceBytes)
    answer.workspaceBytes = spec->workspaceBytes(context);
  return answer;
}

llvm::Expected<KernelRef> HostExecutor::compile(const Trace &trace, OpId id,
                                                const DeviceRef &) const {
  OpView view(trace, id);
  const HostKernelSpec *spec = find(view.op().name());
  if (!spec)
    return makeError("executor '" + name_ + "' has no kernel for '" + view.op().name() + "'");
  OpContext context = view.context();
  llvm::Expected<HostKernelFn> function = spec->make(context);
  if (!function)
    return function.takeError();
  unsigned numGenerators =
      llvm::count_if(getEffects(trace, id).resources, [](const ResourceEffect &effect) {
        return effect.kind == ResourceKind::Generator;
      });
  return std::make_shared<HostKernel>(std::move(*function), *spec, view, numGenerators);
}
