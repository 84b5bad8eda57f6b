//===- RandomKernels.cpp - Random numbers and their generators ------------===//
//
// Numbers come from their position (rondo/executors/Philox.h), in row-major order of the result.
// RNG states and generators are in memory of the device.
//
//===----------------------------------------------------------------------===//

#include "Pointwise.h"
#include "RandomDevice.h"

#include "rondo/executors/Philox.h"

using namespace rondo;
using namespace rondo::cuda;

static_assert(sizeof(RandomState) == sizeof(RNGState) &&
              offsetof(RandomState, offset) == offsetof(RNGState, offset));

//===----------------------------------------------------------------------===//
// Distributions
//===----------------------------------------------------------------------===//

namespace {

/// An op that draws a number for each element of its result. The state is its last operand, after
/// the one whose elements it reads, if it does; a second result is the mask of what is kept.
struct DrawKernel {
  DrawParams params;
  ComputeType compute = ComputeType::F32;
  bool readsOperand = false, hasMask = false;
  bool canBeDense = false;

  llvm::Error enqueue(const CUDAWork &work, const TypedArgs &args) const;
};

} // namespace

static bool isAligned(const TensorRef &tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) %
             std::min<size_t>(16, dtypeSize(tensor.dtype) * drawVector) ==
         0;
}

static const RandomState *stateOf(const TypedArgs &args, unsigned operand) {
  return reinterpret_cast<const RandomState *>(args.rng(operand));
}

llvm::Error DrawKernel::enqueue(const CUDAWork &work, const TypedArgs &args) const {
  if (params.layout.count == 0)
    return llvm::Error::success();
  DrawParams run = params;
  run.state = stateOf(args, readsOperand ? 1 : 0);
  run.out = args.result().data;
  run.isDense = canBeDense && isAligned(args.result());
  if (readsOperand) {
    run.in = args.operand(0).data;
    run.isDense &= isAligned(args.operand(0));
  }
  if (hasMask) {
    run.mask = args.result(1).data;
    run.isDense &= isAligned(args.result(1));
  }
  // The first block of Philox may have but one number of ours.
  int64_t vectors = (run.layout.count + 2 * (drawVector - 1)) / drawVector;
  return work.launch(0, {{blocksFor(vectors, randomBlock), 1, 1}, {randomBlock, 1, 1}}, run);
}

/// The kernel with what follows from types and from `offset`; `params` has the rest.
static llvm::Expected<CUDAKernelFn> makeDraw(const OpContext &op, const PointwiseKernels &kernels,
                                             DrawParams params, ComputeType compute,
                                             bool readsOperand = false) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  DrawKernel kernel;
  kernel.compute = compute;
  kernel.readsOperand = readsOperand;
  kernel.hasMask = op.results().size() > 1;
  TensorSizes out(*op.results()[0]->asTensor());
  params.offset = uint64_t(op.intAttribute("offset"));
  params.outType = elementType(out.dtype);
  kernel.canBeDense = isVectorType(compute, params.outType);
  llvm::SmallVector<int64_t, 5> in(out.rank(), 0), mask(out.rank(), 0);
  if (readsOperand) {
    TensorSizes operand(*op.tensor(0));
    in = operand.strides;
    params.inType = elementType(operand.dtype);
    kernel.canBeDense &= isVectorType(compute, params.inType);
  }
  if (kernel.hasMask) {
    TensorSizes result(*op.results()[1]->asTensor());
    mask = result.strides;
    params.maskType = elementType(result.dtype);
    kernel.canBeDense &= params.maskType == ElementType::Bool;
  }
  llvm::Expected<Layout<3>> layout = makeLayout<3>(out.shape, {out.strides, in, mask});
  if (!layout)
    return layout.takeError();
  params.layout = *layout;
  kernel.canBeDense &= layout->rank == 1 && layout->strides[0][0] == 1 &&
                       (!readsOperand || layout->strides[1][0] == 1) &&
                       (!kernel.hasMask || layout->strides[2][0] == 1);
  kernel.params = params;
  CUDAKernelFn result;
  result.functions = {{kernels.find(compute)}};
  result.enqueue = [kernel](const CUDAWork &work, const TypedArgs &args) {
    return kernel.enqueue(work, args);
  };
  return result;
}

static DType resultDType(const OpContext &op) {
  return op.results()[0]->asTensor()->dtype;
}

static llvm::Expected<CUDAKernelFn> makeUniform(const OpContext &op) {
  DrawParams params;
  params.a = op.numberAttribute("low", 0);
  params.b = op.numberAttribute("high", 1);
  params.bits = uniformBits(resultDType(op));
  return makeDraw(op, drawing::uniform(), params, computeType(resultDType(op)));
}

static llvm::Expected<CUDAKernelFn> makeNormal(const OpContext &op) {
  DrawParams params;
  params.a = op.numberAttribute("mean", 0);
  params.b = op.numberAttribute("std", 1);
  return makeDraw(op, drawing::normal(), params, computeType(resultDType(op)));
}

