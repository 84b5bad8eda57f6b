//===- ReductionKernels.cpp - Reductions and running sums -----------------===//
//
// Sums and extrema are computed in the type of their elements, what else there is in double; each
// result is rounded once. Integers are added and multiplied modulo 2^64.
//
//===----------------------------------------------------------------------===//

#include "ReductionDevice.h"
#include "RowSet.h"

#include <cmath>

using namespace rondo;
using namespace rondo::cuda;

namespace {

/// How an op reduces.
struct ReductionSpec {
  ReductionKernels kernels;
  ComputeType compute = ComputeType::F32; ///< what elements are loaded as
  DType as = DType::F32;                  ///< what they are rounded to before
  ReductionOptions options = {};
  bool keepsOrder = false; ///< elements are numbered in row-major order
};

} // namespace

/// Blocks for which there is enough work that they keep any GPU busy.
static constexpr int64_t manyBlocks = 1024;

/// Shares the elements of a result among blocks where there are few results.
static void chooseSplits(ReductionParams &params) {
  int64_t groups = (params.kept.count + params.lanes.rows() - 1) / params.lanes.rows();
  int64_t elements = params.reduced.count, worthwhile = int64_t(params.lanes.count) * 16;
  int64_t splits = std::min(
      {manyBlocks / std::max<int64_t>(groups, 1), elements / worthwhile, maxReductionSplits});
  splits = std::max<int64_t>(splits, 1);
  int64_t chunk = (elements + splits - 1) / splits;
  params.chunk = std::max<int64_t>((chunk + 15) / 16 * 16, 16); // a multiple of any vector
  params.splits = std::max<int64_t>((elements + params.chunk - 1) / params.chunk, 1);
  params.finishLanes = params.kept.count >= 32 ? Lanes::acrossRows(params.kept.count)
                                               : Lanes::alongRow(params.splits);
}

/// Dense rows, whose starts are multiples of 16 bytes from each other?
static bool canBeVector(const ReductionParams &params, ComputeType compute, DType dtype) {
  int64_t vector = 16 / int64_t(dtypeSize(dtype));
  bool canBe = isReductionVectorType(compute, params.xType) && params.as == params.xType &&
               params.lanes.adjacent && params.reduced.rank == 1 &&
               params.reduced.strides[0][0] == 1;
  for (int d = 0; d < params.kept.rank; ++d)
    canBe &= params.kept.strides[0][d] % vector == 0;
  return canBe;
}

static llvm::Expected<ReductionParams> makeParams(const OpContext &op, const ReductionSpec &spec) {
  TensorSizes x(*op.tensor(0)), out(*op.results()[0]->asTensor());
  ReducedDims dims = ReducedDims::get(op);
  llvm::SmallVector<int64_t, 5> reducedShape, reducedStrides, keptShape, keptStrides, outStrides;
  for (unsigned d : dims.reduced) {
    reducedShape.push_back(x.shape[d]);
    reducedStrides.push_back(x.strides[d]);
  }
  for (unsigned i = 0; i < dims.kept.size(); ++i) {
    unsigned d = dims.kept[i];
    keptShape.push_back(x.shape[d]);
    keptStrides.push_back(x.strides[d]);
    outStrides.push_back(out.strides[dims.keepdim ? d : i]);
  }
  llvm::SmallVector<unsigned, 5> order;
  if (!spec.keepsOrder)
    order = memoryOrder(reducedStrides);
  llvm::Expected<Layout<1>> reduced = makeLayout<1>(reducedShape, {reducedStrides}, order);
  if (!reduced)
    return reduced.takeError();
  llvm::Expected<Layout<2>> kept =
      makeLayout<2>(keptShape, {keptStrides, outStrides}, memoryOrder(keptStrides));
  if (!kept)
    return kept.takeError();
  ReductionParams params;
  params.reduced = *reduced;
  params.kept = *kept;
  params.xType = elementType(x.dtype);
  params.as = elementType(isExactCast(x.dtype, spec.as) ? x.dtype : spec.as);
  params.outType = elementType(out.dtype);
  params.options = spec.options;
  params.options.count = reduced->count;
  int64_t betweenResults = kept->strides[0][kept->rank - 1];
  int64_t betweenElements = reduced->strides[0][reduced->rank - 1];
  bool isAcross = kept->count > 1 && (reduced->count <= 1 || betweenResults < betweenElements);
  params.lanes = isAcross ? Lanes::acrossRows(kept->count) : Lanes::alongRow(reduced->count);
  chooseSplits(params);
  params.isVector = canBeVector(params, spec.compute, x.dtype);
  return params;
}

