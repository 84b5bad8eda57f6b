//===- Retired.h - What programs let go of ----------------------*- C++ -*-===//
//
// Work in flight uses kernels and memory, so who lets go of them waits for it; but nobody may wait
// while a capture forbids it, and a program may be destroyed at any time. What is retired in a
// capture is destroyed when that has ended.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Block.h"

#include "rondo/runtime/GraphCache.h"

namespace rondo {

class Generators;
struct Variant;

/// To be destroyed together, after the work that uses it.
struct Retired {
  llvm::SmallVector<DeviceRef, 1> devices; ///< any of whose captures may forbid that; may be null
  std::vector<BlockRef> awaited; ///< whose last uses are waited for; nobody else uses them
  std::vector<BlockRef> blocks;
  std::vector<StorageRef> storages;
  std::vector<std::unique_ptr<Stream>> streams;
  std::shared_ptr<Generators> generators;
  std::vector<KernelRef> kernels;
  std::vector<std::shared_ptr<Variant>> variants;
  std::vector<GraphEntryRef> entries; ///< gone before the rest
};

/// Waits for the work and destroys `retired`; where a capture forbids that, when it has ended.
void retire(std::shared_ptr<Retired> retired);

/// For graphs of the caller: who holds the last reference retires it.
std::shared_ptr<Retired> retiredAtEnd(std::unique_ptr<Retired> retired);

} // namespace rondo
