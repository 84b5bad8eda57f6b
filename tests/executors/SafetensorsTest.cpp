//===- SafetensorsTest.cpp - Tensors in files -----------------------------===//

#include "support/TestPaths.h"

#include "rondo/executors/Safetensors.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <random>
#include <sys/resource.h>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

namespace {

/// A folder that goes with the test.
class SafetensorsTest : public ::testing::Test {
protected:
  SafetensorsTest() {
    llvm::SmallString<128> folder;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("rondo-safetensors", folder));
    folder_ = folder.str().str();
  }
  ~SafetensorsTest() override { llvm::sys::fs::remove_directories(folder_); }
  std::string path(llvm::StringRef name = "model.safetensors") const {
    return folder_ + "/" + name.str();
  }

  std::vector<std::string> filesInFolder() const {
    std::vector<std::string> names;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder_, code), end; it != end && !code;
         it.increment(code))
      names.push_back(llvm::sys::path::filename(it->path()).str());
    return names;
  }

private:
  std::string folder_;
};

std::string contentOf(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "no file";
}

std::string bytesOf(const Tensor &tensor) {
  return std::string(reinterpret_cast<const char *>(tensor.data()), tensor.extentBytes());
}

std::string messageOf(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "success";
}

/// A tensor over bytes that stay with it. Strides default to row-major.
Tensor tensorOf(DType dtype, llvm::ArrayRef<int64_t> shape, std::string bytes,
                llvm::ArrayRef<int64_t> strides = {}, Device device = Device::host()) {
  auto held = std::make_shared<std::string>(std::move(bytes));
  llvm::SmallVector<int64_t, 5> rowMajor(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= std::max<int64_t>(shape[i], 1))
    rowMajor[i] = stride;
  return Tensor(Storage::borrow(held->data(), held->size(), device, [held] {}), 0, dtype, shape,
                strides.empty() ? llvm::ArrayRef<int64_t>(rowMajor) : strides);
}

std::string counting(size_t bytes) {
  std::string text(bytes, 0);
  for (size_t i = 0; i < bytes; ++i)
    text[i] = char(i * 7 + 1);
  return text;
}

/// A file of a header and data.
std::string fileOf(llvm::StringRef header, llvm::StringRef data = "") {
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  return std::string(length, 8) + header.str() + data.str();
}

/// Reads `content` from a buffer that does not reach one byte further.
llvm::Expected<Safetensors> readText(llvm::StringRef content) {
  auto buffer = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(content.size(), "m.safetensors");
  std::memcpy(buffer->getBufferStart(), content.data(), content.size());
  return Safetensors::read(std::move(buffer));
}

std::string outcomeOf(llvm::StringRef content) {
  llvm::Expected<Safetensors> file = readText(content);
  return file ? "success" : llvm::toString(file.takeError());
}

} // namespace

//===----------------------------------------------------------------------===//
// Round trips
//===----------------------------------------------------------------------===//

// Every dtype, tensors without elements and without dimensions come back to the byte, by name and
// in order, and writing what was read gives the same file.
TEST_F(SafetensorsTest, RoundTrips) {
  std::vector<NamedTensor> tensors;
  for (DType dtype : allDTypes)
    tensors.push_back(
        {dtypeName(dtype).str(), tensorOf(dtype, {2, 3}, counting(size_t(6) * dtypeSize(dtype)))});
  tensors.push_back({"empty", tensorOf(DType::F32, {4, 0, 2}, "")});
  tensors.push_back({"0-d \"quoted\" \\ \n \xc3\xa9", tensorOf(DType::I64, {}, counting(8))});
  const SafetensorsMetadata metadata = {{"format", "pt"}, {"a", "\"\n\xc3\xa9"}, {"", ""}};
  ASSERT_EQ(messageOf(writeSafetensors(path(), tensors, metadata)), "success");
  EXPECT_THAT(filesInFolder(), ElementsAre("model.safetensors"));

  llvm::Expected<Safetensors> file = Safetensors::open(path());
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_EQ(file->metadata(), metadata);
  ASSERT_EQ(file->size(), tensors.size());
  for (const auto &[name, tensor] : tensors) {
    const Tensor *read = file->find(name);
    ASSERT_TRUE(read) << name;
    EXPECT_EQ(Type(read->type()).str(), Type(tensor.type()).str()) << name;
    EXPECT_EQ(bytesOf(*read), bytesOf(tensor)) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read->data()) % DeviceAPI::minAlignment, 0u) << name;
  }
  EXPECT_EQ(file->find("f3"), nullptr);

  std::vector<NamedTensor> again(file->begin(), file->end());
  ASSERT_EQ(messageOf(writeSafetensors(path("again"), again, file->metadata())), "success");
  EXPECT_EQ(contentOf(path("again")), contentOf(path()));
}

