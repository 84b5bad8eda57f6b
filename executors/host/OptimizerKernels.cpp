//===- OptimizerKernels.cpp - Parameter updates in place ------------------===//
//
// Each element is computed in f64 and each state rounded once when it is stored.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"

#include "rondo/executors/OpNumber.h"

#include <cmath>

using namespace rondo;
using namespace rondo::host;

static double read(const OpNumber &number, const HostArgs &args) {
  const TensorRef *tensor = number.tensor(args);
  return tensor ? toDense<double>(*tensor).front() : number.value(args);
}

/// Operand `i` is there and not 0: the states stay as they are.
static bool isSkipped(const HostArgs &args, unsigned i) {
  return args.has(i) && toDense<double>(args.operand(i)).front() != 0;
}

/// d = grad + weight_decay * param. With a buffer, buffer = momentum * buffer + (1 - dampening) * d
/// and d becomes the buffer or, with nesterov, d + momentum * buffer. param -= lr * d.
static llvm::Expected<HostKernelFn> makeSGD(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  OpNumber lr(op, 3, "lr");
  double momentum = op.numberAttribute("momentum"), dampening = op.numberAttribute("dampening"),
         decay = op.numberAttribute("weight_decay");
  bool nesterov = op.boolAttribute("nesterov");
  return HostKernelFn([=](const HostArgs &args) {
    if (isSkipped(args, 4))
      return;
    double rate = read(lr, args);
    std::vector<double> param = toDense<double>(args.operand(0)),
                        step = toDense<double>(args.operand(1)), buffer;
    if (args.has(2))
      buffer = toDense<double>(args.operand(2));
    for (size_t i = 0; i < param.size(); ++i) {
      step[i] += decay * param[i];
      if (!buffer.empty()) {
        buffer[i] = momentum * buffer[i] + (1 - dampening) * step[i];
        step[i] = nesterov ? step[i] + momentum * buffer[i] : buffer[i];
      }
      param[i] -= rate * step[i];
    }
    fromDense<double>(param, args.result(0));
    if (args.has(2))
      fromDense<double>(buffer, args.result(1));
  });
}

/// Kingma and Ba, "Adam", 2015; `decoupled`: Loshchilov and Hutter, "Decoupled Weight Decay
/// Regularization", 2019. eps is added to the root of the corrected second moment.
static llvm::Expected<HostKernelFn> makeAdam(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  OpNumber stepCount(op, 4), lr(op, 5, "lr");
  double beta1 = op.numberAttribute("beta1"), beta2 = op.numberAttribute("beta2"),
         eps = op.numberAttribute("eps"), decay = op.numberAttribute("weight_decay");
  bool decoupled = op.boolAttribute("decoupled");
  return HostKernelFn([=](const HostArgs &args) {
    if (isSkipped(args, 6))
      return;
    double rate = read(lr, args), step = read(stepCount, args);
    double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
    std::vector<double> param = toDense<double>(args.operand(0)),
                        grad = toDense<double>(args.operand(1)),
                        m = toDense<double>(args.operand(2)), v = toDense<double>(args.operand(3));
    for (size_t i = 0; i < param.size(); ++i) {
      double g = grad[i];
      if (decoupled)
        param[i] *= 1 - rate * decay;
      else
        g += decay * param[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      param[i] -= rate * (m[i] / correction1) / (std::sqrt(v[i] / correction2) + eps);
    }
    fromDense<double>(param, args.result(0));
    fromDense<double>(m, args.result(1));
    fromDense<double>(v, args.result(2));
  });
}

void host::addOptimizerKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "sgd_", .make = makeSGD});
  addKernel(executor, {.op = "adam_", .make = makeAdam});
}
