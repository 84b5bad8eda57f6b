//===- LossKernels.cpp - Losses and their gradients -----------------------===//
//
// Scores are [outer, classes, inner] around the dimension of classes (1, or 0 of a vector); targets
// are [outer, inner]. Sums over targets are made in double, by each block of its rows and then of
// all blocks, and rounded once.
//
// A target class that is out of range and is not `ignore_index` makes its loss, and with it a sum
// or mean, nan, and adds nothing to a gradient.
//
// A loss of classes is -sum(c[k] * logp[k]) over the classes k. The coefficients c are, for a
// target that names class t, w[t] at t and 0 elsewhere; for one that gives probabilities p,
// w[k] * p[k]. Label smoothing takes (1 - s) times that and adds w[k] * s / classes. A term whose
// coefficient is 0 is 0 whatever logp is. "mean" divides by the sum of w[t] of the targets that
// count, or, for probabilities, by the number of targets (Szegedy et al., "Rethinking the Inception
// Architecture", 2016, for smoothing; PyTorch for the divisors).
//
//===----------------------------------------------------------------------===//

#include "LossDevice.h"
#include "RowSet.h"

using namespace rondo;
using namespace rondo::cuda;

static LossReduction reductionOf(const OpContext &op) {
  llvm::StringRef name = op.stringAttribute("reduction");
  return name == "none"  ? LossReduction::None
         : name == "sum" ? LossReduction::Sum
                         : LossReduction::Mean;
}

/// F64 if one of the dtypes is f64.
static ComputeType computeTypeOf(std::initializer_list<DType> dtypes) {
  return llvm::is_contained(dtypes, DType::F64) ? ComputeType::F64 : ComputeType::F32;
}

static uint32_t lossBlocks(int64_t count, int64_t perBlock) {
  return std::min<uint32_t>(blocksFor(count, perBlock), maxLossBlocks);
}

static llvm::Error finishLoss(const CUDAWork &work, unsigned function,
                              const LossFinishParams &params) {
  return work.launch(function, {{1, 1, 1}, {rowBlock, 1, 1}, 0}, params);
}

//===----------------------------------------------------------------------===//
// Losses of classes
//===----------------------------------------------------------------------===//

namespace {

/// A loss of classes or its gradient, with concrete types.
struct ClassLoss {
  using P = ClassLossParams;
  RowSetTypes<P::NumTensors> rows;
  P params;
  ComputeType compute = ComputeType::F32;
  DType lossType = DType::F32;

  bool isReduced() const { return params.reduction != LossReduction::None; }
  /// Does the backward need the divisor of a mean to be made?
  bool countsTargets() const {
    return params.takesLogits && !params.givesProbabilities &&
           params.reduction == LossReduction::Mean;
  }
  /// With the operands from `first`: scores, target, weight.
  P at(const TypedArgs &args, unsigned first, void *result, void *grad) const;
  llvm::Error enqueueForward(const CUDAWork &work, const TypedArgs &args) const;
  llvm::Error enqueueBackward(const CUDAWork &work, const TypedArgs &args) const;

  static llvm::Expected<ClassLoss> get(const OpContext &op, unsigned first, bool takesLogits);
};

} // namespace

ClassLossParams ClassLoss::at(const TypedArgs &args, unsigned first, void *result,
                              void *grad) const {
  P run = params;
  void *weight = args.has(first + 2) ? args.operand(first + 2).data : nullptr;
  llvm::SmallVector<unsigned, 4> vectors = {P::Scores, P::Weight};
  if (params.givesProbabilities)
    vectors.push_back(P::Target);
  if (first == 1)
    vectors.push_back(P::Result);
  run.set = rows.at({args.operand(first).data, args.operand(first + 1).data, weight, result, grad},
                    vectors);
  run.totals = static_cast<LossTotals *>(args.workspace());
  return run;
}

llvm::Error ClassLoss::enqueueForward(const CUDAWork &work, const TypedArgs &args) const {
  P run = at(args, 0, args.result(0).data, nullptr);
  CUDAGrid grid = rows.grid();
  grid.grid.x = run.numTotals = lossBlocks(run.set.rows.count, run.set.lanes.rows());
  if (llvm::Error error = work.launch(0, grid, run))
    return error;
  LossFinishParams finish;
  finish.totals = run.totals;
  finish.numTotals = run.numTotals;
  finish.isMean = params.reduction == LossReduction::Mean;
  finish.lossType = finish.divisorType = elementType(lossType);
  if (isReduced())
    finish.loss = args.result(0).data;
  if (args.numResults() > 1)
    finish.divisor = args.result(1).data;
  return finish.loss || finish.divisor ? finishLoss(work, 1, finish) : llvm::Error::success();
}

