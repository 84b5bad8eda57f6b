//===- KernelTypes.cpp - From the IR's types to the kernels' --------------===//

#include "KernelTypes.h"

#include <numeric>

using namespace rondo;
using namespace rondo::cuda;

ComputeType cuda::computeType(DType dtype) {
  switch (computeDType(dtype)) {
  case DType::I64:
    return ComputeType::I64;
  case DType::F64:
    return ComputeType::F64;
  default:
    return ComputeType::F32;
  }
}

llvm::Error cuda::checkDTypes(const OpContext &op) {
  auto check = [](const Type *type) -> llvm::Error {
    const TensorType *tensor = type ? type->asTensor() : nullptr;
    if (!tensor || (tensor->dtype != DType::F8E4M3 && tensor->dtype != DType::F8E5M2))
      return llvm::Error::success();
    return makeError("has no CUDA kernel for dtype " + dtypeName(tensor->dtype) +
                     ": cast to f16 or bf16 before");
  };
  for (unsigned i = 0; i < op.numOperands(); ++i)
    if (llvm::Error error = check(op.operand(i)))
      return error;
  for (const Type *result : op.results())
    if (llvm::Error error = check(result))
      return error;
  return llvm::Error::success();
}

bool TensorSizes::isRowMajor() const {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0; expected *= shape[d])
    if (shape[d] != 1 && strides[d] != expected)
      return false;
  return true;
}

llvm::SmallVector<unsigned, 5> cuda::memoryOrder(llvm::ArrayRef<int64_t> strides) {
  llvm::SmallVector<unsigned, 5> order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](unsigned a, unsigned b) { return strides[a] > strides[b]; });
  return order;
}

template <typename C> static C roundedConstant(const ScalarConstant &constant, ElementType as) {
  auto round = [&](auto value) {
    return dispatch(
        as, [&](auto tag) { return convert<C>(convert<typename decltype(tag)::Type>(value)); });
  };
  switch (constant.dtype) {
  case DType::Bool:
    return round(constant.value.boolean);
  case DType::I64:
    return round(constant.value.i64);
  default:
    return round(constant.value.f64);
  }
}

Number cuda::roundConstant(const ScalarConstant &constant, DType as, ComputeType compute) {
  Number number;
  switch (compute) {
  case ComputeType::I64:
    number.i64 = roundedConstant<int64_t>(constant, elementType(as));
    break;
  case ComputeType::F32:
    number.f32 = roundedConstant<float>(constant, elementType(as));
    break;
  case ComputeType::F64:
    number.f64 = roundedConstant<double>(constant, elementType(as));
    break;
  }
  return number;
}

llvm::Error cuda::checkOverlap(const CommandSink &sink, const TensorRef &written,
                               const TensorRef &read) {
  if (sink.isRehearsal() || written.numElements() == 0 || read.numElements() == 0)
    return llvm::Error::success();
  auto range = [](const TensorRef &tensor) {
    uintptr_t begin = reinterpret_cast<uintptr_t>(tensor.data);
    return std::pair(begin, begin + stridedExtentBytes(tensor.dtype, tensor.shape, tensor.strides));
  };
  auto [writtenBegin, writtenEnd] = range(written);
  auto [readBegin, readEnd] = range(read);
  if (writtenEnd <= readBegin || readEnd <= writtenBegin)
    return llvm::Error::success();
  if (written.data == read.data && written.dtype == read.dtype && written.shape == read.shape &&
      written.strides == read.strides)
    return llvm::Error::success();
  return makeDeviceError(
      DeviceErrorKind::InvalidArgument,
      "an operand overlaps, with another layout, the operand that is written: "
      "some elements would be overwritten before they are read; clone it before");
}
