//===- PointwiseBackwardKernels.cpp - Gradients of pointwise ops ----------===//

#include "Pointwise.h"

using namespace rondo;
using namespace rondo::cuda;

static llvm::Expected<CUDAKernelFn> makeGeluBackward(const OpContext &op) {
  if (op.stringAttribute("approximate") == "tanh")
    return makePointwise(op, {"gelu_backward", pointwise::geluTanhBackward()});
  return makePointwise(op, {"gelu_backward", pointwise::geluErfBackward()});
}

void cuda::addPointwiseBackwardKernels(CUDAExecutor &executor) {
  addPointwise(
      executor,
      {"threshold_backward", pointwise::thresholdBackward(), {.parameters = {"threshold"}}});
  addPointwise(executor,
               {"leaky_relu_backward", pointwise::leakyReluBackward(), {.parameters = {"slope"}}});
  addPointwise(executor, {"silu_backward", pointwise::siluBackward()});
  addPointwise(executor, {"tanh_backward", pointwise::tanhBackward()});
  addPointwise(executor, {"sigmoid_backward", pointwise::sigmoidBackward()});
  addKernel(executor, {.op = "gelu_backward", .make = makeGeluBackward, .isElementwise = true});
}