// The bytes of a file: a length, a header that ends with spaces, and data by falling element size,
// at multiples of 16 and 8.
TEST_F(SafetensorsTest, Bytes) {
  ASSERT_EQ(messageOf(writeSafetensors(path(),
                                       {{"b", tensorOf(DType::U8, {3}, "\1\2\3")},
                                        {"a", tensorOf(DType::I16, {1}, "\4\5")}},
                                       {{"k", "v"}})),
            "success");
  std::string header = "{\"__metadata__\":{\"k\":\"v\"},"
                       "\"a\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                       "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]}}";
  header.append((24 - header.size() % 16) % 16, ' ');
  EXPECT_EQ(header.size() % 16, 8u);
  EXPECT_EQ(contentOf(path()), fileOf(header, "\4\5\1\2\3"));
}

// No tensors make a file, and files may hold metadata alone.
TEST_F(SafetensorsTest, EmptyFiles) {
  ASSERT_EQ(messageOf(writeSafetensors(path(), {})), "success");
  EXPECT_EQ(contentOf(path()), fileOf("{}      "));
  EXPECT_EQ(llvm::cantFail(Safetensors::open(path())).size(), 0u);
  EXPECT_THAT(llvm::cantFail(readText(fileOf("{\"__metadata__\":{\"a\":\"b\"}}"))).metadata(),
              ElementsAre(Pair("a", "b")));
}

// Elements are written row-major whatever the strides.
TEST_F(SafetensorsTest, StridedTensors) {
  struct Case {
    Tensor tensor;
    std::string bytes;
  };
  const Case cases[] = {
      {tensorOf(DType::U8, {2, 3}, "abcdef", {1, 2}), "acebdf"},
      {tensorOf(DType::U8, {2, 2}, "abcdef", {3, 1}), "abde"},
      {tensorOf(DType::U8, {2, 2, 2}, "abcdefgh", {1, 4, 2}), "acegbdfh"},
      {tensorOf(DType::U8, {3, 1}, "abcde", {2, 9}), "ace"},
      {tensorOf(DType::I16, {2, 2}, "aabb", {0, 1}), "aabbaabb"},
      {tensorOf(DType::U8, {2, 0}, "", {7, 9}), ""},
  };
  for (const Case &c : cases) {
    ASSERT_EQ(messageOf(writeSafetensors(path(), {{"x", c.tensor}})), "success");
    Safetensors file = llvm::cantFail(Safetensors::open(path()));
    EXPECT_EQ(file.find("x")->shape(), c.tensor.shape());
    EXPECT_TRUE(file.find("x")->isContiguous());
    EXPECT_EQ(bytesOf(*file.find("x")), c.bytes);
  }
}

