//===- Safetensors.cpp - Tensors in files ---------------------------------===//
//
// Reading looks at the length, then the header, then at how the tensors of the header cover the
// rest; only then are tensors made, which look into the buffer. Writing fills a file beside the one
// that is asked for, which then takes its place.
//
//===----------------------------------------------------------------------===//

#include "SafetensorsHeader.h"

#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"

#include <cstring>
#include <new>

using namespace rondo;

static constexpr size_t lengthBytes = 8;

static llvm::Error errorIn(llvm::StringRef file, const llvm::Twine &message) {
  return makeError({file.str(), 0, 0, ""}, message);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The header and, behind it, the bytes of the tensors.
static llvm::Expected<std::pair<llvm::StringRef, llvm::StringRef>>
splitFile(llvm::StringRef content, llvm::StringRef file) {
  if (content.size() < lengthBytes)
    return errorIn(file, "file of " + llvm::Twine(content.size()) +
                             " bytes is too short for the length of a header");
  uint64_t length = llvm::support::endian::read64le(content.data());
  llvm::StringRef rest = content.drop_front(lengthBytes);
  if (length > maxSafetensorsHeaderBytes)
    return errorIn(file, "header of " + llvm::Twine(length) + " bytes is longer than " +
                             llvm::Twine(maxSafetensorsHeaderBytes));
  if (length > rest.size())
    return errorIn(file, "header of " + llvm::Twine(length) + " bytes goes beyond the file, of " +
                             llvm::Twine(content.size()));
  return std::pair(rest.take_front(length), rest.drop_front(length));
}

/// The tensors cover all `size` bytes, each byte once.
static llvm::Error checkCover(llvm::ArrayRef<SafetensorsEntry> entries, uint64_t size,
                              llvm::StringRef file) {
  std::vector<const SafetensorsEntry *> order;
  for (const SafetensorsEntry &entry : entries)
    order.push_back(&entry);
  llvm::stable_sort(order, [](const SafetensorsEntry *a, const SafetensorsEntry *b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t covered = 0;
  const SafetensorsEntry *previous = nullptr;
  for (const SafetensorsEntry *entry : order) {
    std::string text = safetensorsTensorText(entry->name);
    if (entry->end > size)
      return errorIn(file, text + ": data_offsets [" + llvm::Twine(entry->begin) + ", " +
                               llvm::Twine(entry->end) + "] go beyond the " + llvm::Twine(size) +
                               " bytes of data");
    if (entry->begin < covered)
      return errorIn(file,
                     text + ": its data overlap those of " + safetensorsTensorText(previous->name));
    if (entry->begin > covered)
      return errorIn(file, text + ": its data begin at " + llvm::Twine(entry->begin) +
                               ", after a gap that begins at " + llvm::Twine(covered));
    covered = entry->end;
    previous = entry;
  }
  if (covered != size)
    return errorIn(file, llvm::Twine(size - covered) + " bytes at the end belong to no tensor");
  return llvm::Error::success();
}

static StorageRef copyAligned(const char *data, size_t bytes) {
  constexpr std::align_val_t alignment{DeviceAPI::allocationAlignment};
  void *copy = ::operator new(bytes, alignment);
  std::memcpy(copy, data, bytes);
  return Storage::borrow(copy, bytes, Device::host(), [copy] {
    ::operator delete(copy, std::align_val_t(DeviceAPI::allocationAlignment));
  });
}

static llvm::SmallVector<int64_t, 5> rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 5> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= std::max<int64_t>(shape[i], 1))
    strides[i] = stride;
  return strides;
}

llvm::Expected<Safetensors> Safetensors::read(std::unique_ptr<llvm::MemoryBuffer> buffer) {
  std::shared_ptr<llvm::MemoryBuffer> memory = std::move(buffer);
  llvm::StringRef file = memory->getBufferIdentifier();
  auto parts = splitFile(memory->getBuffer(), file);
  if (!parts)
    return parts.takeError();
  llvm::StringRef data = parts->second;
  llvm::Expected<SafetensorsHeader> header = SafetensorsHeader::parse(parts->first, file);
  if (!header)
    return header.takeError();
  if (llvm::Error error = checkCover(header->entries, data.size(), file))
    return error;

  Safetensors result;
  result.metadata_ = std::move(header->metadata);
  for (SafetensorsEntry &entry : header->entries) {
    const char *first = data.data() + entry.begin;
    size_t bytes = entry.end - entry.begin;
    bool isAligned = reinterpret_cast<uintptr_t>(first) % DeviceAPI::minAlignment == 0;
    // The buffer is as writable as its owner made it.
    StorageRef storage = isAligned ? Storage::borrow(const_cast<char *>(first), bytes,
                                                     Device::host(), [memory] { (void)memory; })
                                   : copyAligned(first, bytes);
    Tensor tensor(std::move(storage), 0, entry.dtype, entry.shape, rowMajorStrides(entry.shape));
    result.indices_[entry.name] = result.tensors_.size();
    result.tensors_.push_back({std::move(entry.name), std::move(tensor)});
  }
  return result;
}

llvm::Expected<Safetensors> Safetensors::open(llvm::StringRef path) {
  // Reading a device or a pipe might never end.
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(path, status))
    return errorIn(path, "cannot read the file: " + code.message());
  if (!llvm::sys::fs::is_regular_file(status))
    return errorIn(path, "is no regular file");
  auto buffer = llvm::WritableMemoryBuffer::getFile(path);
  if (!buffer)
    return errorIn(path, "cannot read the file: " + buffer.getError().message());
  return read(std::move(*buffer));
}

