//===- CuDNNGraph.cpp - Graphs of cuDNN's operations ----------------------===//

#include "CuDNNGraph.h"

#include "rondo/executors/Shapes.h"

using namespace rondo;
using namespace rondo::cuda;

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

CuDNNDescriptors::~CuDNNDescriptors() {
  llvm::consumeError(std::move(error_));
  if (all_.empty())
    return;
  handle_->cleanUp("cudnnBackendDestroyDescriptor", [&] {
    for (cudnnBackendDescriptor_t descriptor : llvm::reverse(all_))
      (void)handle_->library().destroyDescriptor(descriptor);
  });
}

bool CuDNNDescriptors::call(llvm::StringRef name, llvm::function_ref<cudnnStatus_t()> function) {
  if (error_)
    return false;
  error_ = handle_->library().check(function(), name);
  return !error_;
}

cudnnBackendDescriptor_t CuDNNDescriptors::create(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  if (call("cudnnBackendCreateDescriptor",
           [&] { return handle_->library().createDescriptor(type, &descriptor); }))
    all_.push_back(descriptor);
  return descriptor;
}

void CuDNNDescriptors::finalize(cudnnBackendDescriptor_t descriptor) {
  call("cudnnBackendFinalize", [&] { return handle_->library().finalize(descriptor); });
}

void CuDNNDescriptors::setRaw(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  call("cudnnBackendSetAttribute",
       [&] { return handle_->library().setAttribute(descriptor, name, type, count, values); });
}

