//===- main.cpp - Saying what may be fused ----------------------------------===//
//
// A performance engineer's policy: keep the embedding eager, capture nothing of the loss, and treat
// the batch as copied. Prints which ops are in regions, and why the others are not.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/TraceBuilder.h"
#include "rondo/passes/CUDAGraphTransform.h"
#include "rondo/passes/Explain.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"
#include "rondo/passes/TableClaimSource.h"

using namespace rondo;

namespace {

class MyTransform : public CUDAGraphTransform {
public:
  using CUDAGraphTransform::CUDAGraphTransform;

protected:
  FusionVerdict canFuse(const FusionQuery &query) const override {
    if (query.op.name() == "embedding")
      return deny("the vocabulary is sharded");
    return query.modulePath() != "loss";
  }

  InputPolicy inputPolicy(const InputQuery &query) const override {
    return query.isStatic ? InputPolicy::Static : InputPolicy::Copied;
  }
};

} // namespace

/// tokens -> embedding -> two layers -> loss.
static llvm::Expected<Trace> buildStep(const OpRegistry &registry) {
  TraceBuilder b(registry, "step");
  const auto parameter = [&](llvm::StringRef name, Dims shape) {
    return b.argument(name, TensorType(DType::F32, shape), ValueTags::Parameter);
  };
  ValueId tokens = b.argument("tokens", TensorType(DType::I64, {8}));
  ValueId targets = b.argument("targets", TensorType(DType::I64, {8}));
  ValueId table = parameter("table", {61, 32});
  b.setModulePath("embedding");
  ValueId x = b.op("embedding", {table, tokens});
  for (const char *layer : {"layers.0", "layers.1"}) {
    b.setModulePath(layer);
    x = b.op("gelu", {b.op("linear", {x, parameter("w", {32, 32}), parameter("b", {32})})});
  }
  b.setModulePath("loss");
  ValueId loss = b.op("cross_entropy", {b.op("linear", {x, table}), targets});
  b.returnValues({loss});
  return std::move(b).finish();
}

int main() {
  OpRegistry registry;
  llvm::cantFail(registerCoreOps(registry));
  llvm::Expected<Trace> step = buildStep(registry);
  if (!step) {
    llvm::logAllUnhandledErrors(step.takeError(), llvm::errs());
    return 1;
  }

  TableClaimSource host = makeHostClaimTable(registry);
  PassManager manager;
  manager.add(createExecutionTransform({&host}))
      .add(std::make_unique<MyTransform>())
      .add(createDelPass());
  llvm::Expected<TracePair> pair = manager.run(TracePair(std::move(*step)));
  if (!pair) {
    llvm::logAllUnhandledErrors(pair.takeError(), llvm::errs());
    return 1;
  }
  explain(*pair, llvm::outs());
  return 0;
}
