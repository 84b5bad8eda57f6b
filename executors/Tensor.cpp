//===- Tensor.cpp - Values of tensors at run time -------------------------===//

#include "rondo/executors/Tensor.h"

#include "rondo/executors/Value.h"
#include "rondo/ir/Attribute.h"

#include <cstring>

using namespace rondo;

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

llvm::Expected<StorageRef> Storage::allocate(DeviceRef device, size_t bytes) {
  llvm::Expected<void *> data = device->allocate(bytes);
  if (!data)
    return data.takeError();
  Device where = device->device();
  return StorageRef(new Storage(*data, bytes, where, std::move(device), nullptr));
}

StorageRef Storage::borrow(void *data, size_t bytes, Device device, std::function<void()> release) {
  return StorageRef(new Storage(data, bytes, device, nullptr, std::move(release)));
}

Storage::~Storage() {
  if (owner_)
    owner_->deallocate(data_, bytes_);
  else if (release_)
    release_();
}

//===----------------------------------------------------------------------===//
// Tensor
//===----------------------------------------------------------------------===//

static int64_t product(llvm::ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

static llvm::SmallVector<int64_t, 5> rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 5> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

int64_t TensorRef::numElements() const {
  return product(shape);
}

size_t rondo::stridedExtentBytes(DType dtype, llvm::ArrayRef<int64_t> shape,
                                 llvm::ArrayRef<int64_t> strides) {
  assert(shape.size() == strides.size() && "a stride for every size");
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0)
      return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return size_t(last + 1) * dtypeSize(dtype);
}

void rondo::forEachElement(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides,
                           llvm::function_ref<void(int64_t, int64_t)> visit) {
  llvm::SmallVector<int64_t, 5> index(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0, count = product(shape); i < count; ++i) {
    visit(i, offset);
    for (size_t d = shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < shape[d])
        break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

llvm::SmallVector<int64_t, 5> rondo::constantDims(const Dims &dims) {
  llvm::SmallVector<int64_t, 5> values;
  for (const Dim &dim : dims)
    values.push_back(dim.value());
  return values;
}

TensorLayout::TensorLayout(Device device, DType dtype, llvm::ArrayRef<int64_t> shape,
                           llvm::ArrayRef<int64_t> strides)
    : device(device), dtype(dtype), shape(shape.begin(), shape.end()),
      strides(strides.begin(), strides.end()), numElements(product(shape)),
      extentBytes(stridedExtentBytes(dtype, shape, strides)) {}

LayoutRef TensorLayout::get(const TensorType &type) {
  return LayoutRef(new TensorLayout(type.device, type.dtype, constantDims(type.shape),
                                    constantDims(type.strides)));
}

Tensor::Tensor(StorageRef storage, int64_t byteOffset, LayoutRef layout)
    : storage_(std::move(storage)), layout_(std::move(layout)) {
  assert(storage_->device() == layout_->device && "a storage of another device");
  assert(byteOffset >= 0 && byteOffset + extentBytes() <= storage_->bytes() &&
         "elements outside of the storage");
  data_ = storage_->data() + byteOffset;
}

Tensor::Tensor(StorageRef storage, int64_t byteOffset, DType dtype, llvm::ArrayRef<int64_t> shape,
               llvm::ArrayRef<int64_t> strides)
    : Tensor(storage, byteOffset,
             LayoutRef(new TensorLayout(storage->device(), dtype, shape, strides))) {}

llvm::Expected<Tensor> Tensor::empty(DeviceRef device, DType dtype, llvm::ArrayRef<int64_t> shape) {
  llvm::Expected<StorageRef> storage =
      Storage::allocate(std::move(device), product(shape) * dtypeSize(dtype));
  if (!storage)
    return storage.takeError();
  return Tensor(std::move(*storage), 0, dtype, shape, rowMajorStrides(shape));
}

llvm::Expected<Tensor> Tensor::empty(DeviceRef device, const TensorType &type) {
  llvm::SmallVector<int64_t, 5> shape = constantDims(type.shape),
                                strides = constantDims(type.strides);
  llvm::Expected<StorageRef> storage =
      Storage::allocate(std::move(device), stridedExtentBytes(type.dtype, shape, strides));
  if (!storage)
    return storage.takeError();
  return Tensor(std::move(*storage), 0, type.dtype, shape, strides);
}

bool Tensor::isContiguous() const {
  int64_t stride = 1;
  if (numElements() == 0)
    return true;
  for (size_t i = rank(); i-- > 0;) {
    if (shape()[i] != 1 && strides()[i] != stride)
      return false;
    stride *= shape()[i];
  }
  return true;
}

TensorType Tensor::type() const {
  return TensorType(dtype(), Dims(shape().begin(), shape().end()),
                    Dims(strides().begin(), strides().end()), device());
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Elements of `source`, in host memory, in row-major order.
static void gather(const TensorRef &source, std::byte *destination) {
  size_t size = dtypeSize(source.dtype);
  forEachElement(source.shape, source.strides, [&](int64_t i, int64_t offset) {
    std::memcpy(destination + i * size, source.as<std::byte>() + offset * size, size);
  });
}

llvm::Expected<Tensor> rondo::copyTo(const DeviceRef &device, const Tensor &source,
                                     Stream &stream) {
  llvm::Expected<Tensor> copy = Tensor::empty(device, source.dtype(), source.shape());
  if (!copy)
    return copy;
  // All bytes between the first and the last element are brought to the host where there are gaps.
  std::vector<std::byte> extent, dense;
  const std::byte *from = source.data();
  if (!source.isContiguous()) {
    extent.resize(source.extentBytes());
    if (llvm::Error error = stream.copy(extent.data(), source.data(), extent.size()))
      return error;
    if (llvm::Error error = stream.synchronize())
      return error;
    TensorRef ref = source.ref();
    ref.data = extent.data();
    dense.resize(copy->extentBytes());
    gather(ref, dense.data());
    from = dense.data();
  }
  if (llvm::Error error = stream.copy(copy->data(), from, copy->extentBytes()))
    return error;
  if (llvm::Error error = stream.synchronize())
    return error;
  return copy;
}

//===----------------------------------------------------------------------===//
// Value
//===----------------------------------------------------------------------===//

std::string Value::description() const {
  if (const Tensor *tensor = asTensor())
    return tensor->isNull() ? "a null tensor" : Type(tensor->type()).str();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (const int64_t *value = asInt())
    os << "i64 " << *value;
  else if (const double *value = asFloat()) {
    os << "f64 ";
    printDouble(os, *value);
  } else if (const bool *value = asBool())
    os << "bool " << (*value ? "true" : "false");
  else
    os << "none";
  return os.str();
}
