//===- Pointwise.cpp - Kernels that work element by element ---------------===//

#include "Pointwise.h"

#include "rondo/executors/LoopNest.h"

#include <algorithm>

using namespace rondo;
using namespace rondo::host;

//===----------------------------------------------------------------------===//
// Dtypes
//===----------------------------------------------------------------------===//

static llvm::Error noKernelFor(DType dtype) {
  return makeError("has no host kernel for dtype " + dtypeName(dtype));
}

RowFunction RowFunctions::find(DType dtype) const {
  switch (computeDType(dtype)) {
  case DType::I64:
    return i64;
  case DType::F64:
    return f64;
  default:
    return f32;
  }
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

using Source = PointwiseSource;
static constexpr size_t maxSources = PointwiseTypes::maxSources;

/// The source as a tensor. `scalar` receives the value of a host scalar; borrows from it and from
/// `source`.
static TensorRef bind(const Source &source, const HostArgs &args, ScalarConstant &scalar) {
  switch (source.kind) {
  case Source::Kind::Tensor:
    return args.operand(source.operand);
  case Source::Kind::Scalar:
    scalar = {args.scalar(source.operand), source.constant.dtype};
    return constantTensor(scalar);
  case Source::Kind::Constant:
    return constantTensor(source.constant);
  }
  return {};
}

template <typename C>
static void runRows(RowFunction function, llvm::ArrayRef<ReadOperand> operands,
                    llvm::ArrayRef<Source> sources, const TensorRef &out) {
  size_t count = operands.size();
  llvm::SmallVector<llvm::ArrayRef<int64_t>, maxSources + 1> strides;
  for (const ReadOperand &operand : operands)
    strides.push_back(operand.strides());
  strides.push_back(out.strides);
  LoopNest nest(out.shape, strides);
  int64_t outStride = nest.rowStride(count);
  bool isDirect = out.dtype == dtypeOf<C> && outStride == 1;
  C buffers[maxSources + 1][rowCapacity];
  nest.forEachRow([&](llvm::ArrayRef<int64_t> offsets) {
    for (int64_t begin = 0; begin < nest.rowLength(); begin += rowCapacity) {
      int64_t n = std::min(rowCapacity, nest.rowLength() - begin);
      std::array<const void *, maxSources> in = {};
      for (size_t k = 0; k < count; ++k)
        in[k] =
            loadRow<C>(operands[k].dtype(), sources[k].as, operands[k].data(),
                       offsets[k] + begin * nest.rowStride(k), nest.rowStride(k), n, buffers[k]);
      int64_t outOffset = offsets[count] + begin * outStride;
      if (isDirect) {
        function(in.data(), out.as<C>() + outOffset, n);
      } else {
        function(in.data(), buffers[count], n);
        storeRow<C>(buffers[count], out.dtype, out.data, outOffset, outStride, n);
      }
    }
  });
}

static void runPointwise(RowFunction function, DType compute, llvm::ArrayRef<Source> sources,
                         const HostArgs &args) {
  const TensorRef &out = args.result();
  if (out.numElements() == 0)
    return;
  std::array<ScalarConstant, maxSources> scalars;
  llvm::SmallVector<ReadOperand, maxSources> operands;
  for (size_t k = 0; k < sources.size(); ++k)
    operands.emplace_back(bind(sources[k], args, scalars[k]), out);
  switch (compute) {
  case DType::I64:
    return runRows<int64_t>(function, operands, sources, out);
  case DType::F64:
    return runRows<double>(function, operands, sources, out);
  default:
    return runRows<float>(function, operands, sources, out);
  }
}

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

llvm::Expected<HostKernelFn> host::makePointwise(const OpContext &op, const PointwiseSpec &spec) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<PointwiseTypes> types =
      PointwiseTypes::get(op, {spec.rule, spec.parameters, spec.parametersPromote, spec.condition});
  if (!types)
    return types.takeError();
  RowFunction function = spec.rows.find(types->dtype);
  if (!function)
    return noKernelFor(types->dtype);
  return HostKernelFn([function, types = *types](const HostArgs &args) {
    runPointwise(function, computeDType(types.dtype), types.sources, args);
  });
}

void host::addPointwise(HostExecutor &executor, const PointwiseSpec &spec, bool inPlace) {
  auto make = [spec](const OpContext &op) { return makePointwise(op, spec); };
  addKernel(executor, {.op = spec.op.str(), .make = make, .isElementwise = true});
  if (inPlace)
    addKernel(executor, {.op = spec.op.str() + "_", .make = make});
}