static llvm::Error enqueueReduction(const ReductionParams &params, const CUDAWork &work,
                                    const TypedArgs &args) {
  if (params.kept.count == 0)
    return llvm::Error::success();
  ReductionParams run = params;
  run.x = args.operand(0).data;
  run.out = args.result().data;
  run.isVector &= reinterpret_cast<uintptr_t>(run.x) % 16 == 0;
  run.partials = params.splits > 1 ? args.workspace() : nullptr;
  uint32_t groups = blocksFor(params.kept.count, params.lanes.rows());
  if (llvm::Error error =
          work.launch(0, {{groups, uint32_t(params.splits), 1}, {rowBlock, 1, 1}, 0}, run))
    return error;
  if (params.splits == 1)
    return llvm::Error::success();
  groups = blocksFor(params.kept.count, params.finishLanes.rows());
  return work.launch(1, {{groups, 1, 1}, {rowBlock, 1, 1}, 0}, run);
}

static llvm::Expected<CUDAKernelFn> makeReduction(const OpContext &op, const ReductionSpec &spec) {
  llvm::Expected<ReductionParams> params = makeParams(op, spec);
  if (!params)
    return params.takeError();
  CUDAKernelFn kernel;
  kernel.functions = {{spec.kernels.reduce}, {spec.kernels.finish}};
  if (params->splits > 1)
    kernel.workspaceBytes = params->splits * params->kept.count * reductionStateBytes;
  kernel.enqueue = [params = *params](const CUDAWork &work, const TypedArgs &args) {
    return enqueueReduction(params, work, args);
  };
  return kernel;
}

static DType resultDType(const OpContext &op) {
  return op.results()[0]->asTensor()->dtype;
}
static DType operandDType(const OpContext &op) {
  return op.tensor(0)->dtype;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Elements are rounded to the result's dtype before they are added, as by a cast.
static llvm::Expected<CUDAKernelFn> makeSum(const OpContext &op, bool isMean) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  DType as = resultDType(op);
  ComputeType compute = computeType(as);
  ReductionSpec spec{reduction::sum(compute), compute, as};
  spec.options.isMean = isMean;
  return makeReduction(op, spec);
}

/// In double, which intermediate products of f32 do not leave.
static llvm::Expected<CUDAKernelFn> makeProd(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  DType as = resultDType(op);
  ComputeType compute = isFloat(as) ? ComputeType::F64 : ComputeType::I64;
  return makeReduction(op, {reduction::prod(compute), compute, as});
}

/// nan where there are no more elements than `correction` and no deviation.
static llvm::Expected<CUDAKernelFn> makeVar(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  ReductionSpec spec{reduction::var(), ComputeType::F64, DType::F64};
  spec.options.correction = op.numberAttribute("correction", 1);
  return makeReduction(op, spec);
}

static NormKind normKind(double p) {
  if (std::isinf(p))
    return p > 0 ? NormKind::Greatest : NormKind::Least;
  return p == 0   ? NormKind::NonZeros
         : p == 1 ? NormKind::Absolute
         : p == 2 ? NormKind::Euclidean
                  : NormKind::Power;
}

/// Norms of infinite p are the greatest and the least |x|; of p = 0 the number of non-zeros.
static llvm::Expected<CUDAKernelFn> makeNorm(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  ReductionSpec spec{reduction::norm(), ComputeType::F64, DType::F64};
  spec.options.power = op.numberAttribute("p", 2);
  spec.options.norm = normKind(spec.options.power);
  return makeReduction(op, spec);
}

/// Shifted by the greatest element, so that nothing overflows: log(sum exp(x - max)) + max.
static llvm::Expected<CUDAKernelFn> makeLogSumExp(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  bool isF32 = computeType(operandDType(op)) == ComputeType::F32;
  ComputeType compute = isF32 ? ComputeType::F32 : ComputeType::F64;
  return makeReduction(op,
                       {reduction::logSumExp(compute), compute, isF32 ? DType::F32 : DType::F64});
}

//===----------------------------------------------------------------------===//
// Extrema and truth
//===----------------------------------------------------------------------===//

/// There must be elements to choose from wherever there is a result.
static llvm::Error checkExtremum(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  auto isZero = [](const Dim &size) { return size.isConstant(0); };
  if (llvm::any_of(op.tensor(0)->shape, isZero) &&
      llvm::none_of(op.results()[0]->asTensor()->shape, isZero))
    return makeError("expects at least one element to choose from, got " + op.operand(0)->str());
  return llvm::Error::success();
}

/// The value of the extremum, or its position among the elements.
static llvm::Expected<CUDAKernelFn> makeExtremum(const OpContext &op, bool isGreatest,
                                                 bool wantsIndex) {
  if (llvm::Error error = checkExtremum(op))
    return error;
  DType as = operandDType(op);
  ComputeType compute = computeType(as);
  ReductionSpec spec{wantsIndex ? reduction::argExtremum(compute) : reduction::extremum(compute),
                     compute, as};
  spec.keepsOrder = wantsIndex;
  spec.options.isGreatest = isGreatest;
  spec.options.initialInteger =
      isGreatest ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  double infinity = std::numeric_limits<double>::infinity();
  spec.options.initialFloat = isGreatest ? -infinity : infinity;
  return makeReduction(op, spec);
}