// Tensors borrow the buffer, each with a storage of its own, and keep it when the file is gone;
// one that is not aligned in it is a copy that is.
TEST_F(SafetensorsTest, BorrowsWhatIsAligned) {
  std::string header = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                       "\"b\":{\"dtype\":\"U8\",\"shape\":[14],\"data_offsets\":[2,16]},"
                       "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]}}";
  header.append((24 - header.size() % 16) % 16, ' ');
  std::string content = fileOf(header, counting(19));
  auto buffer = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(content.size(), "m");
  std::memcpy(buffer->getBufferStart(), content.data(), content.size());
  const char *data = buffer->getBufferStart() + content.size() - 19;
  bool isAligned = reinterpret_cast<uintptr_t>(data) % 16 == 0;
  std::vector<Tensor> tensors;
  {
    Safetensors file = llvm::cantFail(Safetensors::read(std::move(buffer)));
    for (const NamedTensor &named : file)
      tensors.push_back(named.tensor);
  }
  EXPECT_NE(tensors[0].storage(), tensors[2].storage());
  const int64_t offsets[] = {0, 2, 16};
  for (size_t i = 0; i < 3; ++i) {
    const auto *place = reinterpret_cast<const std::byte *>(data + offsets[i]);
    EXPECT_EQ(tensors[i].data() == place, isAligned && i != 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensors[i].data()) % 16, 0u);
    EXPECT_EQ(bytesOf(tensors[i]), counting(19).substr(offsets[i], tensors[i].numElements()));
  }
}

// Writing to a tensor of a mapped file does not change the file.
TEST_F(SafetensorsTest, WritesStayPrivate) {
  ASSERT_EQ(
      messageOf(writeSafetensors(path(), {{"x", tensorOf(DType::U8, {100000}, counting(100000))}})),
      "success");
  Tensor tensor = *llvm::cantFail(Safetensors::open(path())).find("x");
  std::string before = contentOf(path());
  std::memset(tensor.data(), 0, tensor.extentBytes());
  EXPECT_EQ(contentOf(path()), before);
}

// What PyTorch wrote is read: every file of the test data, all of it.
TEST_F(SafetensorsTest, ReadsPyTorchsFiles) {
  std::error_code code;
  unsigned numFiles = 0;
  for (llvm::sys::fs::directory_iterator it(testDataDir() + "/traces", code), end;
       it != end && !code; it.increment(code)) {
    if (llvm::sys::path::extension(it->path()) != ".safetensors")
      continue;
    ++numFiles;
    llvm::Expected<Safetensors> file = Safetensors::open(it->path());
    ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
    size_t bytes = 0;
    for (const NamedTensor &named : *file)
      bytes += named.tensor.extentBytes();
    std::string content = contentOf(it->path());
    EXPECT_EQ(bytes, content.size() - 8 - llvm::support::endian::read64le(content.data()));
  }
  EXPECT_EQ(numFiles, 12u);

  Safetensors mlp = llvm::cantFail(Safetensors::open(testDataDir() + "/traces/mlp.safetensors"));
  EXPECT_EQ(mlp.tensors().front().name, "backward.in.tangents_1");
  EXPECT_EQ(Type(mlp.find("backward.out.0")->type()).str(), "f32[32, 32]");
  EXPECT_EQ(*mlp.find("backward.in.tangents_1")->ref().as<float>(), 1.0f);
}

//===----------------------------------------------------------------------===//
// Malformed files
//===----------------------------------------------------------------------===//

namespace {
struct Malformed {
  std::string content;
  std::string message; ///< after "m.safetensors: error: "
};

/// A header with one tensor `x`, described by `members`.
std::string withX(llvm::StringRef members, llvm::StringRef data = "12345678") {
  return fileOf("{\"x\":{" + members.str() + "}}", data);
}

std::string entry(llvm::StringRef name, int64_t begin, int64_t end) {
  return "\"" + name.str() + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}
} // namespace