llvm::Error ClassLoss::enqueueBackward(const CUDAWork &work, const TypedArgs &args) const {
  P run = at(args, 1, args.result(0).data, args.operand(0).data);
  if (run.set.rows.count == 0 || run.set.row.count == 0)
    return llvm::Error::success();
  if (!params.takesLogits)
    run.totalWeight = args.operand(4).data;
  if (countsTargets()) {
    run.numTotals = std::min<uint32_t>(blocksFor(run.set.rows.count, rowBlock), rowBlock);
    CUDAGrid grid{{uint32_t(run.numTotals), 1, 1}, {rowBlock, 1, 1}, 0};
    if (llvm::Error error = work.launch(1, grid, run))
      return error;
  }
  return work.launch(0, rows.grid(), run);
}

llvm::Expected<ClassLoss> ClassLoss::get(const OpContext &op, unsigned first, bool takesLogits) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  bool isBackward = first == 1;
  TensorSizes scores(*op.tensor(first)), target(*op.tensor(first + 1)),
      result(*op.results()[0]->asTensor());
  ClassLoss loss;
  P &params = loss.params;
  params.reduction = reductionOf(op);
  params.takesLogits = takesLogits;
  params.givesProbabilities = isFloat(target.dtype);
  params.ignoreIndex = op.intAttribute("ignore_index");
  params.smoothing = op.numberAttribute("label_smoothing");
  loss.lossType = result.dtype;

  unsigned classDim = scores.rank() > 1 ? 1 : 0;
  llvm::SmallVector<int64_t, 5> rows = scores.shape;
  llvm::SmallVector<int64_t, 5> row = {rows[classDim]};
  rows.erase(rows.begin() + classDim);
  auto perRow = [&](const TensorSizes &tensor) { // or one element for all
    return RowTensor::ofRows(tensor.dtype, tensor.broadcastTo(rows));
  };
  std::array<RowTensor, P::NumTensors> tensors;
  llvm::SmallVector<unsigned, 4> vectors = {P::Scores, P::Weight};
  tensors[P::Scores] = RowTensor::alongDim(scores, classDim);
  if (params.givesProbabilities) {
    tensors[P::Target] = RowTensor::alongDim(target, classDim);
    vectors.push_back(P::Target);
  } else {
    tensors[P::Target] = perRow(target);
  }
  if (const TensorType *weight = op.tensor(first + 2))
    tensors[P::Weight] = RowTensor::ofPositions(weight->dtype, TensorSizes(*weight).strides);
  loss.compute = computeTypeOf({scores.dtype, target.dtype});
  if (isBackward) {
    tensors[P::Result] = RowTensor::alongDim(result, classDim);
    vectors.push_back(P::Result);
    TensorSizes grad(*op.tensor(0));
    tensors[P::Grad] = perRow(grad);
    loss.compute = computeTypeOf({scores.dtype, target.dtype, grad.dtype});
    if (!takesLogits)
      params.totalWeightType = elementType(op.tensor(4)->dtype);
  } else {
    tensors[P::Result] = perRow(result);
  }
  auto set = makeRowSet<P::NumTensors>(rows, row, tensors, loss.compute, vectors);
  if (!set)
    return set.takeError();
  loss.rows = *set;
  return loss;
}

static llvm::Expected<CUDAKernelFn> makeClassLoss(const OpContext &op, bool takesLogits) {
  llvm::Expected<ClassLoss> loss = ClassLoss::get(op, 0, takesLogits);
  if (!loss)
    return loss.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{loss::ofClasses(loss->compute)}, {loss::finish()}};
  kernel.workspaceBytes = maxLossBlocks * sizeof(LossTotals);
  kernel.enqueue = [loss = *loss](const CUDAWork &work, const TypedArgs &args) {
    return loss.enqueueForward(work, args);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeClassLossBackward(const OpContext &op, bool takesLogits) {
  llvm::Expected<ClassLoss> loss = ClassLoss::get(op, 1, takesLogits);
  if (!loss)
    return loss.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{loss::ofClassesBackward(loss->compute)}, {loss::countTargets()}};
  if (loss->countsTargets())
    kernel.workspaceBytes = rowBlock * sizeof(LossTotals);
  kernel.enqueue = [loss = *loss](const CUDAWork &work, const TypedArgs &args) {
    return loss.enqueueBackward(work, args);
  };
  return kernel;
}

//===----------------------------------------------------------------------===//
// Squared differences
//===----------------------------------------------------------------------===//

static llvm::SmallVector<int64_t, 5> broadcastShape(const TensorSizes &a, const TensorSizes &b) {
  const TensorSizes &longer = a.rank() >= b.rank() ? a : b, &shorter = a.rank() >= b.rank() ? b : a;
  llvm::SmallVector<int64_t, 5> shape = longer.shape;
  size_t added = longer.rank() - shorter.rank();
  for (size_t d = 0; d < shorter.rank(); ++d)
    if (shorter.shape[d] != 1)
      shape[added + d] = shorter.shape[d];
  return shape;
}

