//===- Tensor.h - Values of tensors at run time -----------------*- C++ -*-===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

#include "rondo/ir/DType.h"
#include "rondo/ir/Type.h"

#include "llvm/ADT/IntrusiveRefCntPtr.h"

#include <atomic>

namespace rondo {

class Storage;
using StorageRef = llvm::IntrusiveRefCntPtr<Storage>;

/// Bytes of memory of one device, owned or borrowed; counted intrusively, from any thread.
class Storage {
public:
  /// Owns `bytes` new, uninitialised bytes.
  static llvm::Expected<StorageRef> allocate(DeviceRef device, size_t bytes);
  /// Borrows memory that the caller keeps valid until `release` is called, by whichever thread
  /// drops the last reference; `release` may be null.
  static StorageRef borrow(void *data, size_t bytes, Device device,
                           std::function<void()> release = nullptr);

  std::byte *data() const { return static_cast<std::byte *>(data_); }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// True if the caller's is the only reference; what the others did before they dropped theirs has
  /// happened.
  bool isUnique() const { return references_.load(std::memory_order_acquire) == 1; }

  // For IntrusiveRefCntPtr.
  void Retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }

private:
  Storage(void *data, size_t bytes, Device device, DeviceRef owner, std::function<void()> release)
      : data_(data), bytes_(bytes), device_(device), owner_(std::move(owner)),
        release_(std::move(release)) {}
  ~Storage();

  void *data_;
  size_t bytes_;
  Device device_;
  DeviceRef owner_; ///< of memory that we allocated, else null
  std::function<void()> release_;
  mutable std::atomic<uint32_t> references_ = 0;
};

/// Where the elements of a tensor lie: a pointer and what its bytes mean. Borrows everything.
struct TensorRef {
  void *data = nullptr;
  DType dtype = DType::F32;
  llvm::ArrayRef<int64_t> shape;   ///< in elements
  llvm::ArrayRef<int64_t> strides; ///< in elements, same length

  unsigned rank() const { return shape.size(); }
  int64_t numElements() const;
  template <typename T> T *as() const { return static_cast<T *>(data); }
};

class TensorLayout;
using LayoutRef = llvm::IntrusiveRefCntPtr<const TensorLayout>;

/// All that is the same for tensors of one type: where they are and what their bytes mean.
/// Immutable, shared by copies of a tensor, so that comparing two tensors' types begins with a
/// pointer.
class TensorLayout {
public:
  TensorLayout(Device device, DType dtype, llvm::ArrayRef<int64_t> shape,
               llvm::ArrayRef<int64_t> strides);
  /// `type` has no symbols.
  static LayoutRef get(const TensorType &type);

  const Device device;
  const DType dtype;
  const llvm::SmallVector<int64_t, 5> shape, strides; ///< in elements, same length
  const int64_t numElements;
  /// Bytes from the first to past the last element; 0 without elements.
  const size_t extentBytes;

  // For IntrusiveRefCntPtr.
  void Retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }

private:
  mutable std::atomic<uint32_t> references_ = 0;
};

/// A view of a storage. Copying shares storage and layout. Immutable but for assignment.
class Tensor {
public:
  Tensor() = default;
  /// Elements start `byteOffset` bytes into `storage`. Asserts that they lie within it, and that it
  /// is on the layout's device.
  Tensor(StorageRef storage, int64_t byteOffset, LayoutRef layout);
  Tensor(StorageRef storage, int64_t byteOffset, DType dtype, llvm::ArrayRef<int64_t> shape,
         llvm::ArrayRef<int64_t> strides);

  /// New, uninitialised, row-major.
  static llvm::Expected<Tensor> empty(DeviceRef device, DType dtype, llvm::ArrayRef<int64_t> shape);
  /// New, uninitialised, with the shape and strides of `type`, which has no symbols. `type`'s
  /// device is not looked at.
  static llvm::Expected<Tensor> empty(DeviceRef device, const TensorType &type);

  bool isNull() const { return !storage_; }
  explicit operator bool() const { return !isNull(); }
  // Of what is not null.
  const LayoutRef &layout() const { return layout_; }
  DType dtype() const { return layout_->dtype; }
  llvm::ArrayRef<int64_t> shape() const { return layout_->shape; }
  llvm::ArrayRef<int64_t> strides() const { return layout_->strides; }
  unsigned rank() const { return layout_->shape.size(); }
  int64_t numElements() const { return layout_->numElements; }
  Device device() const { return layout_->device; }
  const StorageRef &storage() const { return storage_; }
  int64_t byteOffset() const { return data_ - storage_->data(); }
  std::byte *data() const { return data_; }
  TensorRef ref() const { return {data_, dtype(), shape(), strides()}; }
  /// Bytes from the first to past the last element that it names; 0 if it has none.
  size_t extentBytes() const { return layout_->extentBytes; }
  bool isContiguous() const;
  TensorType type() const;

private:
  StorageRef storage_;
  std::byte *data_ = nullptr;
  LayoutRef layout_;
};

/// Bytes from the first to past the last element of a tensor with these sizes and strides (not
/// negative); 0 if it has no elements.
size_t stridedExtentBytes(DType dtype, llvm::ArrayRef<int64_t> shape,
                          llvm::ArrayRef<int64_t> strides);
/// Calls `visit(i, offset)` for every element in row-major order: its number, and where it is, in
/// elements from the first.
void forEachElement(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides,
                    llvm::function_ref<void(int64_t i, int64_t offset)> visit);
/// The sizes or strides of a type without symbols.
llvm::SmallVector<int64_t, 5> constantDims(const Dims &dims);

/// A row-major copy on `device`; waits for it. `stream` is of the device that is no host, if one of
/// the two is none, and orders the copy.
llvm::Expected<Tensor> copyTo(const DeviceRef &device, const Tensor &source, Stream &stream);

} // namespace rondo
