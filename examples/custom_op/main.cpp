//===- main.cpp - An op of one's own, run on the host ---------------------===//
//
// The twenty lines for an op that Rondo does not have, `mylib.twice`: what it is (registerTwice)
// and how the host runs it (addTwice). The rest builds a trace with it, lets the executor claim it,
// and runs it.
//
//===----------------------------------------------------------------------===//

#include "rondo/host/HostDevice.h"
#include "rondo/host/HostExecutor.h"
#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/TraceBuilder.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"

#include "llvm/Support/Format.h"

using namespace rondo;

/// What the op is: one operand, one result of the same type, no effects.
static llvm::Error registerTwice(OpRegistry &registry) {
  OpSpec spec;
  spec.name = "mylib.twice";
  spec.summary = "2 * x";
  spec.operands = {{"x"}};
  spec.results = {"out"};
  spec.infer = [](const OpContext &op, llvm::SmallVectorImpl<Type> &results) {
    const TensorType &x = *op.tensor(0);
    results.push_back(TensorType(x.dtype, x.shape, x.device));
    return llvm::Error::success();
  };
  return registry.registerOp(std::move(spec));
}

/// How the host runs it: for which types, and the loop.
static llvm::Error addTwice(HostExecutor &executor) {
  HostKernelSpec spec;
  spec.op = "mylib.twice";
  spec.make = [](const OpContext &op) -> llvm::Expected<HostKernelFn> {
    const TensorType &x = *op.tensor(0);
    if (x.dtype != DType::F32 || !x.isContiguous() || !op.results()[0]->asTensor()->isContiguous())
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "expects contiguous f32");
    return HostKernelFn([](const HostArgs &args) {
      for (int64_t i = 0, end = args.result().numElements(); i < end; ++i)
        args.result().as<float>()[i] = 2 * args.operand(0).as<float>()[i];
    });
  };
  return executor.add(std::move(spec));
}

/// y = twice(twice(x)), claimed by `executor`.
static llvm::Expected<TracePair> build(const OpRegistry &registry, const HostExecutor &executor) {
  TraceBuilder b(registry, "four_times");
  ValueId x = b.argument("x", TensorType(DType::F32, {2, 3}));
  b.returnValues({b.op("mylib.twice", {b.op("mylib.twice", {x})})});
  llvm::Expected<Trace> trace = std::move(b).finish();
  if (!trace)
    return trace.takeError();
  PassManager manager;
  manager.add(createExecutionTransform({&executor}));
  return manager.run(TracePair(std::move(*trace)));
}

/// Runs the ops of `trace` one after the other on a stream: what a program of rondo::runtime does,
/// which also plans the memory and captures graphs. Returns what the trace returns.
static llvm::Expected<Tensor> run(const Trace &trace, const HostExecutor &executor,
                                  const DeviceRef &device, const Tensor &argument) {
  llvm::Expected<std::unique_ptr<Stream>> stream = device->createStream();
  if (!stream)
    return stream.takeError();
  llvm::DenseMap<ValueId, Tensor> values;
  values[trace.arguments().front()] = argument;
  for (OpId id : trace.ops()) {
    const Op &op = trace.op(id);
    if (op.spec().terminator)
      break;
    llvm::Expected<KernelRef> kernel = executor.compile(trace, id, device);
    if (!kernel)
      return kernel.takeError();
    llvm::Expected<Tensor> result = Tensor::empty(device, trace.tensorType(op.result()));
    if (!result)
      return result.takeError();
    const Slot operand{values.lookup(op.operand(0)).data()}, out{result->data()};
    KernelArgs args;
    args.operands = operand;
    args.results = out;
    if (llvm::Error error = (*kernel)->enqueue(**stream, args))
      return error;
    values[op.result()] = std::move(*result);
  }
  if (llvm::Error error = (*stream)->synchronize())
    return error;
  return values.lookup(trace.terminator()->operand(0));
}

/// Prints the trace and the result. Returns true if it is right.
static llvm::Expected<bool> runExample() {
  OpRegistry registry;
  HostExecutor executor;
  if (llvm::Error error = llvm::joinErrors(registerCoreOps(registry), registerTwice(registry)))
    return error;
  if (llvm::Error error = addTwice(executor))
    return error;
  llvm::Expected<TracePair> pair = build(registry, executor);
  if (!pair)
    return pair.takeError();
  print(*pair, llvm::outs());

  DeviceRef device = createHostDevice();
  llvm::Expected<Tensor> x = Tensor::empty(device, DType::F32, {2, 3});
  if (!x)
    return x.takeError();
  for (int i = 0; i < 6; ++i)
    x->ref().as<float>()[i] = float(i);
  llvm::Expected<Tensor> y = run(pair->forward(), executor, device, *x);
  if (!y)
    return y.takeError();
  bool isRight = true;
  for (int i = 0; i < 6; ++i) {
    float value = y->ref().as<float>()[i];
    llvm::outs() << (i == 0 ? "" : " ") << llvm::format("%g", value);
    isRight &= value == 4 * float(i);
  }
  llvm::outs() << "\n";
  return isRight;
}

int main() {
  llvm::Expected<bool> isRight = runExample();
  if (isRight)
    return *isRight ? 0 : 1;
  llvm::logAllUnhandledErrors(isRight.takeError(), llvm::errs());
  return 1;
}
