//===- TensorTest.cpp - Values of tensors at run time ---------------------===//

#include "rondo/executors/Tensor.h"
#include "rondo/executors/Value.h"
#include "rondo/host/HostDevice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

using Ints = llvm::SmallVector<int64_t, 5>;

/// A view of `bytes` bytes that belong to nobody.
Tensor viewOf(DType dtype, Ints shape, Ints strides, Device device = Device::host()) {
  static constexpr size_t bytes = 4096;
  alignas(256) static std::byte memory[bytes];
  return Tensor(Storage::borrow(memory, bytes, device), 0, dtype, shape, strides);
}

/// Elements in memory order.
template <typename T> std::vector<T> elementsOf(const Tensor &tensor) {
  const T *data = tensor.ref().as<T>();
  return std::vector<T>(data, data + tensor.extentBytes() / sizeof(T));
}

std::string messageOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

} // namespace

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

// Allocated memory is the device's, aligned, and goes back with the last reference, which also
// keeps the device.
TEST(Storage, OwnsWhatItAllocates) {
  int64_t balance = 0;
  DeviceRef device = createHostDevice({.memoryHook = [&](int64_t bytes) { balance += bytes; }});
  std::weak_ptr<DeviceAPI> watched = device;
  StorageRef storage = llvm::cantFail(Storage::allocate(device, 100));
  EXPECT_EQ(storage->bytes(), 100u);
  EXPECT_EQ(storage->device(), Device::host());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % DeviceAPI::allocationAlignment, 0u);
  EXPECT_EQ(device->memoryUse().bytes, 100u);
  EXPECT_EQ(balance, 100);

  device.reset();
  EXPECT_FALSE(watched.expired());
  StorageRef other = storage;
  storage.reset();
  EXPECT_EQ(balance, 100);
  other.reset();
  EXPECT_EQ(balance, 0);
  EXPECT_TRUE(watched.expired());
}

// No bytes are no memory; more than there is is an error of the device.
TEST(Storage, AllocatesNothingOrTooMuch) {
  DeviceRef device = createHostDevice({.memoryLimit = 1000});
  EXPECT_EQ(llvm::cantFail(Storage::allocate(device, 0))->data(), nullptr);
  llvm::Error error = Storage::allocate(device, 1001).takeError();
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::OutOfMemory);
  llvm::consumeError(std::move(error));
  EXPECT_EQ(device->memoryUse().bytes, 0u);
  EXPECT_EQ(llvm::cantFail(Storage::allocate(device, 1000))->bytes(), 1000u);
}

// Borrowed memory is given back once, with the last reference, where the lender asks for it.
TEST(Storage, GivesBackWhatItBorrows) {
  std::byte memory[8];
  unsigned numReleases = 0;
  {
    StorageRef storage = Storage::borrow(memory, 8, Device::cuda(3), [&] { ++numReleases; }),
               other = storage;
    EXPECT_EQ(storage->data(), memory);
    EXPECT_EQ(storage->bytes(), 8u);
    EXPECT_EQ(storage->device(), Device::cuda(3));
    storage.reset();
    EXPECT_EQ(numReleases, 0u);
  }
  EXPECT_EQ(numReleases, 1u);
  Storage::borrow(memory, 8, Device::host());
}

// A reference is unique exactly as long as there is no other.
TEST(Storage, IsUnique) {
  StorageRef storage = Storage::borrow(nullptr, 0, Device::host());
  EXPECT_TRUE(storage->isUnique());
  {
    Tensor tensor(storage, 0, DType::F32, {0}, {1});
    EXPECT_FALSE(storage->isUnique());
  }
  EXPECT_TRUE(storage->isUnique());
}

//===----------------------------------------------------------------------===//
// Tensor
//===----------------------------------------------------------------------===//

// A default tensor is null, others are not.
TEST(Tensor, Null) {
  EXPECT_TRUE(Tensor().isNull());
  EXPECT_FALSE(bool(Tensor()));
  EXPECT_TRUE(bool(viewOf(DType::F32, {}, {})));
}

// A tensor is a view: copies and views share memory, and say where they start in it.
TEST(Tensor, SharesItsStorage) {
  DeviceRef device = createHostDevice();
  Tensor whole = llvm::cantFail(Tensor::empty(device, DType::I32, {3, 4}));
  Tensor row(whole.storage(), 16, DType::I32, {4}, {1});
  EXPECT_EQ(row.storage(), whole.storage());
  EXPECT_EQ(row.byteOffset(), 16);
  EXPECT_EQ(row.data(), whole.data() + 16);
  EXPECT_EQ(row.ref().data, row.data());
  Tensor copy = row;
  copy.ref().as<int32_t>()[0] = 7;
  EXPECT_EQ(whole.ref().as<int32_t>()[4], 7);
}

