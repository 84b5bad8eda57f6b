//===- DLPackTest.cpp - Tensors shared with other libraries ---------------===//

#include "rondo/executors/DLPack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

// What a program that includes dlpack.h 1.0 sees, transcribed for the ABI's sake.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

/// The struct of `tensor`, as both versions have it.
template <typename Managed> Managed *exported(const Tensor &tensor) {
  if constexpr (std::is_same_v<Managed, DLManagedTensor>)
    return exportDLPack(tensor);
  else
    return exportDLPackVersioned(tensor);
}

/// A tensor of somebody else: f32[2, 3], counting how often it is deleted.
template <typename Managed> struct Foreign {
  alignas(16) float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {3, 1};
  unsigned numDeleted = 0;
  Managed managed = {};

  Foreign() {
    managed.dl_tensor = {data, {1, 0}, 2, {2, 32, 1}, shape, strides, 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed *self) {
      ++static_cast<Foreign *>(self->manager_ctx)->numDeleted;
    };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>)
      managed.version = {1, 1};
  }
};

template <typename Managed> std::string outcomeOf(Managed *managed) {
  llvm::Expected<Tensor> tensor = importDLPack(managed);
  return tensor ? "success" : llvm::toString(tensor.takeError());
}

Tensor tensorOver(void *data, size_t bytes, DType dtype, llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<int64_t> strides, Device device = Device::host(),
                  std::function<void()> release = nullptr) {
  return Tensor(Storage::borrow(data, bytes, device, std::move(release)), 0, dtype, shape, strides);
}

template <typename Managed> class DLPackTest : public ::testing::Test {};
using BothVersions = ::testing::Types<DLManagedTensor, DLManagedTensorVersioned>;
TYPED_TEST_SUITE(DLPackTest, BothVersions);

} // namespace

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

// An imported tensor looks into the same memory, which is given back, once, with the last
// reference.
TYPED_TEST(DLPackTest, ImportShares) {
  Foreign<TypeParam> foreign;
  {
    Tensor view;
    {
      Tensor tensor = llvm::cantFail(importDLPack(&foreign.managed));
      EXPECT_EQ(Type(tensor.type()).str(), "f32[2, 3]");
      EXPECT_EQ(tensor.ref().template as<float>(), foreign.data);
      EXPECT_EQ(tensor.storage()->bytes(), 24u);
      view = Tensor(tensor.storage(), 4, DType::F32, {2}, {1});
    }
    EXPECT_EQ(foreign.numDeleted, 0u);
    view.ref().template as<float>()[0] = 7;
    EXPECT_EQ(foreign.data[1], 7);
  }
  EXPECT_EQ(foreign.numDeleted, 1u);
}

// Offsets in bytes, missing strides, strides with gaps, devices and a missing deleter are
// understood.
TYPED_TEST(DLPackTest, ImportsWhatThereIs) {
  Foreign<TypeParam> foreign;
  DLTensor &tensor = foreign.managed.dl_tensor;
  const auto import = [&] { return llvm::cantFail(importDLPack(&foreign.managed)); };

  tensor.byte_offset = 8;
  EXPECT_EQ(import().ref().template as<float>(), foreign.data + 2);
  tensor.byte_offset = 0;
  tensor.strides = nullptr;
  EXPECT_THAT(import().strides(), ElementsAre(3, 1));
  tensor.strides = foreign.strides;
  foreign.strides[0] = 1;
  foreign.strides[1] = 2;
  EXPECT_EQ(Type(import().type()).str(), "f32[2, 3; 1, 2]");
  EXPECT_EQ(import().storage()->bytes(), 24u);
  tensor.device = {2, 3};
  EXPECT_EQ(import().device(), Device::cuda(3));
  tensor.device = {1, 1};
  EXPECT_EQ(import().device(), (Device{DeviceKind::Host, 1}));
  tensor.ndim = 0;
  tensor.shape = tensor.strides = nullptr;
  EXPECT_EQ(Type(import().type()).str(), "f32[]@host:1");
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(outcomeOf(&foreign.managed), "success");
}