static llvm::Expected<CUDAKernelFn> makeRandint(const OpContext &op) {
  DrawParams params;
  params.low = op.intAttribute("low");
  params.count = uint64_t(op.intAttribute("high")) - uint64_t(params.low);
  return makeDraw(op, drawing::integer(), params, ComputeType::I64);
}

static llvm::Expected<CUDAKernelFn> makeBernoulli(const OpContext &op) {
  return makeDraw(op, drawing::bernoulli(), {}, computeType(resultDType(op)),
                  /*readsOperand=*/true);
}

static llvm::Expected<CUDAKernelFn> makeDropout(const OpContext &op) {
  double p = op.numberAttribute("p");
  DrawParams params;
  params.a = 1 / (1 - p);
  params.threshold = philox::threshold(p);
  return makeDraw(op, drawing::dropout(), params, computeType(resultDType(op)),
                  /*readsOperand=*/true);
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// Weights that are negative or not finite count as 0.
static llvm::Expected<CUDAKernelFn> makeMultinomial(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes weights(*op.tensor(0)), out(*op.results()[0]->asTensor());
  if (weights.shape.back() == 0 && out.count() != 0)
    return makeError("expects at least one category to choose, got " + op.operand(0)->str());
  ChoiceParams params;
  params.offset = uint64_t(op.intAttribute("offset"));
  params.type = elementType(weights.dtype);
  params.isReplacing = op.boolAttribute("replacement");
  params.rows = weights.rank() == 2 ? weights.shape[0] : 1;
  params.categories = weights.shape.back();
  params.draws = out.shape.back();
  params.weightStrides[0] = weights.rank() == 2 ? weights.strides[0] : 0;
  params.weightStrides[1] = weights.strides.back();
  params.outStrides[0] = out.rank() == 2 ? out.strides[0] : 0;
  params.outStrides[1] = out.strides.back();
  CUDAKernelFn kernel;
  kernel.functions = {{drawing::choose()}};
  kernel.workspaceBytes = uint64_t(weights.count()) * sizeof(double);
  kernel.enqueue = [params](const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (params.rows == 0 || params.draws == 0)
      return llvm::Error::success();
    ChoiceParams run = params;
    run.state = stateOf(args, 1);
    run.weights = args.operand(0).data;
    run.out = args.result().as<int64_t>();
    run.copy = static_cast<double *>(args.workspace());
    return work.launch(0, {{blocksFor(run.rows, 1), 1, 1}, {choiceBlock, 1, 1}}, run);
  };
  return kernel;
}

//===----------------------------------------------------------------------===//
// Generators
//===----------------------------------------------------------------------===//

static llvm::Expected<CUDAKernelFn> makeGeneratorRead(const OpContext &) {
  CUDAKernelFn kernel;
  kernel.enqueue = [](const CUDAWork &work, const TypedArgs &args) {
    return work.sink().copy(args.rngResult(), args.generator(), sizeof(RNGState));
  };
  return kernel;
}

/// A kernel that changes the generator as `params` say, where `find` fills in what a run gives.
template <typename Find>
static CUDAKernelFn generatorKernel(const GeneratorParams &params, Find find) {
  CUDAKernelFn kernel;
  kernel.functions = {{drawing::setGenerator()}};
  kernel.enqueue = [params, find](const CUDAWork &work, const TypedArgs &args) {
    GeneratorParams run = params;
    run.state = reinterpret_cast<RandomState *>(args.generator());
    find(run, args);
    return work.launch(0, {}, run);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeGeneratorAdvance(const OpContext &op) {
  GeneratorParams params;
  params.count = uint64_t(op.intAttribute("count"));
  return generatorKernel(params, [](GeneratorParams &, const TypedArgs &) {});
}

static llvm::Expected<CUDAKernelFn> makeGeneratorSeed(const OpContext &) {
  GeneratorParams params;
  params.isSeed = true;
  return generatorKernel(params, [](GeneratorParams &run, const TypedArgs &args) {
    run.seed = uint64_t(args.scalar(0).i64);
  });
}

void cuda::addRandomKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "dropout", .make = makeDropout, .isElementwise = true});
  addPointwise(executor, {"dropout_backward",
                          pointwise::dropoutBackward(),
                          {.compute = ComputeRule::First, .parameters = {"scale"}}});
  addKernel(executor, {.op = "uniform", .make = makeUniform});
  addKernel(executor, {.op = "normal", .make = makeNormal});
  addKernel(executor, {.op = "randint", .make = makeRandint});
  addKernel(executor, {.op = "bernoulli", .make = makeBernoulli});
  addKernel(executor, {.op = "multinomial", .make = makeMultinomial});
  addKernel(executor, {.op = "generator_read", .make = makeGeneratorRead});
  addKernel(executor, {.op = "generator_advance", .make = makeGeneratorAdvance});
  addKernel(executor, {.op = "generator_seed", .make = makeGeneratorSeed});
}
