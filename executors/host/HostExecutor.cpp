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

/// The type of one operand or result; no sizes unless it is a tensor.
struct OperandLayout {
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 5> shape, strides;

  explicit OperandLayout(const Type *type) {
    if (const TensorType *tensor = type ? type->asTensor() : nullptr) {
      dtype = tensor->dtype;
      shape = constantDims(tensor->shape);
      strides = constantDims(tensor->strides);
    }
  }
  TensorRef at(void *address) const { return {address, dtype, shape, strides}; }
};

class HostKernel : public Kernel {
public:
  HostKernel(HostKernelFn function, const OpContext &op, unsigned numGenerators, bool synchronises)
      : function_(std::move(function)), numGenerators_(numGenerators), synchronises_(synchronises) {
    for (unsigned i = 0; i < op.numOperands(); ++i) {
      operands_.emplace_back(op.operand(i));
      present_.push_back(op.operand(i) != nullptr);
    }
    for (const Type *type : op.results())
      results_.emplace_back(type);
  }

  llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
    assert(args.operands.size() == operands_.size() && args.results.size() == results_.size() &&
           args.generators.size() == numGenerators_ && "arguments of another op");
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

private:
  static void runBlock(const std::byte *parameters) {
    const Slot *slots = reinterpret_cast<const Slot *>(parameters);
    const HostKernel *self = static_cast<const HostKernel *>(slots[0].address);
    KernelArgs args;
    args.workspace = slots[1].address;
    args.operands = {slots + 2, self->operands_.size()};
    args.results = {args.operands.end(), self->results_.size()};
    llvm::SmallVector<RNGState *, 2> generators;
    for (unsigned i = 0; i < self->numGenerators_; ++i)
      generators.push_back(static_cast<RNGState *>(args.results.end()[i].address));
    args.generators = generators;
    self->run(args);
  }

  void run(const KernelArgs &args) const {
    llvm::SmallVector<TensorRef, 8> operands, results;
    for (auto [layout, slot] : llvm::zip(operands_, args.operands))
      operands.push_back(layout.at(slot.address));
    for (auto [layout, slot] : llvm::zip(results_, args.results))
      results.push_back(layout.at(slot.address));
    function_(HostArgs(operands, results, present_, args));
  }

  HostKernelFn function_;
  llvm::SmallVector<OperandLayout, 4> operands_;
  llvm::SmallVector<OperandLayout, 2> results_;
  llvm::SmallVector<bool, 4> present_;
  unsigned numGenerators_;
  bool synchronises_;
};

/// What the hooks of a spec see of an op, and what that borrows from.
struct OpView {
  llvm::SmallVector<const Type *, 4> operands;
  llvm::SmallVector<const Type *, 2> results;
  const Op &op;

  OpView(const Trace &trace, OpId id) : op(trace.op(id)) {
    for (ValueId value : op.operands())
      operands.push_back(value ? &trace.type(value) : nullptr);
    for (ValueId value : op.results())
      results.push_back(&trace.type(value));
  }
  OpContext context() const { return OpContext(op.spec(), operands, op.attributes(), results); }
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
  host::addOptimizerKernels(*this);
  host::addHostEffectKernels(*this);
}

llvm::Error HostExecutor::add(HostKernelSpec spec) {
  if (spec.op.empty())
    return makeError("a host kernel needs the name of an op");
  if (!spec.make)
    return makeError("the host kernel of op '" + spec.op + "' has no 'make'");
  std::string op = spec.op;
  kernels_[op] = std::move(spec);
  return llvm::Error::success();
}

const HostKernelSpec *HostExecutor::find(llvm::StringRef op) const {
  auto found = kernels_.find(op);
  return found == kernels_.end() ? nullptr : &found->second;
}

ClaimAnswer HostExecutor::claim(const Trace &trace, OpId id) const {
  OpView view(trace, id);
  auto isOnHost = [](const Type *type) {
    return !type || !type->device() || type->device()->isHost();
  };
  auto isSymbolic = [](const Type *type) {
    return type && type->asTensor() && type->asTensor()->hasSymbols();
  };
  using Types = llvm::ArrayRef<const Type *>;
  for (Types types : {Types(view.operands), Types(view.results)}) {
    if (!llvm::all_of(types, isOnHost))
      return ClaimAnswer::decline("it is not on the host");
    if (llvm::any_of(types, isSymbolic))
      return ClaimAnswer::decline("its sizes are symbols: specialise the trace first");
  }
  if (view.op.spec().isView())
    return ClaimAnswer::accept();
  if (view.op.spec().bodies == BodyKind::Region) // its ops answer for themselves
    return ClaimAnswer::accept();
  if (view.op.spec().bodies != BodyKind::None)
    return ClaimAnswer::decline("it has bodies that are chosen at run time, which programs do not "
                                "run");
  const HostKernelSpec *spec = find(view.op.name());
  if (!spec)
    return ClaimAnswer::decline("it has no kernel for '" + view.op.name().str() +
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
  const HostKernelSpec *spec = find(view.op.name());
  if (!spec)
    return makeError("executor '" + name_ + "' has no kernel for '" + view.op.name() + "'");
  OpContext context = view.context();
  llvm::Expected<HostKernelFn> function = spec->make(context);
  if (!function)
    return function.takeError();
  unsigned numGenerators =
      llvm::count_if(getEffects(trace, id).resources, [](const ResourceEffect &effect) {
        return effect.kind == ResourceKind::Generator;
      });
  return std::make_shared<HostKernel>(std::move(*function), context, numGenerators,
                                      spec->synchronises);
}