// A tensor without elements needs no data, and no data is aligned.
TYPED_TEST(DLPackTest, ImportsNoElements) {
  Foreign<TypeParam> foreign;
  foreign.shape[0] = 0;
  for (void *data : {static_cast<void *>(nullptr), static_cast<void *>(foreign.data)}) {
    foreign.managed.dl_tensor.data = data;
    Tensor tensor = llvm::cantFail(importDLPack(&foreign.managed));
    EXPECT_EQ(tensor.numElements(), 0);
    EXPECT_EQ(tensor.storage()->bytes(), 0u);
  }
  EXPECT_EQ(foreign.numDeleted, 2u);
}

// What a Tensor cannot be is an error, and stays the caller's.
TYPED_TEST(DLPackTest, ImportErrors) {
  EXPECT_THAT(outcomeOf(static_cast<TypeParam *>(nullptr)), HasSubstr("got null"));

  struct Case {
    std::function<void(Foreign<TypeParam> &)> damage;
    std::string message;
  };
  constexpr int64_t large = int64_t(1) << 62;
  using F = Foreign<TypeParam>;
  const auto tensor = [](F &f) -> DLTensor & { return f.managed.dl_tensor; };
  const Case cases[] = {
      {[&](F &f) {
         tensor(f).device = {3, 0};
       },
       "kind 1 (CPU) or 2 (CUDA), got 3"},
      {[&](F &f) {
         tensor(f).device = {1, -1};
       },
       "a device from 0 to 65535, got -1"},
      {[&](F &f) {
         tensor(f).device = {2, 65536};
       },
       "a device from 0 to 65535, got 65536"},
      {[&](F &f) {
         tensor(f).dtype = {2, 32, 2};
       },
       "code 2, 32 bits and 2 lanes"},
      {[&](F &f) {
         tensor(f).dtype = {2, 48, 1};
       },
       "code 2, 48 bits and 1 lanes"},
      {[&](F &f) {
         tensor(f).dtype = {1, 32, 1};
       },
       "code 1, 32 bits and 1 lanes"},
      {[&](F &f) {
         tensor(f).dtype = {99, 32, 1};
       },
       "code 99, 32 bits and 1 lanes"},
      {[&](F &f) { tensor(f).ndim = -1; }, "0 to 64 dimensions with sizes, got -1"},
      {[&](F &f) { tensor(f).ndim = 65; }, "0 to 64 dimensions with sizes, got 65"},
      {[&](F &f) { tensor(f).shape = nullptr; }, "with sizes, got 2 without"},
      {[](F &f) { f.shape[1] = -3; }, "sizes of at least 0, got -3"},
      {[](F &f) { f.strides[0] = -3; }, "strides of at least 0, got -3"},
      {[](F &f) { f.shape[0] = f.shape[1] = large; }, "fits 63 bits"},
      {[](F &f) { f.strides[0] = INT64_MAX; }, "fits 63 bits"},
      {[](F &f) { f.strides[1] = large; }, "fits 63 bits"},
      {[&](F &f) {
         f.shape[0] = large;
         tensor(f).strides = nullptr;
       },
       "fits 63 bits"},
      {[&](F &f) { tensor(f).data = nullptr; }, "with data, got none"},
      {[&](F &f) { tensor(f).byte_offset = UINT64_MAX; }, "with data, got none"},
      {[&](F &f) { tensor(f).byte_offset = 2; }, "aligned to 4 bytes"},
  };
  for (const Case &c : cases) {
    F foreign;
    c.damage(foreign);
    EXPECT_THAT(outcomeOf(&foreign.managed), HasSubstr(c.message));
    EXPECT_EQ(foreign.numDeleted, 0u) << c.message;
  }
}

