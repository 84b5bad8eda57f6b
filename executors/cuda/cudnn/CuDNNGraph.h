//===- CuDNNGraph.h - Graphs of cuDNN's operations --------------*- C++ -*-===//
//
// What cuDNN is asked to do is a graph of operations between tensors. Those in the middle are never
// stored: they only say how operations follow one another. All this is descriptors of cuDNN's, made
// inside CuDNNHandle::run.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CuDNNLibrary.h"

#include "FusedAttention.h"

namespace rondo::cuda {

/// The type by which cuDNN takes an attribute.
template <typename T> constexpr cudnnBackendAttributeType_t attributeTypeOf() {
  if constexpr (std::is_same_v<T, int64_t>)
    return CUDNN_TYPE_INT64;
  else if constexpr (std::is_same_v<T, bool>)
    return CUDNN_TYPE_BOOLEAN;
  else if constexpr (std::is_same_v<T, cudnnDataType_t>)
    return CUDNN_TYPE_DATA_TYPE;
  else if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>)
    return CUDNN_TYPE_POINTWISE_MODE;
  else if constexpr (std::is_same_v<T, cudnnReduceTensorOp_t>)
    return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
  else if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>)
    return CUDNN_TYPE_HEUR_MODE;
  else if constexpr (std::is_same_v<T, cudnnBackendNumericalNote_t>)
    return CUDNN_TYPE_NUMERICAL_NOTE;
  else if constexpr (std::is_same_v<T, cudnnBackendBehaviorNote_t>)
    return CUDNN_TYPE_BEHAVIOR_NOTE;
  else if constexpr (std::is_same_v<T, cudnnHandle_t>)
    return CUDNN_TYPE_HANDLE;
  else {
    static_assert(std::is_same_v<T, cudnnBackendDescriptor_t>, "no attribute has this type");
    return CUDNN_TYPE_BACKEND_DESCRIPTOR;
  }
}

/// Descriptors that are destroyed together. After a call that failed nothing more is called.
class CuDNNDescriptors {
public:
  explicit CuDNNDescriptors(std::shared_ptr<const CuDNNHandle> handle)
      : handle_(std::move(handle)) {}
  CuDNNDescriptors(CuDNNDescriptors &&other) = default;
  CuDNNDescriptors &operator=(CuDNNDescriptors &&other) = delete;
  ~CuDNNDescriptors();

  const CuDNNHandle &handle() const { return *handle_; }
  const std::shared_ptr<const CuDNNHandle> &sharedHandle() const { return handle_; }
  cudnnBackendDescriptor_t create(cudnnBackendDescriptorType_t type);
  void finalize(cudnnBackendDescriptor_t descriptor);

  template <typename T>
  void setAll(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
              llvm::ArrayRef<T> values) {
    setRaw(descriptor, name, attributeTypeOf<T>(), values.size(), values.data());
  }
  template <typename T>
  void set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, T value) {
    setAll<T>(descriptor, name, value);
  }
  /// For addresses, whose C++ type is that of descriptors.
  void setRaw(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
              cudnnBackendAttributeType_t type, int64_t count, const void *values);

  /// At most `most` values of an attribute.
  template <typename T>
  llvm::SmallVector<T, 8> get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                              int64_t most) {
    llvm::SmallVector<T, 8> values;
    values.resize(most);
    values.resize(getRaw(descriptor, name, attributeTypeOf<T>(), most, values.data()));
    return values;
  }
  /// Descriptors, which the caller has made before, are filled in. The result says how many there
  /// are, and with `most` = 0 how many there would be.
  int64_t getRaw(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, int64_t most, void *values);

  /// What the first call that failed answered.
  llvm::Error takeError() { return std::move(error_); }

private:
  /// Calls `function` unless an earlier call failed. True if it succeeded.
  bool call(llvm::StringRef name, llvm::function_ref<cudnnStatus_t()> function);

  std::shared_ptr<const CuDNNHandle> handle_;
  std::vector<cudnnBackendDescriptor_t> all_;
  llvm::Error error_ = llvm::Error::success();
};

/// Where a run finds a tensor of a graph.
struct CuDNNBinding {
  enum Source { Operand, Result, Workspace, Scalar };

  int64_t id = 0; ///< cuDNN's name of the tensor
  Source source = Operand;
  unsigned index = 0;  ///< of the operand or result
  uint64_t offset = 0; ///< from the end of the plan's own workspace, in bytes
  float scalar = 0;
};

/// A graph under construction. Sums and all that is in the middle are of f32 unless said otherwise.
class CuDNNGraph {
public:
  using Sizes = FusedAttention::Sizes;
  struct Tensor {
    cudnnBackendDescriptor_t descriptor;
    cudnnDataType_t type;
    Sizes shape, strides;
  };

  explicit CuDNNGraph(std::shared_ptr<const CuDNNHandle> handle) : descriptors_(handle) {}

  /// An operand or result of the op.
  Tensor argument(const FusedAttention::Tensor &tensor, cudnnDataType_t type);
  /// One that is handed over with its rows and columns exchanged.
  Tensor transposedArgument(FusedAttention::Tensor tensor, cudnnDataType_t type);
  /// Row-major, stored between operations for the length of a run.
  Tensor workspace(const Sizes &shape);
  /// A number that is given with every run.
  Tensor scalar(float value);
  /// What is never stored, row-major.
  Tensor inner(const Sizes &shape, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  Tensor inner(const Sizes &shape, const Sizes &strides, cudnnDataType_t type);

  // Operations; the result of each is `out`.

  Tensor matmul(const Tensor &a, const Tensor &b, const Tensor &out);
  Tensor pointwise(cudnnPointwiseMode_t mode, llvm::ArrayRef<Tensor> in, const Tensor &out);
  /// Of each element of `like` its index along a dimension.
  Tensor indices(int64_t dim, const Tensor &like);
  /// Along the dimensions of which `out` has size 1.
  Tensor reduce(cudnnReduceTensorOp_t operation, const Tensor &in, const Tensor &out);
  /// The same elements seen otherwise.
  Tensor reshape(const Tensor &in, const Tensor &out);

  /// Ends the construction.
  cudnnBackendDescriptor_t finalize();

  CuDNNDescriptors &descriptors() { return descriptors_; }
  llvm::ArrayRef<CuDNNBinding> bindings() const { return bindings_; }
  uint64_t workspaceBytes() const { return workspaceBytes_; }

private:
  enum class Storage { Memory, Number, None };
  Tensor tensor(const Sizes &shape, const Sizes &strides, cudnnDataType_t type, Storage storage);
  Tensor addPointwise(cudnnPointwiseMode_t mode, std::optional<int64_t> axis,
                      llvm::ArrayRef<Tensor> in, const Tensor &out);

  CuDNNDescriptors descriptors_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::vector<CuDNNBinding> bindings_;
  int64_t numTensors_ = 0;
  uint64_t workspaceBytes_ = 0;
};

/// The operations of an attention, added to `graph` in the form that cuDNN knows.
void addAttention(CuDNNGraph &graph, const FusedAttention &attention);

} // namespace rondo::cuda