// Each way in which a file is malformed is told apart, with the tensor at fault.
TEST_F(SafetensorsTest, MalformedFiles) {
  const std::string huge = std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  const std::string offsets = ",\"data_offsets\":[0,8]", shape = "\"shape\":[8]";
  const std::string u8 = "\"dtype\":\"U8\",", good = u8 + shape + offsets;
  const std::string sizes = "tensor 'x': 'shape' is to hold sizes of at least 0 that fit 63 bits";
  ASSERT_EQ(outcomeOf(withX(good)), "success");
  ASSERT_EQ(outcomeOf(withX(good + ",\"more\":{\"a\":[1,{}],\"b\":null}")), "success");
  const Malformed files[] = {
      // The frame.
      {"", "file of 0 bytes is too short for the length of a header"},
      {"1234567", "file of 7 bytes is too short"},
      {huge + "{}", "header of 18446744073709551615 bytes is longer than 100000000"},
      {fileOf("{}").substr(0, 9), "header of 2 bytes goes beyond the file, of 9"},
      {fileOf(""), "header is to begin with '{'"},
      {fileOf("[]"), "header is to begin with '{'"},
      {fileOf("7"), "header is to begin with '{'"},
      // JSON.
      {fileOf("{"), "header is malformed JSON at byte 2: unexpected end of input"},
      {fileOf("{}x"), "header is malformed JSON at byte 3: invalid literal"},
      {fileOf("{\"\xff\":1}"), "header is malformed JSON at byte 3: invalid string"},
      {fileOf(std::string("{}\0}", 4)), "header is malformed JSON at byte 2: null byte"},
      {fileOf("{\"x\":" + std::string(100000, '[')), "tensor 'x': is to be described by an object"},
      // What is described.
      {fileOf("{\"x\":1}"), "tensor 'x': is to be described by an object, got the number 1"},
      {fileOf("{" + entry("x", 0, 1) + "," + entry("x", 1, 2) + "}", "12"),
       "tensor 'x' is given twice"},
      {withX(good + "," + u8.substr(0, 12)), "tensor 'x': 'dtype' is given twice"},
      {withX(good + offsets), "tensor 'x': 'data_offsets' is given twice"},
      {fileOf("{\"a\\nb\":[]}"), "tensor 'a\\nb': is to be described by an object, got a list"},
      {withX(shape + offsets), "tensor 'x': has no 'dtype'"},
      {withX(u8 + offsets.substr(1)), "tensor 'x': has no 'shape'"},
      {withX(u8 + shape), "tensor 'x': has no 'data_offsets'"},
      // Dtypes and shapes.
      {withX("\"dtype\":\"U9\"," + shape + offsets), "tensor 'x': dtype 'U9' is none that"},
      {withX("\"dtype\":8," + shape + offsets), "tensor 'x': 'dtype' is to be a string, got the"},
      {withX(u8 + "\"shape\":8" + offsets), "tensor 'x': 'shape' is to be a list, got the number"},
      {withX(u8 + "\"shape\":[-8]" + offsets), sizes + ", got the number -8"},
      {withX(u8 + "\"shape\":[8.0]" + offsets), sizes + ", got the number 8.0"},
      {withX(u8 + "\"shape\":[[8]]" + offsets), sizes + ", got a list"},
      {withX(u8 + "\"shape\":[9223372036854775808]" + offsets), sizes + ", got the number 9223"},
      {withX(u8 + "\"shape\":[99999999999999999999]" + offsets), sizes + ", got the number 999"},
      {withX(u8 + "\"shape\":[4294967296,4294967296]" + offsets), "tensor 'x': its size in bytes "},
      {withX(u8 + "\"shape\":[0,4294967296,4294967296]" + offsets), "tensor 'x': its size in byte"},
      {withX(u8 + "\"shape\":[1,,1]" + offsets), "header is malformed JSON"},
      // Offsets.
      {withX(u8 + shape + ",\"data_offsets\":[0]"), "tensor 'x': 'data_offsets' is to hold two "},
      {withX(u8 + shape + ",\"data_offsets\":[0,8,8]"),
       "tensor 'x': 'data_offsets' is to hold two"},
      {withX(u8 + shape + ",\"data_offsets\":[-8,0]"),
       "tensor 'x': 'data_offsets' is to hold two "},
      {withX(u8 + shape + ",\"data_offsets\":7"), "tensor 'x': 'data_offsets' is to be a list"},
      {withX(u8 + shape + ",\"data_offsets\":[8,0]"), "tensor 'x': data_offsets [8, 0] end before"},
      {withX(u8 + shape + ",\"data_offsets\":[0,7]"),
       "tensor 'x': data_offsets [0, 7] hold 7 bytes, expected 8 for its dtype and shape"},
      {withX(good, "1234567"), "tensor 'x': data_offsets [0, 8] go beyond the 7 bytes of data"},
      {withX(u8 + shape + ",\"data_offsets\":[18446744073709551607,18446744073709551615]"),
       "tensor 'x': data_offsets [18446744073709551607, 18446744073709551615] go beyond"},
      {withX(good, "123456789"), "1 bytes at the end belong to no tensor"},
      {fileOf("{" + entry("x", 0, 2) + "," + entry("y", 1, 3) + "}", "123"),
       "tensor 'y': its data overlap those of tensor 'x'"},
      {fileOf("{" + entry("y", 2, 3) + "," + entry("x", 0, 1) + "}", "123"),
       "tensor 'y': its data begin at 2, after a gap that begins at 1"},
      {fileOf("{" + entry("x", 1, 3) + "}", "123"), "tensor 'x': its data begin at 1, after a gap"},
      // Metadata.
      {fileOf("{\"__metadata__\":[]}"), "'__metadata__' is to be an object, got a list"},
      {fileOf("{\"__metadata__\":{\"a\":1}}"), "'__metadata__': 'a' is to be a string, got the"},
      {fileOf("{\"__metadata__\":{\"a\":{}}}"), "'__metadata__': 'a' is to be a string, got an "},
      {fileOf("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}"), "'__metadata__': 'a' is given twice"},
      {fileOf("{\"__metadata__\":{},\"__metadata__\":{}}"), "'__metadata__' is given twice"},
  };
  for (const Malformed &file : files)
    EXPECT_THAT(outcomeOf(file.content), StartsWith("m.safetensors: error: " + file.message));

  std::string ones = "1";
  for (int i = 1; i < 64; ++i)
    ones += ",1";
  EXPECT_EQ(outcomeOf(withX(u8 + "\"shape\":[" + ones + "],\"data_offsets\":[0,1]", "1")),
            "success");
  EXPECT_THAT(outcomeOf(withX(u8 + "\"shape\":[" + ones + ",1],\"data_offsets\":[0,1]", "1")),
              HasSubstr("tensor 'x': has more than 64 dimensions"));
}

