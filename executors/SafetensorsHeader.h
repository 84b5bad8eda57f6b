//===- SafetensorsHeader.h - What the header of a file says -----*- C++ -*-===//

#pragma once

#include "rondo/executors/Safetensors.h"

namespace rondo {

/// A longer header is refused by every reader of the format.
inline constexpr uint64_t maxSafetensorsHeaderBytes = 100'000'000;
/// The key that is no tensor's name.
inline constexpr llvm::StringLiteral safetensorsMetadataKey = "__metadata__";

/// One tensor in the header. Offsets in bytes from the end of the header.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  SafetensorsMetadata metadata;

  /// Reads the JSON text of a header. Checks each entry on its own: its offsets fit its shape.
  /// Errors: one, located in `file`.
  static llvm::Expected<SafetensorsHeader> parse(llvm::StringRef text, llvm::StringRef file);
  /// As JSON. Names and keys are UTF-8.
  std::string text() const;
};

/// `F32`.
llvm::StringRef safetensorsDTypeName(DType dtype);
/// `tensor 'name'`, as messages have it; control characters are escaped, and a long name is cut.
std::string safetensorsTensorText(llvm::StringRef name);

} // namespace rondo
