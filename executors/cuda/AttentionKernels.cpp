//===- AttentionKernels.cpp - Scaled dot-product attention ----------------===//
//
// What it computes is said in executors/host/AttentionKernels.cpp. Kernels for tensor cores are
// taken where dtype and layout allow it and, in a run, every address is a multiple of 16; which of
// the two depends on nothing else.
//
//===----------------------------------------------------------------------===//

#include "AttentionDevice.h"
#include "KernelTypes.h"

#include "rondo/executors/MatrixProduct.h"
#include "rondo/executors/Philox.h"

#include <cmath>

using namespace rondo;
using namespace rondo::cuda;

namespace {

/// Which operand or result of the op a tensor is.
struct Argument {
  AttentionTensor tensor;
  unsigned index;
  bool isResult = false;

  const TensorRef &of(const TypedArgs &args) const {
    return isResult ? args.result(index) : args.operand(index);
  }
};

/// Forward or backward with concrete types.
struct AttentionOp {
  AttentionParams params;
  llvm::SmallVector<Argument, numAttentionTensors> arguments; ///< those that the op has
  unsigned maskOperand = 3;                                   ///< the RNG state is the next one
  bool canUseTensorCores = false; ///< what remains to be asked of a run is alignment
  std::optional<AttentionMaskParams> maskGradient;

  const AttentionMatrix &matrix(AttentionTensor tensor) const { return params.tensors[tensor]; }
  int64_t count(int64_t rows) const { return params.batches.count * rows; }
  /// The parameters of a run, and may it use tensor cores?
  std::pair<AttentionParams, bool> bind(const TypedArgs &args) const;
};

} // namespace

static int64_t tiles(int64_t count) {
  return (count + attentionTile - 1) / attentionTile;
}

static bool isAligned(const TensorRef &tensor, size_t bytes) {
  return reinterpret_cast<uintptr_t>(tensor.data) % bytes == 0;
}