// Tensors may lie in another order than the header lists them in.
TEST_F(SafetensorsTest, OrderOfTheHeader) {
  Safetensors file = llvm::cantFail(
      readText(fileOf("{" + entry("y", 1, 3) + "," + entry("x", 0, 1) + "}", "abc")));
  EXPECT_EQ(file.tensors()[0].name, "y");
  EXPECT_EQ(bytesOf(*file.find("y")), "bc");
  EXPECT_EQ(bytesOf(*file.find("x")), "a");
}

// A file that is none, or is not there, is an error that names it.
TEST_F(SafetensorsTest, UnreadableFiles) {
  const auto outcome = [](const std::string &path) {
    llvm::Expected<Safetensors> file = Safetensors::open(path);
    return file ? "success" : llvm::toString(file.takeError());
  };
  EXPECT_THAT(outcome(path("none")), StartsWith(path("none") + ": error: cannot read the file: "));
  EXPECT_EQ(outcome(path(".")), path(".") + ": error: is no regular file");
  EXPECT_EQ(outcome("/dev/zero"), "/dev/zero: error: is no regular file");
}

// A file damaged anywhere is read or refused, and what is read can be looked at.
TEST_F(SafetensorsTest, RandomDamage) {
  ASSERT_EQ(messageOf(writeSafetensors(path(),
                                       {{"w", tensorOf(DType::F32, {3, 5}, counting(60))},
                                        {"b", tensorOf(DType::BF16, {7}, counting(14))},
                                        {"n", tensorOf(DType::I64, {}, counting(8))}},
                                       {{"format", "pt"}})),
            "success");
  const std::string valid = contentOf(path());
  std::mt19937 random(7);
  unsigned numRead = 0, numRefused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = valid;
    for (unsigned n = random() % 3 + 1; n-- > 0;) {
      size_t at = random() % (damaged.size() + 1);
      switch (random() % 4) {
      case 0:
        damaged.resize(at);
        break;
      case 1:
        damaged.insert(at, 1, "0123456789,[]{}\":-x"[random() % 19]);
        break;
      case 2:
        damaged.erase(std::min(at, damaged.size()), random() % 4);
        break;
      default:
        if (at < damaged.size())
          damaged[at] = char(random());
      }
    }
    llvm::Expected<Safetensors> file = readText(damaged);
    if (!file) {
      ++numRefused;
      EXPECT_THAT(llvm::toString(file.takeError()), StartsWith("m.safetensors: error: "));
      continue;
    }
    ++numRead;
    unsigned sum = 0;
    for (const NamedTensor &named : *file)
      for (char byte : bytesOf(named.tensor))
        sum += uint8_t(byte);
    EXPECT_LT(sum, 256u * damaged.size());
  }
  EXPECT_GT(numRead, 0u);
  EXPECT_GT(numRefused, 1000u);
}