/// The least or the greatest of 0 and 1.
static llvm::Expected<CUDAKernelFn> makeTruth(const OpContext &op, bool isAll) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  ReductionSpec spec{reduction::extremum(ComputeType::I64), ComputeType::I64, DType::Bool};
  spec.options.isGreatest = !isAll;
  spec.options.initialInteger = isAll;
  return makeReduction(op, spec);
}

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

namespace {

struct Cumsum {
  CumsumParams params;
  bool isPerThread = false;

  llvm::Error enqueue(const CUDAWork &work, const TypedArgs &args) const;
};

} // namespace

llvm::Error Cumsum::enqueue(const CUDAWork &work, const TypedArgs &args) const {
  int64_t lines = params.lines.count;
  if (lines == 0 || params.length == 0)
    return llvm::Error::success();
  CumsumParams run = params;
  run.x = args.operand(0).data;
  run.out = args.result().data;
  if (isPerThread)
    return work.launch(0, {{blocksFor(lines, rowBlock), 1, 1}, {rowBlock, 1, 1}, 0}, run);
  CUDAGrid grid{{blocksFor(lines, 1), uint32_t(params.chunks), 1}, {rowBlock, 1, 1}, 0};
  if (params.chunks > 1) {
    run.totals = args.workspace();
    if (llvm::Error error = work.launch(1, grid, run))
      return error;
  }
  return work.launch(0, grid, run);
}

static llvm::Expected<CUDAKernelFn> makeCumsum(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  TensorSizes x(*op.tensor(0)), out(*op.results()[0]->asTensor());
  int64_t dim = op.intAttribute("dim");
  unsigned at = dim < 0 ? dim + std::max(x.rank(), 1U) : dim;
  RowTensor from = RowTensor::alongDim(x, at), to = RowTensor::alongDim(out, at);
  llvm::SmallVector<int64_t, 5> lines = x.shape;
  if (x.rank() > 0)
    lines.erase(lines.begin() + at);
  llvm::Expected<Layout<2>> layout =
      makeLayout<2>(lines, {from.rows, to.rows}, memoryOrder(from.rows));
  if (!layout)
    return layout.takeError();
  Cumsum cumsum;
  CumsumParams &params = cumsum.params;
  params.lines = *layout;
  params.length = x.rank() == 0 ? 1 : x.shape[at];
  params.xStride = from.row[0];
  params.outStride = to.row[0];
  params.xType = elementType(x.dtype);
  params.outType = elementType(out.dtype);
  int64_t count = params.lines.count, between = params.lines.strides[0][params.lines.rank - 1];
  cumsum.isPerThread = count >= 4096 && between < params.xStride;
  params.chunks = std::clamp<int64_t>(
      std::min(512 / std::max<int64_t>(count, 1), params.length / 4096), 1, 512);
  params.chunk = (params.length + params.chunks - 1) / params.chunks;
  CUDAKernelFn kernel;
  bool sumsFloats = isFloat(out.dtype);
  if (cumsum.isPerThread)
    kernel.functions = {{reduction::cumsumPerThread(sumsFloats)}};
  else
    kernel.functions = {{reduction::cumsum(sumsFloats)}, {reduction::chunkTotals(sumsFloats)}};
  if (!cumsum.isPerThread && params.chunks > 1)
    kernel.workspaceBytes = count * params.chunks * sizeof(double);
  kernel.enqueue = [cumsum](const CUDAWork &work, const TypedArgs &args) {
    return cumsum.enqueue(work, args);
  };
  return kernel;
}

void cuda::addReductionKernels(CUDAExecutor &executor) {
  for (bool isMean : {false, true})
    addKernel(executor, {.op = isMean ? "mean" : "sum",
                         .make = [isMean](const OpContext &op) { return makeSum(op, isMean); }});
  addKernel(executor, {.op = "prod", .make = makeProd});
  addKernel(executor, {.op = "var", .make = makeVar});
  addKernel(executor, {.op = "norm", .make = makeNorm});
  addKernel(executor, {.op = "logsumexp", .make = makeLogSumExp});
  addKernel(executor, {.op = "cumsum", .make = makeCumsum});
  for (bool isGreatest : {false, true}) {
    addKernel(executor,
              {.op = isGreatest ? "amax" : "amin", .make = [isGreatest](const OpContext &op) {
                 return makeExtremum(op, isGreatest, /*wantsIndex=*/false);
               }});
    addKernel(executor,
              {.op = isGreatest ? "argmax" : "argmin", .make = [isGreatest](const OpContext &op) {
                 return makeExtremum(op, isGreatest, /*wantsIndex=*/true);
               }});
  }
  for (bool isAll : {false, true})
    addKernel(executor, {.op = isAll ? "all" : "any",
                         .make = [isAll](const OpContext &op) { return makeTruth(op, isAll); }});
}
