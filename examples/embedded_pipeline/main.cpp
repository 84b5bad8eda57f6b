//===- main.cpp - Rondo in a compiler of one's own --------------------------===//
//
// A compiler engineer's view: an op and an executor of one's own, traces built from one's own IR,
// Rondo's passes between one's own, and the regions read back from the result.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/TraceBuilder.h"
#include "rondo/passes/CUDAGraphTransform.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"

using namespace rondo;

/// An op that core Rondo does not have: y = x * sigmoid(beta * x), with an attribute, inference and
/// default effects.
static llvm::Error registerSwish(OpRegistry &registry) {
  OpSpec spec;
  spec.name = "acme.swish";
  spec.summary = "x * sigmoid(beta * x)";
  spec.operands = {{"x"}};
  spec.attributes = {{"beta", AttributeKind::Number, false, 1.0}};
  spec.results = {"out"};
  spec.infer = [](const OpContext &op, llvm::SmallVectorImpl<Type> &results) {
    const TensorType &x = *op.tensor(0);
    results.push_back(TensorType(x.dtype, x.shape, x.device));
    return llvm::Error::success();
  };
  return registry.registerOp(std::move(spec));
}

namespace {

/// An executor, as far as passes see it: takes what it can run, and says what may be captured.
class AcmeExecutor : public ClaimSource {
public:
  llvm::StringRef name() const override { return "acme"; }

  ClaimAnswer claim(const Trace &trace, OpId id) const override {
    const Op &op = trace.op(id);
    for (ValueId result : op.results())
      if (const TensorType *type = trace.type(result).asTensor(); type && type->dtype != DType::F32)
        return ClaimAnswer::decline("only f32");
    if (op.name() == "mm")
      return ClaimAnswer::accept(/*workspaceBytes=*/1 << 20);
    if (op.name() == "cumsum")
      return ClaimAnswer::acceptUncapturable("allocates while it runs");
    return ClaimAnswer::accept();
  }
};

/// A pass of one's own: counts what the graphs launch.
class CountLaunches : public TracePass {
public:
  llvm::StringRef name() const override { return "count-launches"; }
  PassProperties properties() const override {
    PassProperties properties;
    properties.requires_ = TraceProperties::HasRegions;
    return properties;
  }

protected:
  llvm::Expected<PassResult> runOnTrace(Trace &trace, Side, DiagnosticList &) override {
    for (OpId id : trace.ops()) {
      const Op &op = trace.op(id);
      if (!op.domain())
        continue;
      unsigned launches = 0;
      for (OpId inner : trace.ops(op.bodies().front()))
        launches += trace.op(inner).spec().launches;
      llvm::outs() << "region " << *op.attribute("region") << ": " << launches << " launches, "
                   << op.operands().size() << " inputs, " << op.results().size() << " results\n";
    }
    return PassResult::Unchanged;
  }
};

} // namespace

static llvm::Error compile() {
  OpRegistry registry;
  if (llvm::Error error = registerCoreOps(registry))
    return error;
  if (llvm::Error error = registerSwish(registry))
    return error;

  TraceBuilder b(registry, "infer");
  ValueId x = b.argument("x", TensorType(DType::F32, {16, 64}));
  ValueId w = b.argument("w", TensorType(DType::F32, {64, 64}), ValueTags::Parameter);
  ValueId h = b.op("acme.swish", {b.op("mm", {x, w})}, {{"beta", 1.5}});
  ValueId c = b.op("cumsum", {h}, {{"dim", 0}});
  b.returnValues({b.op("relu", {b.op("mm", {c, w})})});
  llvm::Expected<Trace> trace = std::move(b).finish();
  if (!trace)
    return trace.takeError();

  AcmeExecutor executor;
  PassManager manager;
  manager.add(createDeadCodeEliminationPass())
      .add(createExecutionTransform({&executor}))
      .add(std::make_unique<CUDAGraphTransform>())
      .add(std::make_unique<CountLaunches>())
      .add(createDelPass());
  llvm::Expected<TracePair> pair = manager.run(TracePair(std::move(*trace)));
  if (!pair)
    return pair.takeError();
  print(*pair, llvm::outs());
  return llvm::Error::success();
}

int main() {
  if (llvm::Error error = compile()) {
    llvm::logAllUnhandledErrors(std::move(error), llvm::errs());
    return 1;
  }
  return 0;
}