int64_t CuDNNDescriptors::getRaw(cudnnBackendDescriptor_t descriptor,
                                 cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                 int64_t most, void *values) {
  int64_t count = 0;
  bool isKnown = call("cudnnBackendGetAttribute", [&] {
    return handle_->library().getAttribute(descriptor, name, type, most, &count, values);
  });
  if (!isKnown)
    return 0;
  return most == 0 ? count : std::clamp<int64_t>(count, 0, most);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static CuDNNGraph::Sizes rowMajor(const CuDNNGraph::Sizes &shape) {
  CuDNNGraph::Sizes strides;
  llvm::copy(rowMajorStrides(shape), strides.begin());
  return strides;
}

CuDNNGraph::Tensor CuDNNGraph::tensor(const Sizes &shape, const Sizes &strides,
                                      cudnnDataType_t type, Storage storage) {
  cudnnBackendDescriptor_t descriptor = descriptors_.create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptors_.set(descriptor, CUDNN_ATTR_TENSOR_UNIQUE_ID, ++numTensors_);
  descriptors_.set(descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  descriptors_.setAll<int64_t>(descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  descriptors_.setAll<int64_t>(descriptor, CUDNN_ATTR_TENSOR_STRIDES, strides);
  descriptors_.set(descriptor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t(DeviceAPI::minAlignment));
  descriptors_.set(descriptor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, storage == Storage::None);
  descriptors_.set(descriptor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, storage == Storage::Number);
  descriptors_.finalize(descriptor);
  return {descriptor, type, shape, strides};
}

CuDNNGraph::Tensor CuDNNGraph::argument(const FusedAttention::Tensor &given, cudnnDataType_t type) {
  Tensor result = tensor(given.shape, given.strides, type, Storage::Memory);
  bindings_.push_back({.id = numTensors_,
                       .source = given.isResult ? CuDNNBinding::Result : CuDNNBinding::Operand,
                       .index = given.index});
  return result;
}

CuDNNGraph::Tensor CuDNNGraph::transposedArgument(FusedAttention::Tensor given,
                                                  cudnnDataType_t type) {
  std::swap(given.shape[2], given.shape[3]);
  std::swap(given.strides[2], given.strides[3]);
  return argument(given, type);
}

CuDNNGraph::Tensor CuDNNGraph::workspace(const Sizes &shape) {
  Tensor result = tensor(shape, rowMajor(shape), CUDNN_DATA_FLOAT, Storage::Memory);
  bindings_.push_back(
      {.id = numTensors_, .source = CuDNNBinding::Workspace, .offset = workspaceBytes_});
  uint64_t bytes = uint64_t(shape[0] * shape[1] * shape[2] * shape[3]) * sizeof(float);
  workspaceBytes_ += llvm::alignTo(bytes, DeviceAPI::allocationAlignment);
  return result;
}

CuDNNGraph::Tensor CuDNNGraph::scalar(float value) {
  Tensor result = tensor({1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Storage::Number);
  bindings_.push_back({.id = numTensors_, .source = CuDNNBinding::Scalar, .scalar = value});
  return result;
}

CuDNNGraph::Tensor CuDNNGraph::inner(const Sizes &shape, cudnnDataType_t type) {
  return inner(shape, rowMajor(shape), type);
}

CuDNNGraph::Tensor CuDNNGraph::inner(const Sizes &shape, const Sizes &strides,
                                     cudnnDataType_t type) {
  return tensor(shape, strides, type, Storage::None);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

CuDNNGraph::Tensor CuDNNGraph::matmul(const Tensor &a, const Tensor &b, const Tensor &out) {
  cudnnBackendDescriptor_t kind = descriptors_.create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  descriptors_.set(kind, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  descriptors_.finalize(kind);
  cudnnBackendDescriptor_t operation =
      descriptors_.create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  descriptors_.set(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor);
  descriptors_.set(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor);
  descriptors_.set(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, out.descriptor);
  descriptors_.set(operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
  descriptors_.finalize(operation);
  operations_.push_back(operation);
  return out;
}

CuDNNGraph::Tensor CuDNNGraph::addPointwise(cudnnPointwiseMode_t mode, std::optional<int64_t> axis,
                                            llvm::ArrayRef<Tensor> in, const Tensor &out) {
  bool isBoolean = out.type == CUDNN_DATA_BOOLEAN;
  cudnnBackendDescriptor_t kind = descriptors_.create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  descriptors_.set(kind, CUDNN_ATTR_POINTWISE_MODE, mode);
  descriptors_.set(kind, CUDNN_ATTR_POINTWISE_MATH_PREC,
                   isBoolean ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT);
  if (axis)
    descriptors_.set(kind, CUDNN_ATTR_POINTWISE_AXIS, *axis);
  descriptors_.finalize(kind);
  cudnnBackendDescriptor_t operation =
      descriptors_.create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  constexpr cudnnBackendAttributeName_t operands[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                      CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                      CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  descriptors_.set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
  for (size_t i = 0; i < in.size(); ++i)
    descriptors_.set(operation, operands[i], in[i].descriptor);
  descriptors_.set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out.descriptor);
  descriptors_.finalize(operation);
  operations_.push_back(operation);
  return out;
}

CuDNNGraph::Tensor CuDNNGraph::pointwise(cudnnPointwiseMode_t mode, llvm::ArrayRef<Tensor> in,
                                         const Tensor &out) {
  return addPointwise(mode, std::nullopt, in, out);
}

CuDNNGraph::Tensor CuDNNGraph::indices(int64_t dim, const Tensor &like) {
  return addPointwise(CUDNN_POINTWISE_GEN_INDEX, dim, like, inner(like.shape, CUDNN_DATA_INT32));
}

CuDNNGraph::Tensor CuDNNGraph::reduce(cudnnReduceTensorOp_t operation, const Tensor &in,
                                      const Tensor &out) {
  cudnnBackendDescriptor_t kind = descriptors_.create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  descriptors_.set(kind, CUDNN_ATTR_REDUCTION_OPERATOR, operation);
  descriptors_.set(kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  descriptors_.finalize(kind);
  cudnnBackendDescriptor_t node = descriptors_.create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  descriptors_.set(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, in.descriptor);
  descriptors_.set(node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, out.descriptor);
  descriptors_.set(node, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
  descriptors_.finalize(node);
  operations_.push_back(node);
  return out;
}

CuDNNGraph::Tensor CuDNNGraph::reshape(const Tensor &in, const Tensor &out) {
  cudnnBackendDescriptor_t operation =
      descriptors_.create(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  descriptors_.set(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, in.descriptor);
  descriptors_.set(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, out.descriptor);
  descriptors_.finalize(operation);
  operations_.push_back(operation);
  return out;
}

cudnnBackendDescriptor_t CuDNNGraph::finalize() {
  cudnnBackendDescriptor_t graph = descriptors_.create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  descriptors_.set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, descriptors_.handle().get());
  descriptors_.setAll<cudnnBackendDescriptor_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  descriptors_.finalize(graph);
  return graph;
}
