//===- NormalizationKernels.cpp - Layer and RMS norm ----------------------===//
//
// Each result is rounded once to its dtype, the statistics to theirs (f32 for 16-bit inputs). The
// backwards use the statistics that they are given. Formulas: Ba et al., "Layer Normalization",
// 2016, and Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
//
// Batch norm has no kernel.
//
//===----------------------------------------------------------------------===//

#include "NormalizationDevice.h"
#include "RowSet.h"

using namespace rondo;
using namespace rondo::cuda;

namespace {

/// The sizes of a normalised tensor: of its leading dimensions and of the last ones, which are
/// normalised together.
struct NormShape {
  unsigned numDims;
  llvm::SmallVector<int64_t, 5> rows, row;

  NormShape(const OpContext &op, unsigned x)
      : numDims(op.dimsAttribute("normalized_shape").size()) {
    llvm::SmallVector<int64_t, 5> shape = constantDims(op.tensor(x)->shape);
    rows.assign(shape.begin(), shape.end() - numDims);
    row.assign(shape.end() - numDims, shape.end());
  }
  RowTensor tensor(const TensorType &type) const { return {TensorSizes(type), numDims}; }
  /// One element for each row.
  RowTensor statistic(const TensorType &type) const {
    TensorSizes sizes(type);
    llvm::ArrayRef<int64_t> strides = sizes.strides;
    return RowTensor::ofRows(type.dtype, strides.drop_back(numDims));
  }
  /// One element for each position; null: none.
  static RowTensor parameter(const TensorType *type) {
    return type ? RowTensor::ofPositions(type->dtype, TensorSizes(*type).strides) : RowTensor();
  }
};

} // namespace

static void *addressOf(const TypedArgs &args, unsigned operand) {
  return args.has(operand) ? args.operand(operand).data : nullptr;
}

static llvm::Expected<CUDAKernelFn> makeForward(const OpContext &op, bool isCentred) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  using P = NormParams;
  NormShape shape(op, 0);
  ComputeType compute = computeType(op.tensor(0)->dtype);
  auto result = [&](unsigned i) -> const TensorType & { return *op.results()[i]->asTensor(); };
  std::array<RowTensor, P::NumTensors> tensors;
  tensors[P::X] = shape.tensor(*op.tensor(0));
  tensors[P::Out] = shape.tensor(result(0));
  tensors[P::W] = NormShape::parameter(op.tensor(1));
  if (isCentred) {
    tensors[P::B] = NormShape::parameter(op.tensor(2));
    tensors[P::Mean] = shape.statistic(result(1));
  }
  tensors[P::Rstd] = shape.statistic(result(isCentred ? 2 : 1));
  auto rows = makeRowSet<P::NumTensors>(shape.rows, shape.row, tensors, compute,
                                        {P::X, P::Out, P::W, P::B});
  if (!rows)
    return rows.takeError();
  P params;
  params.isCentred = isCentred;
  params.eps = op.numberAttribute("eps");
  CUDAKernelFn kernel;
  kernel.functions = {{norm::forward(compute)}};
  kernel.enqueue = [rows = *rows, params](const CUDAWork &work, const TypedArgs &args) {
    P run = params;
    void *b = run.isCentred ? addressOf(args, 2) : nullptr;
    void *mean = run.isCentred ? args.result(1).data : nullptr;
    run.set = rows.at({args.operand(0).data, args.result(0).data, addressOf(args, 1), b, mean,
                       args.result(run.isCentred ? 2 : 1).data},
                      {P::X, P::Out, P::W, P::B});
    return run.set.rows.count == 0 ? llvm::Error::success() : work.launch(0, rows.grid(), run);
  };
  return kernel;
}

namespace {

/// A backward with concrete types. Gradients are results in this order, without those whose mask is
/// false.
struct NormBackward {
  using P = NormBackwardParams;
  RowSetTypes<P::NumTensors> rows;
  NormParameterParams parameters;
  bool isCentred = false;
  std::array<bool, 3> mask = {}; ///< x, w, b

  bool wantsParameters() const { return mask[1] || mask[2]; }
  llvm::Error enqueue(const CUDAWork &work, const TypedArgs &args) const;
  llvm::Error enqueueParameters(const CUDAWork &work, const NormParameterParams &run) const;
};

} // namespace

llvm::Error NormBackward::enqueueParameters(const CUDAWork &work,
                                            const NormParameterParams &run) const {
  int64_t positions = run.set.row.count;
  if (positions == 0)
    return llvm::Error::success();
  uint32_t groups = blocksFor(positions, normColumns);
  if (llvm::Error error =
          work.launch(1, {{groups, uint32_t(run.splits), 1}, {rowBlock, 1, 1}, 0}, run))
    return error;
  if (run.splits == 1)
    return llvm::Error::success();
  return work.launch(2, {{groups, 1, 1}, {rowBlock, 1, 1}, 0}, run);
}