// Extent, number of elements and contiguity follow from sizes and strides.
TEST(Tensor, Layouts) {
  struct Case {
    DType dtype;
    Ints shape, strides;
    int64_t numElements;
    size_t extentBytes;
    bool isContiguous;
  };
  const Case cases[] = {
      {DType::F32, {}, {}, 1, 4, true},
      {DType::F64, {3}, {1}, 3, 24, true},
      {DType::F32, {2, 3}, {3, 1}, 6, 24, true},
      {DType::F32, {2, 3}, {1, 2}, 6, 24, false},
      {DType::F32, {2, 3}, {4, 1}, 6, 28, false},
      {DType::BF16, {4}, {2}, 4, 14, false},
      {DType::U8, {5, 4}, {0, 1}, 20, 4, false},
      {DType::U8, {5}, {0}, 5, 1, false},
      {DType::F32, {2, 1, 3}, {3, 99, 1}, 6, 24, true}, // the stride of a size of 1 does not matter
      {DType::F32, {1, 1}, {7, 9}, 1, 4, true},
      {DType::F32, {2, 0}, {99, 99}, 0, 0, true}, // none does where there are no elements
      {DType::F32, {0}, {0}, 0, 0, true},
  };
  for (const Case &c : cases) {
    Tensor tensor = viewOf(c.dtype, c.shape, c.strides);
    SCOPED_TRACE(Type(tensor.type()).str());
    EXPECT_EQ(tensor.numElements(), c.numElements);
    EXPECT_EQ(tensor.ref().numElements(), c.numElements);
    EXPECT_EQ(tensor.extentBytes(), c.extentBytes);
    EXPECT_EQ(stridedExtentBytes(c.dtype, c.shape, c.strides), c.extentBytes);
    EXPECT_EQ(tensor.isContiguous(), c.isContiguous);
    EXPECT_EQ(tensor.rank(), c.shape.size());
    EXPECT_EQ(tensor.ref().rank(), c.shape.size());
  }
}

// The type has dtype, shape, strides and the device of the storage.
TEST(Tensor, Type) {
  EXPECT_EQ(Type(viewOf(DType::F16, {2, 3}, {1, 2}, Device::cuda(1)).type()).str(),
            "f16[2, 3; 1, 2]@cuda:1");
}

// A new tensor is row-major, or as a type says but for its device; its storage holds no more.
TEST(Tensor, Empty) {
  DeviceRef device = createHostDevice({.index = 2});
  Tensor rowMajor = llvm::cantFail(Tensor::empty(device, DType::F32, {2, 0, 3}));
  EXPECT_EQ(Type(rowMajor.type()).str(), "f32[2, 0, 3]@host:2");
  EXPECT_EQ(rowMajor.storage()->bytes(), 0u);
  rowMajor = llvm::cantFail(Tensor::empty(device, DType::I64, {2, 3}));
  EXPECT_THAT(rowMajor.strides(), ElementsAre(3, 1));
  EXPECT_EQ(rowMajor.storage()->bytes(), 48u);

  const TensorType type(DType::F32, {2, 3}, {8, 2}, Device::cuda(0));
  Tensor strided = llvm::cantFail(Tensor::empty(device, type));
  EXPECT_EQ(Type(strided.type()).str(), "f32[2, 3; 8, 2]@host:2");
  EXPECT_EQ(strided.storage()->bytes(), 52u);
  EXPECT_EQ(strided.byteOffset(), 0);
  EXPECT_EQ(strided.device(), device->device());

  DeviceRef small = createHostDevice({.memoryLimit = 10});
  EXPECT_THAT(messageOf(Tensor::empty(small, type).takeError()),
              ::testing::StartsWith("out of memory: "));
  EXPECT_THAT(messageOf(Tensor::empty(small, DType::F32, {3}).takeError()),
              ::testing::StartsWith("out of memory: "));
}

// Numbers of a type without symbols.
TEST(Tensor, ConstantDims) {
  EXPECT_THAT(constantDims({2, 0, 7}), ElementsAre(2, 0, 7));
  EXPECT_THAT(constantDims({}), IsEmpty());
}

#if !defined(NDEBUG) && GTEST_HAS_DEATH_TEST
// Elements outside of the storage, and sizes without strides, are a caller's bug.
TEST(TensorDeathTest, OutsideOfTheStorage) {
  std::array<std::byte, 24> bytes;
  StorageRef storage = Storage::borrow(bytes.data(), bytes.size(), Device::host());
  Tensor fits(storage, 4, DType::F32, {5}, {1});
  EXPECT_DEATH(Tensor(storage, 8, DType::F32, {5}, {1}), "outside of the storage");
  EXPECT_DEATH(Tensor(storage, -4, DType::F32, {1}, {1}), "outside of the storage");
  EXPECT_DEATH(Tensor(storage, 0, DType::F32, {2, 2}, {1}), "a stride for every size");
}
#endif

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

