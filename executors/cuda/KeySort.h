//===- KeySort.h - A stable sort as a part of an op -------------*- C++ -*-===//

#pragma once

#include "KernelTypes.h"
#include "SortDevice.h"

namespace rondo::cuda {

/// Parts of a workspace, each aligned to 256 bytes.
class WorkspaceParts {
public:
  /// Where the new part begins, in bytes.
  uint64_t add(uint64_t partBytes) {
    uint64_t offset = bytes_;
    bytes_ += (partBytes + 255) / 256 * 256;
    return offset;
  }
  uint64_t bytes() const { return bytes_; }

private:
  uint64_t bytes_ = 0;
};

inline void *partAt(void *workspace, uint64_t offset) {
  return static_cast<std::byte *>(workspace) + offset;
}

/// Sorts rows of unsigned keys on the device, stably: the caller puts keys into the workspace, and
/// finds them there in order and where each was in its row.
class KeySort {
public:
  /// Of `rows` times `size` keys below 2^bits, 1 <= bits <= 64. Adds what it needs to the
  /// workspace and to the functions. Errors: rows that are too long.
  static llvm::Expected<KeySort> get(int64_t rows, int64_t size, unsigned bits,
                                     WorkspaceParts &parts,
                                     llvm::SmallVectorImpl<CUDAFunction> &functions);

  /// Keys have 64 bits, else 32.
  bool isWide() const { return isWide_; }
  void *keys(void *workspace) const { return partAt(workspace, keys_[0]); }
  const void *sortedKeys(void *workspace) const { return partAt(workspace, keys_[sorted()]); }
  const uint32_t *positions(void *workspace) const {
    return static_cast<const uint32_t *>(partAt(workspace, positions_[sorted()]));
  }
  llvm::Error enqueue(const CUDAWork &work, void *workspace) const;

private:
  bool isShort() const { return size_ <= sortedInBlock; }
  unsigned numPasses() const { return (bits_ + 7) / 8; }
  /// Which of the two buffers has the result.
  unsigned sorted() const { return isShort() ? 1 : numPasses() % 2; }

  int64_t rows_ = 0, size_ = 0, tiles_ = 0;
  unsigned bits_ = 0, firstFunction_ = 0;
  bool isWide_ = false;
  uint64_t keys_[2] = {}, positions_[2] = {}, counts_ = 0;
};

/// Blocks of threads that sort short rows of `size` keys.
CUDAGrid sortInBlockGrid(int64_t rows, int64_t size);

} // namespace rondo::cuda
