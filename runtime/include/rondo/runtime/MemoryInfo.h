//===- MemoryInfo.h - What a program's memory plan is -----------*- C++ -*-===//

#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// Bytes of one trace's memory on the first device. Every planned storage starts at a multiple of
/// 256 bytes.
struct MemoryInfo {
  uint64_t arguments = 0; ///< what is there before, saved values included
  uint64_t arena = 0;     ///< temporaries and workspaces, per lane
  uint64_t slab = 0;      ///< saved for backward, per forward without its backward
  uint64_t results = 0;   ///< per set of results that the caller holds
  /// Greatest sum, over the steps, of the bytes of temporaries and workspaces that are live then,
  /// in whole units of 256: what an arena needs for this order of ops.
  uint64_t temporaries = 0;
  /// Greatest sum of all bytes that are live, arguments throughout.
  uint64_t lowerBound = 0;
  /// The same where what is planned takes whole units of 256 bytes, as all but the last storage of
  /// a block do: small tensors cost the difference.
  uint64_t roundedLowerBound = 0;
  uint64_t peak() const { return arguments + arena + slab + results; }
};

/// Whose bytes a planned storage lies in. A temporary may lie in any: in a part of the slab or of
/// the results that is not made yet, too, or of the slab that is not needed any more.
enum class MemoryBlock : uint8_t { Arena, Slab, Results };
/// `arena`, `slab`, `results`.
llvm::StringRef memoryBlockName(MemoryBlock block);

/// Memory that a program plans for.
struct StorageInfo {
  std::string name; ///< `%h` of a value and its views, `copy of %x`, `workspace of 'mm' op`
  MemoryBlock block = MemoryBlock::Arena;
  uint64_t bytes = 0, offset = 0;
  /// The steps that touch it first and last; no last one if it outlives the call.
  uint32_t firstStep = 0;
  std::optional<uint32_t> lastStep;
  /// The storage, at the same bytes, that dies in `firstStep` and whose memory it takes over.
  std::optional<uint32_t> takesOver;
};

/// Where the storages of one trace are, on the first device.
struct MemoryPlanInfo {
  MemoryInfo figures;
  std::vector<StorageInfo> storages; ///< without arguments and what the forward saved or gave
  std::vector<std::string> steps;    ///< of each, its op: `'mm' op of module h.0 at m.py:7:3`
  /// The first step with the greatest sum of live bytes, and the storages that are live then,
  /// copies of arguments included, the largest first.
  uint32_t peakStep = 0;
  std::vector<uint32_t> peakHolders;
};

} // namespace rondo