//===----------------------------------------------------------------------===//
// What cannot be written
//===----------------------------------------------------------------------===//

// What the format or the file system does not take is an error, and the old file stays.
TEST_F(SafetensorsTest, WhatCannotBeWritten) {
  const Tensor x = tensorOf(DType::U8, {2}, "ab");
  const Tensor onDevice = tensorOf(DType::U8, {2}, "ab", {}, Device::cuda(0));
  ASSERT_EQ(messageOf(writeSafetensors(path(), {{"x", x}})), "success");
  const std::string old = contentOf(path());
  const auto write = [&](std::vector<NamedTensor> tensors, SafetensorsMetadata metadata = {}) {
    return messageOf(writeSafetensors(path(), tensors, metadata));
  };
  const std::string error = path() + ": error: ";
  EXPECT_EQ(write({{"a", x}, {"a", x}}), error + "tensor 'a' is given twice");
  EXPECT_EQ(write({{"a", Tensor()}}), error + "tensor 'a' is null");
  EXPECT_EQ(write({{"a", onDevice}}), error + "tensor 'a' is on cuda:0, expected one on the host");
  EXPECT_EQ(write({{"__metadata__", x}}),
            error + "tensor '__metadata__': its name means something else");
  EXPECT_THAT(write({{"\xff", x}}), HasSubstr("its name is no UTF-8"));
  EXPECT_EQ(write({}, {{"k", ""}, {"k", ""}}), error + "metadata 'k' is given twice");
  EXPECT_EQ(write({}, {{"k", "\xff"}}), error + "metadata that is no UTF-8");
  EXPECT_EQ(contentOf(path()), old);
  EXPECT_THAT(filesInFolder(), ElementsAre("model.safetensors"));

  EXPECT_THAT(messageOf(writeSafetensors(path("no/where"), {{"x", x}})),
              StartsWith(path("no/where") + ": error: cannot write the file: "));
  ASSERT_FALSE(llvm::sys::fs::create_directory(path("folder")));
  EXPECT_THAT(messageOf(writeSafetensors(path("folder"), {{"x", x}})),
              HasSubstr("cannot write the file: "));
  ASSERT_FALSE(llvm::sys::fs::remove(path("folder")));
  EXPECT_THAT(filesInFolder(), ElementsAre("model.safetensors"));
}

// Where there is no room for the file, the old one stays and nothing is left behind.
TEST_F(SafetensorsTest, NoRoom) {
  ASSERT_EQ(messageOf(writeSafetensors(path(), {{"x", tensorOf(DType::U8, {2}, "ab")}})),
            "success");
  const std::string old = contentOf(path());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  std::string message =
      messageOf(writeSafetensors(path(), {{"x", tensorOf(DType::U8, {100000}, counting(100000))}}));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, StartsWith(path() + ": error: cannot write the file: "));
  EXPECT_EQ(contentOf(path()), old);
  EXPECT_THAT(filesInFolder(), ElementsAre("model.safetensors"));
}