// Another major version and read-only tensors are refused; other flags and minor versions are not.
TEST(DLPackVersionTest, VersionsAndFlags) {
  Foreign<DLManagedTensorVersioned> foreign;
  foreign.managed.version = {2, 0};
  EXPECT_THAT(outcomeOf(&foreign.managed), HasSubstr("of version 1, got 2.0"));
  foreign.managed.version = {1, 9};
  foreign.managed.flags = 1;
  EXPECT_THAT(outcomeOf(&foreign.managed), HasSubstr("got a read-only one"));
  EXPECT_EQ(foreign.numDeleted, 0u);
  foreign.managed.flags = 2;
  EXPECT_EQ(outcomeOf(&foreign.managed), "success");
  EXPECT_EQ(foreign.numDeleted, 1u);
}

//===----------------------------------------------------------------------===//
// Export
//===----------------------------------------------------------------------===//

// An exported tensor says what it is and keeps its storage until its deleter is called.
TYPED_TEST(DLPackTest, ExportShares) {
  alignas(16) float data[6] = {};
  bool isReleased = false;
  auto *managed = exported<TypeParam>(tensorOver(data, sizeof(data), DType::F32, {2, 3}, {1, 2},
                                                 Device::cuda(5), [&] { isReleased = true; }));
  const DLTensor &tensor = managed->dl_tensor;
  EXPECT_EQ(tensor.data, data);
  EXPECT_EQ(tensor.byte_offset, 0u);
  EXPECT_EQ(tensor.device.device_type, 2);
  EXPECT_EQ(tensor.device.device_id, 5);
  ASSERT_EQ(tensor.ndim, 2);
  EXPECT_THAT(llvm::ArrayRef<int64_t>(tensor.shape, 2), ElementsAre(2, 3));
  EXPECT_THAT(llvm::ArrayRef<int64_t>(tensor.strides, 2), ElementsAre(1, 2));
  if constexpr (std::is_same_v<TypeParam, DLManagedTensorVersioned>) {
    EXPECT_EQ(managed->version.major, 1u);
    EXPECT_EQ(managed->flags, 0u);
  }
  EXPECT_FALSE(isReleased);
  managed->deleter(managed);
  EXPECT_TRUE(isReleased);
}

// Out and in again, every dtype is the same tensor over the same memory.
TYPED_TEST(DLPackTest, RoundTrips) {
  alignas(16) std::byte data[64] = {};
  for (DType dtype : allDTypes) {
    bool isReleased = false;
    {
      Tensor source =
          tensorOver(data, 64, dtype, {2, 2}, {4, 1}, Device::host(), [&] { isReleased = true; });
      source = Tensor(source.storage(), 16, dtype, {2}, {2});
      Tensor back = llvm::cantFail(importDLPack(exported<TypeParam>(source)));
      EXPECT_EQ(Type(back.type()).str(), Type(source.type()).str());
      EXPECT_EQ(back.data(), data + 16);
      source = Tensor();
      EXPECT_FALSE(isReleased);
    }
    EXPECT_TRUE(isReleased) << dtypeName(dtype).str();
  }
}

// Dtypes have the codes and widths that other libraries know.
TEST(DLPackVersionTest, DTypeCodes) {
  const std::pair<DType, std::pair<int, int>> codes[] = {
      {DType::Bool, {6, 8}},    {DType::U8, {1, 8}},      {DType::I8, {0, 8}},
      {DType::I16, {0, 16}},    {DType::I32, {0, 32}},    {DType::I64, {0, 64}},
      {DType::F8E4M3, {10, 8}}, {DType::F8E5M2, {12, 8}}, {DType::F16, {2, 16}},
      {DType::BF16, {4, 16}},   {DType::F32, {2, 32}},    {DType::F64, {2, 64}}};
  ASSERT_EQ(std::size(codes), std::size(allDTypes));
  alignas(16) std::byte data[8] = {};
  for (const auto &[dtype, code] : codes) {
    DLManagedTensor *managed = exportDLPack(tensorOver(data, 8, dtype, {}, {}));
    EXPECT_EQ(managed->dl_tensor.dtype.code, code.first) << dtypeName(dtype).str();
    EXPECT_EQ(managed->dl_tensor.dtype.bits, code.second) << dtypeName(dtype).str();
    EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1);
    managed->deleter(managed);
  }
}