// A copy is row-major memory of its own, whatever the layout of the source.
TEST(CopyTo, AnyLayout) {
  struct Case {
    Ints shape, strides;
    int64_t offset; ///< in elements
    std::vector<int32_t> elements;
  };
  const Case cases[] = {
      {{2, 3}, {3, 1}, 0, {0, 1, 2, 3, 4, 5}},
      {{3, 2}, {1, 3}, 0, {0, 3, 1, 4, 2, 5}},
      {{2, 2}, {4, 2}, 1, {1, 3, 5, 7}},
      {{2, 3}, {0, 1}, 4, {4, 5, 6, 4, 5, 6}},
      {{2, 1, 2}, {2, 9, 1}, 2, {2, 3, 4, 5}},
      {{}, {}, 7, {7}},
      {{2, 0}, {5, 5}, 3, {}},
  };
  for (bool asynchronous : {false, true}) {
    DeviceRef from = createHostDevice({.asynchronous = asynchronous});
    DeviceRef to = createHostDevice({.index = 1, .asynchronous = asynchronous, .poison = true});
    auto stream = llvm::cantFail(to->createStream());
    Tensor numbers = llvm::cantFail(Tensor::empty(from, DType::I32, {8}));
    for (int i = 0; i < 8; ++i)
      numbers.ref().as<int32_t>()[i] = i;
    for (const Case &c : cases) {
      Tensor source(numbers.storage(), c.offset * 4, DType::I32, c.shape, c.strides);
      Tensor copy = llvm::cantFail(copyTo(to, source, *stream));
      EXPECT_EQ(copy.type(), TensorType(DType::I32, Dims(c.shape.begin(), c.shape.end()),
                                        Device{DeviceKind::Host, 1}));
      EXPECT_EQ(elementsOf<int32_t>(copy), c.elements);
      EXPECT_NE(copy.storage(), source.storage());
    }
  }
}

// A copy is ordered on the stream: it sees what was submitted before, and is there when it returns.
TEST(CopyTo, WaitsForTheStream) {
  DeviceRef device = createHostDevice({.asynchronous = true});
  auto stream = llvm::cantFail(device->createStream());
  for (Ints strides : {Ints{1}, Ints{2}}) {
    Tensor source = llvm::cantFail(
        Tensor::empty(device, TensorType(DType::U8, {1000}, {strides[0]}, Device::host())));
    std::memset(source.data(), 0, source.extentBytes());
    llvm::cantFail(stream->fill(source.data(), 9, source.extentBytes()));
    Tensor copy = llvm::cantFail(copyTo(device, source, *stream));
    EXPECT_EQ(elementsOf<uint8_t>(copy), std::vector<uint8_t>(1000, 9));
  }
}

// A device without room for the copy says so.
TEST(CopyTo, OutOfMemory) {
  DeviceRef small = createHostDevice({.memoryLimit = 10});
  auto stream = llvm::cantFail(small->createStream());
  llvm::Error error = copyTo(small, viewOf(DType::F32, {4}, {1}), *stream).takeError();
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::OutOfMemory);
  llvm::consumeError(std::move(error));
}

//===----------------------------------------------------------------------===//
// Value
//===----------------------------------------------------------------------===//

// A value is exactly one thing, and says which.
TEST(Value, KindsAndDescriptions) {
  struct Case {
    Value value;
    std::string description;
    int kind; ///< of: none, tensor, integer, float, bool
  };
  const Case cases[] = {
      {Value(), "none", 0},
      {viewOf(DType::F32, {8, 32}, {32, 1}), "f32[8, 32]", 1},
      {viewOf(DType::I64, {2, 2}, {1, 2}, Device::cuda(0)), "i64[2, 2; 1, 2]@cuda:0", 1},
      {Tensor(), "a null tensor", 1},
      {int64_t(-7), "i64 -7", 2},
      {2.5, "f64 2.5", 3},
      {1.0, "f64 1.0", 3},
      {true, "bool true", 4},
      {false, "bool false", 4},
  };
  for (const Case &c : cases) {
    EXPECT_EQ(c.value.description(), c.description);
    EXPECT_EQ(c.value.isNone(), c.kind == 0) << c.description;
    EXPECT_EQ(c.value.asTensor() != nullptr, c.kind == 1) << c.description;
    EXPECT_EQ(c.value.asInt() != nullptr, c.kind == 2) << c.description;
    EXPECT_EQ(c.value.asFloat() != nullptr, c.kind == 3) << c.description;
    EXPECT_EQ(c.value.asBool() != nullptr, c.kind == 4) << c.description;
  }
  EXPECT_EQ(*Value(int64_t(-7)).asInt(), -7);
  EXPECT_EQ(*Value(2.5).asFloat(), 2.5);
  EXPECT_EQ(*Value(true).asBool(), true);
}

// A tensor in a value shares its storage.
TEST(Value, HoldsTensors) {
  Tensor tensor = viewOf(DType::F32, {2}, {1});
  EXPECT_TRUE(tensor.storage()->isUnique());
  Value value = tensor;
  EXPECT_EQ(value.asTensor()->storage(), tensor.storage());
  EXPECT_FALSE(tensor.storage()->isUnique());
}
