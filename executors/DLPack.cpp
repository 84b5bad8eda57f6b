//===- DLPack.cpp - Tensors shared with other libraries -------------------===//
//
// The structs of DLPack's ABI are declared here, with the names, the order of fields and the values
// that dlpack.h 1.0 has: distributions carry older versions, without versions, bool and 8-bit
// floats.
//
//===----------------------------------------------------------------------===//

#include "rondo/executors/DLPack.h"

#include "rondo/ir/Diagnostic.h"

#include <optional>

// NOLINTBEGIN(readability-identifier-naming): the names are those of the ABI
extern "C" {

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

struct DLDevice {
  int32_t device_type; // an enum of that size
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
};

} // extern "C"
// NOLINTEND(readability-identifier-naming)

using namespace rondo;

static constexpr int32_t kindCPU = 1, kindCUDA = 2;
static constexpr uint32_t majorVersion = 1;
static constexpr uint64_t flagReadOnly = 1;
/// No tensor type of a trace has more.
static constexpr int32_t maxRank = 64;

//===----------------------------------------------------------------------===//
// Dtypes
//===----------------------------------------------------------------------===//

static DLDataType toDLPack(DType dtype) {
  constexpr uint8_t codeInt = 0, codeUInt = 1, codeFloat = 2, codeBFloat = 4, codeBool = 6,
                    codeFloat8E4M3FN = 10, codeFloat8E5M2 = 12;
  const auto bits = uint8_t(8 * dtypeSize(dtype));
  switch (dtype) {
  case DType::Bool:
    return {codeBool, bits, 1};
  case DType::U8:
    return {codeUInt, bits, 1};
  case DType::I8:
  case DType::I16:
  case DType::I32:
  case DType::I64:
    return {codeInt, bits, 1};
  case DType::F8E4M3:
    return {codeFloat8E4M3FN, bits, 1};
  case DType::F8E5M2:
    return {codeFloat8E5M2, bits, 1};
  case DType::BF16:
    return {codeBFloat, bits, 1};
  case DType::F16:
  case DType::F32:
  case DType::F64:
    break;
  }
  return {codeFloat, bits, 1};
}

static std::optional<DType> fromDLPack(DLDataType type) {
  for (DType dtype : allDTypes) {
    DLDataType own = toDLPack(dtype);
    if (own.code == type.code && own.bits == type.bits && own.lanes == type.lanes)
      return dtype;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

using Ints = llvm::SmallVector<int64_t, 5>;

static llvm::Expected<Device> readDevice(DLDevice device) {
  if (device.device_type != kindCPU && device.device_type != kindCUDA)
    return makeError("expected a DLPack tensor on a device of kind 1 (CPU) or 2 (CUDA), got " +
                     llvm::Twine(device.device_type));
  if (device.device_id < 0 || device.device_id > UINT16_MAX)
    return makeError("expected a DLPack tensor on a device from 0 to 65535, got " +
                     llvm::Twine(device.device_id));
  return Device{device.device_type == kindCPU ? DeviceKind::Host : DeviceKind::CUDA,
                uint16_t(device.device_id)};
}

/// `count` numbers that may not be negative.
static llvm::Expected<Ints> readInts(const int64_t *values, int32_t count, llvm::StringRef what) {
  Ints ints(values, values + count);
  for (int64_t value : ints)
    if (value < 0)
      return makeError("expected a DLPack tensor of " + what + " of at least 0, got " +
                       llvm::Twine(value));
  return ints;
}

/// Row-major strides. Nothing if a number of elements does not fit 63 bits.
static std::optional<Ints> rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  Ints strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(shape[i], 1), &stride))
      return std::nullopt;
  }
  return strides;
}

/// Returns true if the bytes from the first to past the last element fit 63 bits.
static bool extentFits(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides,
                       int64_t elementBytes) {
  int64_t elements = 1, step = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0)
      return true;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(elements, step, &elements))
      return false;
  }
  return !__builtin_mul_overflow(elements, elementBytes, &elements);
}