std::pair<AttentionParams, bool> AttentionOp::bind(const TypedArgs &args) const {
  std::pair<AttentionParams, bool> result(params, canUseTensorCores);
  AttentionParams &run = result.first;
  for (const Argument &argument : arguments) {
    const TensorRef &tensor = argument.of(args);
    AttentionMatrix &matrix = run.tensors[argument.tensor];
    matrix.data = tensor.data;
    matrix.isVector &= isAligned(tensor, std::min<size_t>(16, 4 * dtypeSize(tensor.dtype)));
    if (argument.tensor != attentionMask && argument.tensor != attentionSums)
      result.second &= isAligned(tensor, 16);
  }
  if (params.dropThreshold != 0)
    run.rng = reinterpret_cast<const uint64_t *>(args.rng(maskOperand + 1));
  run.delta = args.workspace();
  return result;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// True if a tensor of this shape has one logsumexp for each row of queries: [..., L], padded to
/// [..., at least L], or [..., L, 1].
static bool holdsLogSumExp(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> queries) {
  llvm::ArrayRef<int64_t> batch = queries.drop_back(2);
  int64_t length = queries[batch.size()];
  if (shape.size() == queries.size() - 1)
    return shape.drop_back() == batch && shape.back() >= length;
  return shape.size() == queries.size() && shape.drop_back(2) == batch && shape.back() == 1 &&
         shape[batch.size()] >= length;
}

/// True if rows of the matrices begin at multiples of `count` elements, each next to the one
/// before.
static bool hasRowsOf(const MatrixLayout &matrices, int64_t count) {
  bool isVector =
      matrices.columnStride == 1 && (matrices.rows <= 1 || matrices.rowStride % count == 0);
  for (size_t d = 0; d < matrices.shape.size(); ++d)
    isVector &= matrices.shape[d] <= 1 || matrices.strides[d] % count == 0;
  return isVector;
}

static MatrixLayout matricesOf(const TensorSizes &tensor) {
  return MatrixLayout::ofMatrices(tensor.dtype, tensor.shape, tensor.strides);
}

static llvm::SmallVector<int64_t, 5> scoresShape(const OpContext &op, unsigned queries) {
  llvm::SmallVector<int64_t, 5> shape = TensorSizes(*op.tensor(queries)).shape;
  shape.back() = TensorSizes(*op.tensor(queries + 1)).shape[shape.size() - 2];
  return shape;
}

/// How a tensor is seen in batches of matrices.
static MatrixLayout layoutOf(const OpContext &op, const Argument &argument, unsigned queries) {
  TensorSizes tensor(argument.isResult ? *op.results()[argument.index]->asTensor()
                                       : *op.tensor(argument.index));
  if (argument.tensor == attentionMask) {
    llvm::SmallVector<int64_t, 5> shape = scoresShape(op, queries);
    return MatrixLayout::ofMatrices(tensor.dtype, shape, tensor.broadcastTo(shape));
  }
  if (argument.tensor == attentionSums && tensor.rank() < op.tensor(queries)->shape.size())
    return MatrixLayout::ofRowVectors(tensor.dtype, tensor.shape, tensor.strides).transposed();
  return matricesOf(tensor);
}

/// Fills in matrices and batches of what `kernel.arguments` lists.
static llvm::Error describeTensors(AttentionOp &kernel, const OpContext &op, unsigned queries) {
  MatrixLayout first = matricesOf(TensorSizes(*op.tensor(queries)));
  DType dtype = first.dtype;
  kernel.canUseTensorCores = dtype == DType::F16 || dtype == DType::BF16;
  std::array<llvm::SmallVector<int64_t, 5>, numAttentionTensors> strides;
  for (auto &batch : strides)
    batch.assign(first.shape.size(), 0);
  for (const Argument &argument : kernel.arguments) {
    MatrixLayout matrices = layoutOf(op, argument, queries);
    strides[argument.tensor].assign(matrices.strides.begin(), matrices.strides.end());
    kernel.params.tensors[argument.tensor] = {nullptr,
                                              matrices.rows,
                                              matrices.columns,
                                              matrices.rowStride,
                                              matrices.columnStride,
                                              elementType(matrices.dtype),
                                              hasRowsOf(matrices, 4)};
    if (argument.tensor != attentionMask && argument.tensor != attentionSums)
      kernel.canUseTensorCores &= matrices.dtype == dtype && hasRowsOf(matrices, 8) &&
                                  matrices.columns % 8 == 0 && matrices.columns > 0 &&
                                  matrices.columns <= maxTensorHead;
  }
  std::array<llvm::ArrayRef<int64_t>, numAttentionTensors> views;
  for (size_t k = 0; k < views.size(); ++k)
    views[k] = strides[k];
  llvm::Expected<Layout<numAttentionTensors>> batches =
      makeLayout<numAttentionTensors>(first.shape, views);
  if (!batches)
    return batches.takeError();
  kernel.params.batches = *batches;
  return llvm::Error::success();
}

static void describeAttributes(AttentionOp &kernel, const OpContext &op) {
  AttentionParams &params = kernel.params;
  int64_t headSize = params.tensors[attentionQueries].columns;
  double dropout = op.numberAttribute("dropout_p");
  params.causal = op.boolAttribute("causal");
  params.scale = op.numberAttribute("scale", 1 / std::sqrt(double(headSize)));
  params.dropThreshold = philox::threshold(dropout);
  params.keepScale = dropout < 1 ? 1 / (1 - std::max(dropout, 0.0)) : 0;
  params.offset = uint64_t(op.intAttribute("offset"));
}

/// `queries`: the operand; keys and values follow.
static llvm::Error describe(AttentionOp &kernel, const OpContext &op, unsigned queries,
                            const TensorType &logSumExp) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  if (!holdsLogSumExp(constantDims(logSumExp.shape), constantDims(op.tensor(queries)->shape)))
    return makeError("has no CUDA kernel for logsumexp of type " + Type(logSumExp).str());
  for (int i = 0; i < 3; ++i)
    kernel.arguments.push_back({AttentionTensor(attentionQueries + i), queries + i});
  if (op.tensor(kernel.maskOperand))
    kernel.arguments.push_back({attentionMask, kernel.maskOperand});
  if (llvm::Error error = describeTensors(kernel, op, queries))
    return error;
  describeAttributes(kernel, op);
  return llvm::Error::success();
}

/// The heads that the kernels for tensor cores must hold.
static int64_t largestHead(const AttentionOp &kernel) {
  return std::max(kernel.matrix(attentionKeys).columns, kernel.matrix(attentionValues).columns);
}

static TensorAttentionKernels tensorKernels(const AttentionOp &kernel) {
  return tensorAttentionKernels(kernel.matrix(attentionQueries).type, largestHead(kernel));
}

