//===- Packing.h - Offsets in blocks of bytes -------------------*- C++ -*-===//
//
// Offline placement: items with a size and an interval of steps get places in blocks, such that
// those needed at the same step share no byte. All sizes and offsets are in bytes that the caller
// has rounded up to the alignment.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rondo {

/// Bytes that are needed from step `begin` to step `end`, inclusive.
struct PackingItem {
  uint64_t bytes = 0;
  uint32_t begin = 0, end = 0;
};

/// A block of what stays until the call ends, in the order in which it is made, or of what is there
/// when the call begins, and is no longer needed after some step: what is not made yet, or no
/// longer needed with all behind it, is one piece of room, at the block's end.
class PersistentBlock {
public:
  /// Behind everything; returns the offset. Called in the order of `begin`.
  uint64_t append(uint32_t begin, uint64_t bytes);
  /// What is there from the start, at `offset`, until step `end`. Called from the greatest `end`
  /// to the least, of blocks to which nothing is appended.
  void keep(uint32_t end, uint64_t offset, uint64_t bytes);
  /// Nothing may lie behind `bytes`.
  void cut(uint64_t bytes) { bytes_ = std::min(bytes_, bytes); }
  uint64_t bytes() const { return bytes_; }
  /// Bytes from here on belong to nothing that is made at step `end` or before, and needed at step
  /// `begin` or later.
  uint64_t freeFrom(uint32_t begin, uint32_t end) const;

private:
  std::vector<std::pair<uint32_t, uint64_t>> parts_; ///< begin and offset of each, both ascending
  /// End of each, descending, and where those so far reach to.
  std::vector<std::pair<uint32_t, uint64_t>> kept_;
  uint64_t bytes_ = 0;
};

/// Where an item goes: a position among the rooms, or their number for the arena.
struct PackingPlace {
  unsigned block = 0;
  uint64_t offset = 0;
};

struct Packing {
  std::vector<PackingPlace> places; ///< by item
  uint64_t arenaBytes = 0;
};

/// Places every item: in the first of `rooms` whose free bytes take it, or else in the arena, which
/// is kept small. Deterministic. Close to linear in the number of items where few are needed at
/// once, quadratic where all are.
Packing pack(llvm::ArrayRef<PackingItem> items, llvm::ArrayRef<const PersistentBlock *> rooms);

} // namespace rondo