/// What a DLTensor says; its memory is borrowed.
static llvm::Expected<Tensor> readTensor(const DLTensor &from, std::function<void()> release) {
  llvm::Expected<Device> device = readDevice(from.device);
  if (!device)
    return device.takeError();
  std::optional<DType> dtype = fromDLPack(from.dtype);
  if (!dtype)
    return makeError("no dtype for a DLPack tensor of code " +
                     llvm::Twine(unsigned(from.dtype.code)) + ", " +
                     llvm::Twine(unsigned(from.dtype.bits)) + " bits and " +
                     llvm::Twine(from.dtype.lanes) + " lanes");
  if (from.ndim < 0 || from.ndim > maxRank || (from.ndim > 0 && !from.shape))
    return makeError("expected a DLPack tensor of 0 to " + llvm::Twine(maxRank) +
                     " dimensions with sizes, got " + llvm::Twine(from.ndim) +
                     (from.shape ? "" : " without"));
  llvm::Expected<Ints> shape = readInts(from.shape, from.ndim, "sizes");
  if (!shape)
    return shape.takeError();
  std::optional<Ints> rowMajor = rowMajorStrides(*shape);
  constexpr llvm::StringLiteral tooLarge =
      "expected a DLPack tensor whose size in bytes fits 63 bits";
  if (!rowMajor)
    return makeError(tooLarge);
  llvm::Expected<Ints> strides = from.strides ? readInts(from.strides, from.ndim, "strides")
                                              : llvm::Expected<Ints>(std::move(*rowMajor));
  if (!strides)
    return strides.takeError();
  unsigned elementBytes = dtypeSize(*dtype);
  if (!extentFits(*shape, *strides, elementBytes))
    return makeError(tooLarge);

  size_t bytes = stridedExtentBytes(*dtype, *shape, *strides);
  auto address = reinterpret_cast<uintptr_t>(from.data) + from.byte_offset;
  if (bytes != 0 && (!from.data || address < from.byte_offset))
    return makeError("expected a DLPack tensor with data, got none");
  if (bytes != 0 && address % elementBytes != 0)
    return makeError("expected a DLPack tensor with data aligned to " + llvm::Twine(elementBytes) +
                     " bytes");
  StorageRef storage = Storage::borrow(bytes != 0 ? reinterpret_cast<void *>(address) : nullptr,
                                       bytes, *device, std::move(release));
  return Tensor(std::move(storage), 0, *dtype, *shape, *strides);
}

template <typename Managed> static std::function<void()> deleterOf(Managed *managed) {
  return [managed] {
    if (managed->deleter)
      managed->deleter(managed);
  };
}

llvm::Expected<Tensor> rondo::importDLPack(DLManagedTensor *managed) {
  if (!managed)
    return makeError("expected a DLPack tensor, got null");
  return readTensor(managed->dl_tensor, deleterOf(managed));
}

llvm::Expected<Tensor> rondo::importDLPack(DLManagedTensorVersioned *managed) {
  if (!managed)
    return makeError("expected a DLPack tensor, got null");
  // What lies behind the version depends on it.
  if (managed->version.major != majorVersion)
    return makeError("expected a DLPack tensor of version 1, got " +
                     llvm::Twine(managed->version.major) + "." +
                     llvm::Twine(managed->version.minor));
  if (managed->flags & flagReadOnly)
    return makeError("expected a DLPack tensor that may be written, got a read-only one");
  return readTensor(managed->dl_tensor, deleterOf(managed));
}

//===----------------------------------------------------------------------===//
// Export
//===----------------------------------------------------------------------===//

namespace {
/// What the deleter deletes. Sizes and strides are those of the tensor.
template <typename Managed> struct Exported {
  Tensor tensor;
  Managed managed = {};
};
} // namespace

template <typename Managed> static Managed *share(const Tensor &tensor) {
  assert(!tensor.isNull() && "export of a null tensor");
  auto *exported = new Exported<Managed>{tensor};
  const Tensor &kept = exported->tensor;
  Device device = kept.device();
  DLTensor &to = exported->managed.dl_tensor;
  to.data = kept.data();
  to.device = {device.isHost() ? kindCPU : kindCUDA, device.index};
  to.ndim = int32_t(kept.rank());
  to.dtype = toDLPack(kept.dtype());
  to.shape = const_cast<int64_t *>(kept.shape().data()); // the ABI has no const
  to.strides = const_cast<int64_t *>(kept.strides().data());
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = [](Managed *self) {
    delete static_cast<Exported<Managed> *>(self->manager_ctx);
  };
  return &exported->managed;
}

DLManagedTensor *rondo::exportDLPack(const Tensor &tensor) {
  return share<DLManagedTensor>(tensor);
}

DLManagedTensorVersioned *rondo::exportDLPackVersioned(const Tensor &tensor) {
  auto *managed = share<DLManagedTensorVersioned>(tensor);
  managed->version = {majorVersion, 0};
  return managed;
}
