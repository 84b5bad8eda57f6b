//===- MemoryWatch.h - Memory that is taken for a while ---------*- C++ -*-===//

#pragma once

#include "Bench.h"

namespace rondo {

/// The most memory that was taken since this was made: by what the device says is free where it
/// does, else by its own count. Borrows the setup.
class MemoryWatch {
public:
  /// Waits for the device, and gives back what its pools keep.
  static llvm::Expected<MemoryWatch> create(const BenchSetup &setup);

  /// Memory that is taken only between two samples is not seen where the device says what is free.
  llvm::Error sample();
  uint64_t mostBytes() const;

private:
  explicit MemoryWatch(const BenchSetup &setup) : setup_(&setup) {}

  const BenchSetup *setup_;
  uint64_t bytesBefore_ = 0;
  std::optional<uint64_t> freeBefore_, leastFree_;
};

} // namespace rondo
