//===- Pointwise.cpp - Ops that work element by element -------------------===//
//
// All that depends on types is put into the parameters when a kernel is made; a run adds addresses
// and host scalars.
//
//===----------------------------------------------------------------------===//

#include "Pointwise.h"

#include <cstring>

using namespace rondo;
using namespace rondo::cuda;

using Source = PointwiseSource;

static constexpr int resultIndex = maxPointwiseInputs;

static uint64_t bitsOf(Number number) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

namespace {

/// A pointwise op with concrete types.
struct PointwiseKernel {
  PointwiseParams params;
  llvm::SmallVector<Source, PointwiseTypes::maxSources> sources;
  /// All tensors are dense and of vector types, or one element: what remains to be asked of a run
  /// is alignment.
  bool canBeDense = false;
  bool isInPlace = false;

  llvm::Error enqueue(const CUDAWork &work, const TypedArgs &args) const;
};

} // namespace

static bool isAligned(const TensorRef &tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) %
             std::min<size_t>(16, dtypeSize(tensor.dtype) * pointwiseVector) ==
         0;
}

llvm::Error PointwiseKernel::enqueue(const CUDAWork &work, const TypedArgs &args) const {
  if (params.layout.count == 0)
    return llvm::Error::success();
  const TensorRef &out = args.result();
  PointwiseParams run = params;
  run.out = out.data;
  run.isDense = canBeDense && isAligned(out);
  for (size_t k = 0; k < sources.size(); ++k) {
    const Source &source = sources[k];
    if (source.kind == Source::Kind::Tensor) {
      const TensorRef &in = args.operand(source.operand);
      run.in[k] = in.data;
      run.isDense &= params.isOneElement[k] || isAligned(in);
      if (isInPlace && source.operand != 0)
        if (llvm::Error error = checkOverlap(work.sink(), out, in))
          return error;
    } else if (source.kind == Source::Kind::Scalar) {
      run.constants[k] = scalarBits(args.scalar(source.operand), source.constant.dtype);
    }
  }
  int64_t threads =
      run.isDense ? (run.layout.count + pointwiseVector - 1) / pointwiseVector : run.layout.count;
  return work.launch(0, {{blocksFor(threads, pointwiseBlock), 1, 1}, {pointwiseBlock, 1, 1}}, run);
}

llvm::Expected<CUDAKernelFn> cuda::makePointwise(const OpContext &op,
                                                 const PointwiseKernels &kernels,
                                                 const PointwiseTypes &types) {
  PointwiseKernel kernel;
  const ComputeType compute = computeType(types.dtype);
  kernel.sources = types.sources;
  kernel.isInPlace = op.spec().name.back() == '_';
  const void *symbol = kernels.find(compute);
  if (!symbol)
    return makeError("has no CUDA kernel for dtype " + dtypeName(types.dtype));

  PointwiseParams &params = kernel.params;
  TensorSizes out(*op.results()[0]->asTensor());
  params.outType = elementType(out.dtype);
  kernel.canBeDense = isVectorType(compute, params.outType);
  std::array<llvm::SmallVector<int64_t, 5>, maxPointwiseInputs + 1> strides;
  for (auto &dims : strides)
    dims.assign(out.rank(), 0);
  strides[resultIndex] = out.strides;
  for (size_t k = 0; k < types.sources.size(); ++k) {
    const Source &source = types.sources[k];
    params.as[k] = elementType(source.as);
    if (source.kind == Source::Kind::Constant) {
      params.constants[k] = bitsOf(roundConstant(source.constant, source.as, compute));
      params.isRounded[k] = true;
    }
    if (source.kind == Source::Kind::Scalar)
      params.inTypes[k] = elementType(source.constant.dtype);
    if (source.kind != Source::Kind::Tensor)
      continue;
    TensorSizes in(*op.tensor(source.operand));
    params.inTypes[k] = elementType(in.dtype);
    strides[k] = in.broadcastTo(out.shape);
  }
  std::array<llvm::ArrayRef<int64_t>, maxPointwiseInputs + 1> views;
  for (size_t k = 0; k < views.size(); ++k)
    views[k] = strides[k];
  // Column-major tensors are dense, too: walk through the result as it lies in memory.
  llvm::SmallVector<unsigned, 5> order = memoryOrder(out.strides);
  llvm::Expected<Layout<maxPointwiseInputs + 1>> layout =
      makeLayout<maxPointwiseInputs + 1>(out.shape, views, order);
  if (!layout)
    return layout.takeError();
  params.layout = *layout;
  kernel.canBeDense &= layout->rank == 1 && layout->strides[resultIndex][0] == 1;
  for (size_t k = 0; k < types.sources.size(); ++k) {
    if (types.sources[k].kind != Source::Kind::Tensor)
      continue;
    params.isOneElement[k] = layout->rank == 1 && layout->strides[k][0] == 0;
    kernel.canBeDense &= params.isOneElement[k] ||
                         (layout->strides[k][0] == 1 && isVectorType(compute, params.inTypes[k]));
  }
  CUDAKernelFn result;
  result.functions = {{symbol}};
  result.enqueue = [kernel](const CUDAWork &work, const TypedArgs &args) {
    return kernel.enqueue(work, args);
  };
  return result;
}

llvm::Expected<CUDAKernelFn> cuda::makePointwise(const OpContext &op, const PointwiseSpec &spec) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<PointwiseTypes> types = PointwiseTypes::get(op, spec.rule);
  if (!types)
    return types.takeError();
  return makePointwise(op, spec.kernels, *types);
}

void cuda::addPointwise(CUDAExecutor &executor, const PointwiseSpec &spec, bool inPlace) {
  auto make = [spec](const OpContext &op) { return makePointwise(op, spec); };
  addKernel(executor, {.op = spec.op.str(), .make = make, .isElementwise = true});
  if (inPlace)
    addKernel(executor, {.op = spec.op.str() + "_", .make = make});
}
