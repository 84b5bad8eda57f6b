//===- Pointwise.cpp - Kernels that work element by element ---------------===//

#include "Pointwise.h"

#include "LoopNest.h"

#include <algorithm>

using namespace rondo;
using namespace rondo::host;

//===----------------------------------------------------------------------===//
// Dtypes
//===----------------------------------------------------------------------===//

static llvm::Error noKernelFor(DType dtype) {
  return makeError("has no host kernel for dtype " + dtypeName(dtype));
}

DType host::scalarDType(ScalarKind kind) {
  return kind == ScalarKind::I64 ? DType::I64 : kind == ScalarKind::F64 ? DType::F64 : DType::Bool;
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

namespace {

/// PyTorch's promotion: of tensors with dimensions, of 0-d tensors, of host scalars, a later
/// category counts only where it is of a higher kind (bool < integer < float).
class PromotedDType {
public:
  void addTensor(const TensorType &type) { add(type.shape.empty() ? 1 : 0, type.dtype); }
  /// Host scalars that are floats are f32 here: what a tensor of integers becomes beside them.
  void addScalar(DType dtype) { add(2, dtype == DType::F64 ? DType::F32 : dtype); }

  DType get() const {
    std::optional<DType> result;
    for (std::optional<DType> dtype : byCategory_)
      if (dtype && (!result || kind(*dtype) > kind(*result)))
        result = result ? promote(*result, *dtype) : *dtype;
    return result.value_or(DType::F32);
  }

private:
  static int kind(DType dtype) { return dtype == DType::Bool ? 0 : isFloat(dtype) ? 2 : 1; }
  void add(unsigned category, DType dtype) {
    std::optional<DType> &known = byCategory_[category];
    known = known ? promote(*known, dtype) : dtype;
  }

  std::array<std::optional<DType>, 3> byCategory_;
};

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// An operand of a row function: a tensor operand, a host scalar operand, or a constant.
struct Source {
  enum class Kind : uint8_t { Tensor, Scalar, Constant };
  Kind kind = Kind::Tensor;
  unsigned operand = 0;         ///< of the op
  ScalarConstant constant = {}; ///< of a scalar, its dtype only
  DType as = DType::F32;        ///< what it is rounded to

  /// As a tensor. `scalar` receives the value of a host scalar; borrows from it and from this.
  TensorRef bind(const HostArgs &args, ScalarConstant &scalar) const {
    switch (kind) {
    case Kind::Tensor:
      return args.operand(operand);
    case Kind::Scalar:
      scalar = {args.scalar(operand), constant.dtype};
      return scalar.tensor();
    case Kind::Constant:
      return constant.tensor();
    }
    return {};
  }
};

constexpr size_t maxSources = 4;

} // namespace

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
    operands.emplace_back(sources[k].bind(args, scalars[k]), out);
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

llvm::Expected<ScalarConstant> ScalarConstant::get(const OpContext &op, llvm::StringRef name) {
  ScalarConstant constant;
  const Attribute *attribute = op.attribute(name);
  if (attribute && attribute->asBool()) {
    constant.dtype = DType::Bool;
    constant.value.boolean = *attribute->asBool();
  } else if (attribute && attribute->asInt()) {
    constant.dtype = DType::I64;
    constant.value.i64 = *attribute->asInt();
  } else if (attribute && attribute->asFloat()) {
    constant.value.f64 = *attribute->asFloat();
  } else {
    return makeError("expects attribute '" + name + "' to be a constant number, got " +
                     (attribute ? attribute->str() : std::string("none")));
  }
  return constant;
}

/// The dtype that the op is computed in.
static DType computeRuleDType(const PointwiseSpec &spec, const OpContext &op,
                              llvm::ArrayRef<Source> sources) {
  if (spec.rule == ComputeRule::Logical)
    return DType::Bool;
  if (spec.rule == ComputeRule::First)
    return op.tensor(0)->dtype;
  PromotedDType promoted;
  for (size_t k = 0; k < sources.size(); ++k) {
    if (spec.condition == k)
      continue;
    if (sources[k].kind == Source::Kind::Tensor)
      promoted.addTensor(*op.tensor(sources[k].operand));
    else
      promoted.addScalar(sources[k].constant.dtype);
  }
  DType dtype = promoted.get();
  return spec.rule == ComputeRule::Float && !isFloat(dtype) ? DType::F32 : dtype;
}

/// What source `k` is rounded to when the op is computed in `dtype`.
static DType roundedDType(const PointwiseSpec &spec, const OpContext &op, const Source &source,
                          size_t k, DType dtype) {
  if (spec.condition == k)
    return DType::Bool;
  bool isScalar = source.kind != Source::Kind::Tensor || op.tensor(source.operand)->shape.empty();
  bool keepsPrecision = isScalar && isFloat(dtype) && spec.rule != ComputeRule::Compare;
  return keepsPrecision ? computeDType(dtype) : dtype;
}

/// The op's operands in order, `scalar` for one that is left out.
static llvm::Error addOperands(const OpContext &op, llvm::SmallVectorImpl<Source> &sources) {
  for (unsigned i = 0; i < op.spec().operands.size(); ++i) {
    Source source;
    source.operand = i;
    if (op.tensor(i)) {
      source.kind = Source::Kind::Tensor;
    } else if (const ScalarType *scalar = op.operand(i) ? op.operand(i)->asScalar() : nullptr) {
      source.kind = Source::Kind::Scalar;
      source.constant.dtype = scalarDType(scalar->kind);
    } else {
      source.kind = Source::Kind::Constant;
      llvm::Expected<ScalarConstant> constant = ScalarConstant::get(op, "scalar");
      if (!constant)
        return constant.takeError();
      source.constant = *constant;
    }
    sources.push_back(source);
  }
  return llvm::Error::success();
}

llvm::Expected<HostKernelFn> host::makePointwise(const OpContext &op, const PointwiseSpec &spec) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::SmallVector<Source, maxSources> sources;
  if (llvm::Error error = addOperands(op, sources))
    return error;
  size_t numOperands = sources.size();
  for (llvm::StringRef parameter : spec.parameters) {
    if (parameter.empty())
      break;
    llvm::Expected<ScalarConstant> constant = ScalarConstant::get(op, parameter);
    if (!constant)
      return constant.takeError();
    Source &source = sources.emplace_back();
    source.kind = Source::Kind::Constant;
    source.constant = *constant;
  }
  assert(sources.size() <= maxSources && "more operands than there are buffers for");
  llvm::ArrayRef<Source> promoted = sources;
  if (!spec.parametersPromote)
    promoted = promoted.take_front(numOperands);
  DType dtype = computeRuleDType(spec, op, promoted);
  for (size_t k = 0; k < sources.size(); ++k)
    sources[k].as = roundedDType(spec, op, sources[k], k, dtype);
  RowFunction function = spec.rows.find(dtype);
  if (!function)
    return noKernelFor(dtype);
  return HostKernelFn([function, compute = computeDType(dtype), sources](const HostArgs &args) {
    runPointwise(function, compute, sources, args);
  });
}

void host::addPointwise(HostExecutor &executor, const PointwiseSpec &spec, bool inPlace) {
  auto make = [spec](const OpContext &op) { return makePointwise(op, spec); };
  addKernel(executor, {.op = spec.op.str(), .make = make});
  if (inPlace)
    addKernel(executor, {.op = spec.op.str() + "_", .make = make});
}