static llvm::Error enqueueMSELoss(const MSELossParams &params, LossReduction reduction,
                                  const CUDAWork &work, const TypedArgs &args) {
  bool isReduced = reduction != LossReduction::None;
  int64_t count = params.layout.count;
  if (count == 0 && !isReduced)
    return llvm::Error::success();
  MSELossParams run = params;
  run.x = args.operand(0).data;
  run.target = args.operand(1).data;
  run.totals = static_cast<LossTotals *>(args.workspace());
  run.loss = isReduced ? nullptr : args.result().data;
  // A thread of a sum takes several elements.
  uint32_t blocks = isReduced ? lossBlocks(count, rowBlock * 4) : blocksFor(count, rowBlock);
  if (llvm::Error error = work.launch(0, {{blocks, 1, 1}, {rowBlock, 1, 1}, 0}, run))
    return error;
  if (!isReduced)
    return llvm::Error::success();
  LossFinishParams finish;
  finish.totals = run.totals;
  finish.numTotals = int(blocks);
  finish.isMean = reduction == LossReduction::Mean;
  finish.lossType = params.lossType;
  finish.loss = args.result().data;
  return finishLoss(work, 1, finish);
}

static llvm::Expected<CUDAKernelFn> makeMSELoss(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes x(*op.tensor(0)), target(*op.tensor(1)), out(*op.results()[0]->asTensor());
  LossReduction reduction = reductionOf(op);
  llvm::SmallVector<int64_t, 5> shape = broadcastShape(x, target);
  llvm::SmallVector<int64_t, 5> xStrides = x.broadcastTo(shape),
                                targetStrides = target.broadcastTo(shape),
                                outStrides(shape.size(), 0);
  if (reduction == LossReduction::None)
    outStrides = out.strides;
  auto layout = makeLayout<MSELossParams::NumTensors>(shape, {xStrides, targetStrides, outStrides},
                                                      memoryOrder(xStrides));
  if (!layout)
    return layout.takeError();
  MSELossParams params;
  params.layout = *layout;
  params.xType = elementType(x.dtype);
  params.targetType = elementType(target.dtype);
  params.lossType = elementType(out.dtype);
  CUDAKernelFn kernel;
  kernel.functions = {{loss::meanSquares(computeTypeOf({x.dtype, target.dtype, out.dtype}))},
                      {loss::finish()}};
  if (reduction != LossReduction::None)
    kernel.workspaceBytes = maxLossBlocks * sizeof(LossTotals);
  kernel.enqueue = [params, reduction](const CUDAWork &work, const TypedArgs &args) {
    return enqueueMSELoss(params, reduction, work, args);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeMSELossBackward(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  using P = MSELossBackwardParams;
  TensorSizes grad(*op.tensor(0)), x(*op.tensor(1)), target(*op.tensor(2)),
      result(*op.results()[0]->asTensor());
  llvm::SmallVector<int64_t, 5> gradStrides = grad.broadcastTo(x.shape);
  auto layout = makeLayout<P::NumTensors>(
      x.shape, {gradStrides, x.strides, target.strides, result.strides}, memoryOrder(x.strides));
  if (!layout)
    return layout.takeError();
  P params;
  params.layout = *layout;
  params.types[P::Grad] = elementType(grad.dtype);
  params.types[P::X] = elementType(x.dtype);
  params.types[P::Target] = elementType(target.dtype);
  params.types[P::Result] = elementType(result.dtype);
  if (reductionOf(op) == LossReduction::Mean)
    params.factor = 2 / double(layout->count);
  CUDAKernelFn kernel;
  kernel.functions = {
      {loss::meanSquaresBackward(computeTypeOf({grad.dtype, x.dtype, target.dtype}))}};
  kernel.enqueue = [params](const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
    if (params.layout.count == 0)
      return llvm::Error::success();
    P run = params;
    for (unsigned k = 0; k < P::Result; ++k)
      run.data[k] = args.operand(k).data;
    run.result = args.result().data;
    return work.launch(0, {{blocksFor(run.layout.count, rowBlock), 1, 1}, {rowBlock, 1, 1}, 0},
                       run);
  };
  return kernel;
}

void cuda::addLossKernels(CUDAExecutor &executor) {
  for (bool takesLogits : {false, true}) {
    std::string name = takesLogits ? "cross_entropy" : "nll_loss";
    addKernel(executor, {.op = name, .make = [takesLogits](const OpContext &op) {
                           return makeClassLoss(op, takesLogits);
                         }});
    addKernel(executor, {.op = name + "_backward", .make = [takesLogits](const OpContext &op) {
                           return makeClassLossBackward(op, takesLogits);
                         }});
  }
  addKernel(executor, {.op = "mse_loss", .make = makeMSELoss});
  addKernel(executor, {.op = "mse_loss_backward", .make = makeMSELossBackward});
}