const Tensor *Safetensors::find(llvm::StringRef name) const {
  auto it = indices_.find(name);
  return it == indices_.end() ? nullptr : &tensors_[it->second].tensor;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static bool isUTF8(llvm::StringRef text) {
  const auto *data = reinterpret_cast<const llvm::UTF8 *>(text.data());
  return llvm::isLegalUTF8String(&data, data + text.size());
}

static llvm::Error checkWritable(llvm::ArrayRef<NamedTensor> tensors,
                                 const SafetensorsMetadata &metadata, llvm::StringRef path) {
  llvm::StringSet<> names, keys;
  for (const auto &[name, tensor] : tensors) {
    std::string text = safetensorsTensorText(name);
    if (!isUTF8(name))
      return errorIn(path, text + ": its name is no UTF-8");
    if (name == safetensorsMetadataKey)
      return errorIn(path, text + ": its name means something else");
    if (!names.insert(name).second)
      return errorIn(path, text + " is given twice");
    if (tensor.isNull())
      return errorIn(path, text + " is null");
    if (!tensor.device().isHost())
      return errorIn(path,
                     text + " is on " + deviceName(tensor.device()) + ", expected one on the host");
  }
  for (const auto &[key, value] : metadata) {
    if (!isUTF8(key) || !isUTF8(value))
      return errorIn(path, "metadata that is no UTF-8");
    if (!keys.insert(key).second)
      return errorIn(path, "metadata '" + key + "' is given twice");
  }
  return llvm::Error::success();
}

/// Writes the elements in row-major order: runs of the innermost dimensions that lie dense at once.
static void writeElements(const Tensor &tensor, llvm::raw_ostream &os) {
  size_t size = dtypeSize(tensor.dtype());
  unsigned outer = tensor.rank();
  int64_t run = 1; // elements
  while (outer > 0 && (tensor.shape()[outer - 1] == 1 || tensor.strides()[outer - 1] == run))
    run *= tensor.shape()[--outer];
  int64_t runs = 1;
  for (int64_t length : tensor.shape().take_front(outer))
    runs *= length;
  if (run == 0)
    return;
  llvm::SmallVector<int64_t, 5> index(outer, 0);
  for (int64_t i = 0; i < runs; ++i) {
    int64_t offset = 0;
    for (unsigned d = 0; d < outer; ++d)
      offset += index[d] * tensor.strides()[d];
    os.write(reinterpret_cast<const char *>(tensor.data()) + offset * int64_t(size), run * size);
    for (unsigned d = outer; d-- > 0 && ++index[d] == tensor.shape()[d];)
      index[d] = 0;
  }
}

/// Fills a new file beside `path` and puts it there.
static llvm::Error replaceFile(llvm::StringRef path,
                               llvm::function_ref<void(llvm::raw_ostream &)> write) {
  int descriptor = -1;
  llvm::SmallString<128> temporary;
  if (std::error_code code = llvm::sys::fs::createUniqueFile(
          path + ".tmp-%%%%%%%%", descriptor, temporary, llvm::sys::fs::OF_None,
          llvm::sys::fs::all_read | llvm::sys::fs::all_write))
    return errorIn(path, "cannot write the file: " + code.message());
  std::error_code code;
  {
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
    write(os);
    os.close(); // what the file system reports late belongs to the write
    code = os.error();
    os.clear_error();
  }
  if (!code)
    code = llvm::sys::fs::rename(temporary, path);
  if (!code)
    return llvm::Error::success();
  (void)llvm::sys::fs::remove(temporary);
  return errorIn(path, "cannot write the file: " + code.message());
}

llvm::Error rondo::writeSafetensors(llvm::StringRef path, llvm::ArrayRef<NamedTensor> tensors,
                                    const SafetensorsMetadata &metadata) {
  if (llvm::Error error = checkWritable(tensors, metadata, path))
    return error;
  std::vector<const NamedTensor *> order;
  for (const NamedTensor &tensor : tensors)
    order.push_back(&tensor);
  llvm::stable_sort(order, [](const NamedTensor *a, const NamedTensor *b) {
    return dtypeSize(a->tensor.dtype()) > dtypeSize(b->tensor.dtype());
  });

  SafetensorsHeader header;
  header.metadata = metadata;
  uint64_t end = 0;
  for (const NamedTensor *named : order) {
    const Tensor &tensor = named->tensor;
    SafetensorsEntry entry{named->name, tensor.dtype(), {}, end, end};
    entry.shape.assign(tensor.shape().begin(), tensor.shape().end());
    end += uint64_t(tensor.numElements()) * dtypeSize(tensor.dtype());
    entry.end = end;
    header.entries.push_back(std::move(entry));
  }
  std::string text = header.text();
  // The data start at a multiple of what kernels may assume.
  text.append(llvm::alignTo(lengthBytes + text.size(), DeviceAPI::minAlignment) - lengthBytes -
                  text.size(),
              ' ');
  if (text.size() > maxSafetensorsHeaderBytes)
    return errorIn(path, "header of " + llvm::Twine(text.size()) + " bytes is longer than " +
                             llvm::Twine(maxSafetensorsHeaderBytes));

  return replaceFile(path, [&](llvm::raw_ostream &os) {
    char length[lengthBytes];
    llvm::support::endian::write64le(length, text.size());
    os.write(length, lengthBytes);
    os << text;
    for (const NamedTensor *named : order)
      writeElements(named->tensor, os);
  });
}