static ComputeType computeTypeOf(const AttentionOp &kernel) {
  return kernel.matrix(attentionQueries).type == ElementType::F64 ? ComputeType::F64
                                                                  : ComputeType::F32;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

static llvm::Expected<CUDAKernelFn> makeAttention(const OpContext &op) {
  AttentionOp kernel;
  kernel.arguments = {{attentionOut, 0, true}, {attentionSums, 1, true}};
  if (llvm::Error error = describe(kernel, op, /*queries=*/0, *op.results()[1]->asTensor()))
    return error;
  AttentionKernels general = attentionKernels(computeTypeOf(kernel));
  TensorAttentionKernels tensor = {};
  CUDAKernelFn result;
  result.functions = {{general.forward, general.sharedBytes}};
  if (kernel.canUseTensorCores) {
    tensor = tensorKernels(kernel);
    result.functions.push_back({tensor.forward, tensor.forwardBytes});
  }
  result.enqueue = [kernel, general, tensor](const CUDAWork &work,
                                             const TypedArgs &args) -> llvm::Error {
    int64_t rows = std::max(kernel.matrix(attentionOut).rows, kernel.matrix(attentionSums).rows);
    int64_t blocks = kernel.count(tiles(rows));
    if (blocks == 0)
      return llvm::Error::success();
    auto [run, isTensor] = kernel.bind(args);
    if (isTensor)
      return work.launch(
          1, {{blocksFor(blocks, 1), 1, 1}, {tensorAttentionBlock, 1, 1}, tensor.forwardBytes},
          run);
    blocks *= std::max<int64_t>(1, tiles(kernel.matrix(attentionOut).columns));
    return work.launch(
        0, {{blocksFor(blocks, 1), 1, 1}, {attentionBlock, 1, 1}, general.sharedBytes}, run);
  };
  return result;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// Scores that one element of the mask's gradient sums, from which on a block does it.
static constexpr int64_t manyScores = 64;

/// Which scores each element of the mask, of type `mask`, was added to; `gradient` is where the sum
/// of their gradients goes.
static llvm::Expected<AttentionMaskParams> describeMaskGradient(const TensorSizes &mask,
                                                                const TensorSizes &gradient,
                                                                llvm::ArrayRef<int64_t> scores) {
  llvm::SmallVector<int64_t, 5> strides = rowMajorStrides(scores);
  llvm::SmallVector<int64_t, 5> kept, keptStrides, gradientStrides, summed, summedStrides;
  size_t added = scores.size() - mask.rank();
  for (size_t d = 0; d < scores.size(); ++d) {
    if (d >= added && mask.shape[d - added] == scores[d]) {
      kept.push_back(scores[d]);
      keptStrides.push_back(strides[d]);
      gradientStrides.push_back(gradient.strides[d - added]);
    } else {
      summed.push_back(scores[d]);
      summedStrides.push_back(strides[d]);
    }
  }
  llvm::Expected<Layout<2>> elements = makeLayout<2>(kept, {keptStrides, gradientStrides});
  if (!elements)
    return elements.takeError();
  llvm::Expected<Layout<1>> sums = makeLayout<1>(summed, {summedStrides});
  if (!sums)
    return sums.takeError();
  AttentionMaskParams params;
  params.elements = *elements;
  params.scores = *sums;
  params.type = elementType(gradient.dtype);
  params.isBlockWide = sums->count >= manyScores;
  return params;
}

namespace {

/// Positions in CUDAKernelFn::functions.
enum BackwardFunction : unsigned { deltaFunction, gradKeysFunction, gradQueriesFunction };

struct AttentionBackward {
  AttentionOp op;
  AttentionKernels general;
  TensorAttentionKernels tensor = {};
  unsigned firstTensorFunction = 0, maskFunction = 0;

  llvm::Error enqueue(const CUDAWork &work, const TypedArgs &args) const;
  llvm::Error enqueueDelta(const CUDAWork &work, const AttentionParams &run) const;
  llvm::Error enqueueGeneral(const CUDAWork &work, const AttentionParams &run) const;
  llvm::Error enqueueTensor(const CUDAWork &work, const AttentionParams &run) const;
  llvm::Error enqueueMask(const CUDAWork &work, const AttentionParams &run, void *data) const;
};

} // namespace

llvm::Error AttentionBackward::enqueue(const CUDAWork &work, const TypedArgs &args) const {
  auto [run, isTensor] = op.bind(args);
  if (llvm::Error error = enqueueDelta(work, run))
    return error;
  if (llvm::Error error = isTensor ? enqueueTensor(work, run) : enqueueGeneral(work, run))
    return error;
  return op.maskGradient ? enqueueMask(work, run, args.result(3).data) : llvm::Error::success();
}

llvm::Error AttentionBackward::enqueueDelta(const CUDAWork &work,
                                            const AttentionParams &run) const {
  int64_t rows = op.count(op.matrix(attentionOut).rows);
  if (rows == 0)
    return llvm::Error::success();
  return work.launch(deltaFunction,
                     {{blocksFor(rows, attentionBlock / 32), 1, 1}, {attentionBlock, 1, 1}}, run);
}

llvm::Error AttentionBackward::enqueueGeneral(const CUDAWork &work,
                                              const AttentionParams &run) const {
  auto launch = [&](unsigned function, int64_t blocks) -> llvm::Error {
    if (blocks == 0)
      return llvm::Error::success();
    return work.launch(
        function, {{blocksFor(blocks, 1), 1, 1}, {attentionBlock, 1, 1}, general.sharedBytes}, run);
  };
  const AttentionMatrix &queries = op.matrix(attentionQueries), &keys = op.matrix(attentionKeys);
  int64_t columns = std::max(keys.columns, op.matrix(attentionValues).columns);
  if (llvm::Error error = launch(gradKeysFunction, op.count(tiles(keys.rows)) * tiles(columns)))
    return error;
  return launch(gradQueriesFunction, op.count(tiles(queries.rows)) * tiles(queries.columns));
}

llvm::Error AttentionBackward::enqueueTensor(const CUDAWork &work,
                                             const AttentionParams &run) const {
  auto launch = [&](unsigned function, int64_t rows, uint32_t sharedBytes) -> llvm::Error {
    int64_t blocks = op.count(tiles(rows));
    if (blocks == 0)
      return llvm::Error::success();
    return work.launch(
        function, {{blocksFor(blocks, 1), 1, 1}, {tensorAttentionBlock, 1, 1}, sharedBytes}, run);
  };
  if (llvm::Error error =
          launch(firstTensorFunction, op.matrix(attentionKeys).rows, tensor.gradKeysBytes))
    return error;
  return launch(firstTensorFunction + 1, op.matrix(attentionQueries).rows, tensor.gradQueriesBytes);
}

llvm::Error AttentionBackward::enqueueMask(const CUDAWork &work, const AttentionParams &run,
                                           void *data) const {
  AttentionMaskParams params = *op.maskGradient;
  if (params.elements.count == 0)
    return llvm::Error::success();
  params.attention = run;
  params.data = data;
  uint32_t blocks = blocksFor(params.elements.count, params.isBlockWide ? 1 : attentionBlock);
  return work.launch(maskFunction, {{blocks, 1, 1}, {attentionBlock, 1, 1}}, params);
}

static llvm::Expected<CUDAKernelFn> makeAttentionBackward(const OpContext &op) {
  AttentionBackward kernel;
  kernel.op.maskOperand = 6;
  kernel.op.arguments = {{attentionGrad, 0},           {attentionOut, 4},
                         {attentionSums, 5},           {attentionGradQueries, 0, true},
                         {attentionGradKeys, 1, true}, {attentionGradValues, 2, true}};
  if (llvm::Error error = describe(kernel.op, op, /*queries=*/1, *op.tensor(5)))
    return error;
  ComputeType compute = computeTypeOf(kernel.op);
  kernel.general = attentionKernels(compute);
  CUDAKernelFn result;
  result.functions = {{kernel.general.delta},
                      {kernel.general.gradKeys, kernel.general.sharedBytes},
                      {kernel.general.gradQueries, kernel.general.sharedBytes}};
  if (kernel.op.canUseTensorCores) {
    kernel.tensor = tensorKernels(kernel.op);
    kernel.firstTensorFunction = result.functions.size();
    result.functions.push_back({kernel.tensor.gradKeys, kernel.tensor.gradKeysBytes});
    result.functions.push_back({kernel.tensor.gradQueries, kernel.tensor.gradQueriesBytes});
  }
  if (op.results().size() > 3) {
    llvm::Expected<AttentionMaskParams> params = describeMaskGradient(
        TensorSizes(*op.tensor(6)), TensorSizes(*op.results()[3]->asTensor()), scoresShape(op, 1));
    if (!params)
      return params.takeError();
    kernel.op.maskGradient = *params;
    kernel.maskFunction = result.functions.size();
    result.functions.push_back({kernel.general.gradMask});
  }
  result.workspaceBytes = uint64_t(kernel.op.count(kernel.op.matrix(attentionQueries).rows)) *
                          (compute == ComputeType::F64 ? sizeof(double) : sizeof(float));
  result.enqueue = [kernel](const CUDAWork &work, const TypedArgs &args) {
    return kernel.enqueue(work, args);
  };
  return result;
}

void cuda::addAttentionKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "scaled_dot_product_attention", .make = makeAttention});
  addKernel(executor,
            {.op = "scaled_dot_product_attention_backward", .make = makeAttentionBackward});
}