llvm::Error NormBackward::enqueue(const CUDAWork &work, const TypedArgs &args) const {
  std::array<void *, 3> gradients = {};
  unsigned result = 0;
  for (unsigned i = 0; i < mask.size(); ++i)
    if (mask[i])
      gradients[i] = args.result(result++).data;
  unsigned rstd = isCentred ? 3 : 2;
  void *mean = isCentred ? args.operand(2).data : nullptr;
  NormBackwardParams run;
  run.isCentred = isCentred;
  run.set = rows.at({args.operand(0).data, args.operand(1).data, mean, args.operand(rstd).data,
                     addressOf(args, rstd + 1), gradients[0]},
                    {P::Grad, P::X, P::W, P::GradX});
  if (mask[0] && run.set.rows.count != 0 && run.set.row.count != 0)
    if (llvm::Error error = work.launch(0, rows.grid(), run))
      return error;
  if (!wantsParameters())
    return llvm::Error::success();
  NormParameterParams sums = parameters;
  sums.set = run.set;
  sums.gradW = gradients[1];
  sums.gradB = gradients[2];
  sums.partials = sums.splits > 1 ? args.workspace() : nullptr;
  return enqueueParameters(work, sums);
}

/// Blocks for which there is enough work that they keep any GPU busy.
static constexpr int64_t manyBlocks = 1024;

/// The gradients of w and b, which `shape` has the sizes of; null: not wanted.
static llvm::Expected<NormParameterParams>
makeParameters(const NormShape &shape, const TensorType *w, const TensorType *b, int64_t rows) {
  NormParameterParams params;
  llvm::SmallVector<int64_t, 5> none(shape.row.size(), 0);
  llvm::SmallVector<int64_t, 5> wStrides = w ? TensorSizes(*w).strides : none;
  llvm::SmallVector<int64_t, 5> bStrides = b ? TensorSizes(*b).strides : none;
  llvm::Expected<Layout<2>> layout = makeLayout<2>(shape.row, {wStrides, bStrides});
  if (!layout)
    return layout.takeError();
  params.gradients = *layout;
  if (w)
    params.wType = elementType(w->dtype);
  if (b)
    params.bType = elementType(b->dtype);
  int64_t groups = (layout->count + normColumns - 1) / normColumns;
  int64_t lanes = rowBlock / normColumns;
  params.splits =
      std::max<int64_t>(std::min(manyBlocks / std::max<int64_t>(groups, 1), rows / (lanes * 4)), 1);
  params.chunk = (rows + params.splits - 1) / params.splits;
  return params;
}

static llvm::Expected<CUDAKernelFn> makeBackward(const OpContext &op, bool isCentred) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  using P = NormBackwardParams;
  NormShape shape(op, 1);
  ComputeType compute = computeType(op.tensor(1)->dtype);
  if (op.tensor(0)->dtype == DType::F64)
    compute = ComputeType::F64;
  NormBackward norm;
  norm.isCentred = isCentred;
  std::array<const TensorType *, 3> gradients = {};
  unsigned result = 0;
  const Attribute::List &mask = *op.attribute("mask")->asList();
  for (unsigned i = 0; i < mask.size(); ++i)
    if ((norm.mask[i] = *mask[i].asBool()))
      gradients[i] = op.results()[result++]->asTensor();
  unsigned rstd = isCentred ? 3 : 2;
  std::array<RowTensor, P::NumTensors> tensors;
  tensors[P::Grad] = shape.tensor(*op.tensor(0));
  tensors[P::X] = shape.tensor(*op.tensor(1));
  if (isCentred)
    tensors[P::Mean] = shape.statistic(*op.tensor(2));
  tensors[P::Rstd] = shape.statistic(*op.tensor(rstd));
  tensors[P::W] = NormShape::parameter(op.tensor(rstd + 1));
  if (gradients[0])
    tensors[P::GradX] = shape.tensor(*gradients[0]);
  auto rows = makeRowSet<P::NumTensors>(shape.rows, shape.row, tensors, compute,
                                        {P::Grad, P::X, P::W, P::GradX}, P::X);
  if (!rows)
    return rows.takeError();
  norm.rows = *rows;
  auto parameters = makeParameters(shape, gradients[1], gradients[2], rows->set.rows.count);
  if (!parameters)
    return parameters.takeError();
  norm.parameters = *parameters;
  const auto &types = rows->set.types;
  DType statistics = compute == ComputeType::F64 ? DType::F64 : DType::F32;
  norm.parameters.isPlain = types[P::Grad] == types[P::X] && isVectorType(compute, types[P::X]) &&
                            types[P::Rstd] == elementType(statistics) &&
                            (!isCentred || types[P::Mean] == types[P::Rstd]);
  CUDAKernelFn kernel;
  kernel.functions = {{norm::backward(compute)},
                      {norm::parameterGradients(compute)},
                      {norm::finishParameterGradients(compute)}};
  if (norm.wantsParameters() && parameters->splits > 1)
    kernel.workspaceBytes = parameters->splits * 2 * rows->set.row.count * sizeof(double);
  kernel.enqueue = [norm](const CUDAWork &work, const TypedArgs &args) {
    return norm.enqueue(work, args);
  };
  return kernel;
}

void cuda::addNormalizationKernels(CUDAExecutor &executor) {
  for (bool isCentred : {false, true}) {
    std::string name = isCentred ? "layer_norm" : "rms_norm";
    addKernel(executor, {.op = name, .make = [isCentred](const OpContext &op) {
                           return makeForward(op, isCentred);
                         }});
    addKernel(executor, {.op = name + "_backward", .make = [isCentred](const OpContext &op) {
                           return makeBackward(op, isCentred);
                         }});
  }
}
