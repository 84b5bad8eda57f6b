//===- Safetensors.h - Tensors in files -------------------------*- C++ -*-===//
//
// The safetensors format (github.com/huggingface/safetensors): eight bytes with the length of a
// header, little-endian; the header, a JSON object that gives each tensor's dtype, shape and place;
// then the bytes of the tensors, row-major, without gaps.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Tensor.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rondo {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
/// Free text by key, in order.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// The content of a file. The tensors are row-major, on the host, each with a storage of its own
/// that borrows the file's memory and keeps it alive: this object may go before them. Only a tensor
/// whose bytes do not start at a multiple of DeviceAPI::minAlignment in memory is an aligned copy.
class Safetensors {
public:
  /// Maps the file into memory; writing to a tensor changes neither the file nor what others read
  /// from it. The file must not become shorter while a tensor of it is in use. Errors: located in
  /// the file, naming the tensor if one is at fault; whatever the file holds, not more memory than
  /// a small multiple of its size is used.
  static llvm::Expected<Safetensors> open(llvm::StringRef path);
  /// Reads what a buffer holds; its identifier stands for the file in errors. Where the buffer's
  /// memory is read-only, so are the tensors. Errors: as `open`.
  static llvm::Expected<Safetensors> read(std::unique_ptr<llvm::MemoryBuffer> buffer);

  /// In the order of the header.
  llvm::ArrayRef<NamedTensor> tensors() const { return tensors_; }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  size_t size() const { return tensors_.size(); }
  /// Null if there is none of that name; valid as long as this object.
  const Tensor *find(llvm::StringRef name) const;
  const SafetensorsMetadata &metadata() const { return metadata_; }

private:
  Safetensors() = default;

  std::vector<NamedTensor> tensors_;
  llvm::StringMap<size_t> indices_; ///< by name
  SafetensorsMetadata metadata_;
};

/// Writes a file that any reader of the format takes: by falling element size, then in the order
/// given, so that all are aligned to their elements. The same arguments give the same bytes.
/// Elements are written row-major, whatever the strides. The file appears whole or, after an error,
/// not at all: what was at `path` stays. Errors: a null tensor, one that is not on the host, a name
/// or key that is given twice, is `__metadata__` or no UTF-8; what the file system says.
llvm::Error writeSafetensors(llvm::StringRef path, llvm::ArrayRef<NamedTensor> tensors,
                             const SafetensorsMetadata &metadata = {});

} // namespace rondo
