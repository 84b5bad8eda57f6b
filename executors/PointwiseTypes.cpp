//===- PointwiseTypes.cpp - What pointwise ops are computed in ------------===//

#include "rondo/executors/PointwiseTypes.h"

#include "rondo/ir/Diagnostic.h"

#include <cassert>

using namespace rondo;

DType rondo::computeDType(DType dtype) {
  return !isFloat(dtype) ? DType::I64 : dtype == DType::F64 ? DType::F64 : DType::F32;
}

DType rondo::scalarDType(ScalarKind kind) {
  return kind == ScalarKind::I64 ? DType::I64 : kind == ScalarKind::F64 ? DType::F64 : DType::Bool;
}

unsigned rondo::uniformBits(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 11;
  case DType::BF16:
    return 8;
  case DType::F64:
    return 32;
  default:
    return 24;
  }
}

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

} // namespace

/// The dtype that the op is computed in.
static DType computeRuleDType(const PointwiseRule &rule, const OpContext &op,
                              llvm::ArrayRef<PointwiseSource> sources) {
  if (rule.compute == ComputeRule::Logical)
    return DType::Bool;
  if (rule.compute == ComputeRule::First)
    return op.tensor(0)->dtype;
  PromotedDType promoted;
  for (size_t k = 0; k < sources.size(); ++k) {
    if (rule.condition == k)
      continue;
    if (sources[k].kind == PointwiseSource::Kind::Tensor)
      promoted.addTensor(*op.tensor(sources[k].operand));
    else
      promoted.addScalar(sources[k].constant.dtype);
  }
  DType dtype = promoted.get();
  return rule.compute == ComputeRule::Float && !isFloat(dtype) ? DType::F32 : dtype;
}

/// What source `k` is rounded to when the op is computed in `dtype`.
static DType roundedDType(const PointwiseRule &rule, const OpContext &op,
                          const PointwiseSource &source, size_t k, DType dtype) {
  if (rule.condition == k)
    return DType::Bool;
  bool isScalar =
      source.kind != PointwiseSource::Kind::Tensor || op.tensor(source.operand)->shape.empty();
  bool keepsPrecision = isScalar && isFloat(dtype) && rule.compute != ComputeRule::Compare;
  return keepsPrecision ? computeDType(dtype) : dtype;
}

/// The op's operands in order, `scalar` for one that is left out.
static llvm::Error addOperands(const OpContext &op,
                               llvm::SmallVectorImpl<PointwiseSource> &sources) {
  for (unsigned i = 0; i < op.spec().operands.size(); ++i) {
    PointwiseSource source;
    source.operand = i;
    if (op.tensor(i)) {
      source.kind = PointwiseSource::Kind::Tensor;
    } else if (const ScalarType *scalar = op.operand(i) ? op.operand(i)->asScalar() : nullptr) {
      source.kind = PointwiseSource::Kind::Scalar;
      source.constant.dtype = scalarDType(scalar->kind);
    } else {
      source.kind = PointwiseSource::Kind::Constant;
      llvm::Expected<ScalarConstant> constant = ScalarConstant::get(op, "scalar");
      if (!constant)
        return constant.takeError();
      source.constant = *constant;
    }
    sources.push_back(source);
  }
  return llvm::Error::success();
}

llvm::Expected<PointwiseTypes> PointwiseTypes::get(const OpContext &op, const PointwiseRule &rule) {
  PointwiseTypes types;
  if (llvm::Error error = addOperands(op, types.sources))
    return error;
  size_t numOperands = types.sources.size();
  for (llvm::StringRef parameter : rule.parameters) {
    if (parameter.empty())
      break;
    llvm::Expected<ScalarConstant> constant = ScalarConstant::get(op, parameter);
    if (!constant)
      return constant.takeError();
    PointwiseSource &source = types.sources.emplace_back();
    source.kind = PointwiseSource::Kind::Constant;
    source.constant = *constant;
  }
  assert(types.sources.size() <= maxSources && "more operands than any pointwise op has");
  llvm::ArrayRef<PointwiseSource> promoted = types.sources;
  if (!rule.parametersPromote)
    promoted = promoted.take_front(numOperands);
  types.dtype = computeRuleDType(rule, op, promoted);
  for (size_t k = 0; k < types.sources.size(); ++k)
    types.sources[k].as = roundedDType(rule, op, types.sources[k], k, types.dtype);
  return types;
}
