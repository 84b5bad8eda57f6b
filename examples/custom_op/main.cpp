//===- main.cpp - An op of one's own, run on the host ---------------------===//
//
// The twenty lines for an op that Rondo does not have, `mylib.twice`: what it is (registerTwice)
// and how the host runs it (addTwice). The rest builds a trace with it, compiles it, and calls the
// program: once eagerly, once as a replayed graph.
//
//===----------------------------------------------------------------------===//

#include "rondo/host/HostDevice.h"
#include "rondo/host/HostExecutor.h"
#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/TraceBuilder.h"
#include "rondo/passes/CUDAGraphTransform.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"
#include "rondo/runtime/Program.h"

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

/// y = twice(twice(x)).
static llvm::Expected<TracePair> build(const OpRegistry &registry) {
  TraceBuilder b(registry, "four_times");
  ValueId x = b.argument("x", TensorType(DType::F32, {2, 3}));
  b.returnValues({b.op("mylib.twice", {b.op("mylib.twice", {x})})});
  llvm::Expected<Trace> trace = std::move(b).finish();
  if (!trace)
    return trace.takeError();
  return TracePair(std::move(*trace));
}

/// Compiles the pair: both ops become one region, which the first call runs and captures.
static llvm::Expected<Program> compileForHost(TracePair pair, const HostExecutor &executor,
                                              const DeviceRef &device) {
  auto pipeline = [&executor](TracePair pair, const SymbolBindings &) {
    PassManager manager;
    manager.add(createExecutionTransform({&executor}))
        .add(std::make_unique<CUDAGraphTransform>())
        .add(createDelPass());
    return manager.run(std::move(pair));
  };
  return compile(std::move(pair), device, &executor, pipeline);
}

/// Calls the program twice, prints what it gives, and returns true if that is right, and if the
/// second call was a replay.
static llvm::Expected<bool> callTwice(Program &program, const DeviceRef &device) {
  llvm::Expected<std::unique_ptr<Stream>> stream = device->createStream();
  if (!stream)
    return stream.takeError();
  bool isRight = true;
  for (int call = 0; call < 2; ++call) {
    llvm::Expected<Tensor> x = Tensor::empty(device, DType::F32, {2, 3});
    if (!x)
      return x.takeError();
    for (int i = 0; i < 6; ++i)
      x->ref().as<float>()[i] = float(i + call);
    llvm::SmallVector<Value> results;
    if (llvm::Error error = program.forward(**stream, {Value(*x)}, results))
      return error;
    if (llvm::Error error = (*stream)->synchronize())
      return error;
    for (int i = 0; i < 6; ++i) {
      float y = results[0].asTensor()->ref().as<float>()[i];
      llvm::outs() << (i == 0 ? "" : " ") << llvm::format("%g", y);
      isRight &= y == 4 * float(i + call);
    }
    llvm::outs() << "\n";
  }
  return isRight && program.counters().replays == 1;
}

static llvm::Expected<bool> runExample() {
  OpRegistry registry;
  HostExecutor executor;
  if (llvm::Error error = llvm::joinErrors(registerCoreOps(registry), registerTwice(registry)))
    return error;
  if (llvm::Error error = addTwice(executor))
    return error;
  llvm::Expected<TracePair> pair = build(registry);
  if (!pair)
    return pair.takeError();
  print(*pair, llvm::outs());
  DeviceRef device = createHostDevice();
  llvm::Expected<Program> program = compileForHost(std::move(*pair), executor, device);
  if (!program)
    return program.takeError();
  return callTwice(*program, device);
}

int main() {
  llvm::Expected<bool> isRight = runExample();
  if (isRight)
    return *isRight ? 0 : 1;
  llvm::logAllUnhandledErrors(isRight.takeError(), llvm::errs());
  return 1;
}
