//===- HazardTracker.h - Who touched these bytes last? ----------*- C++ -*-===//

#pragma once

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>

namespace rondo {

/// Finds the dependencies of steps that touch bytes, given in an order in which they may run: read
/// after write, write after read, write after write. Addresses may be of anything that keeps order.
/// An access costs the logarithm of the number of byte ranges, amortised.
class HazardTracker {
public:
  /// Adds to `dependencies` the steps that a step which touches bytes [begin, end) has to wait for,
  /// but for those that one of them waits for because of the same bytes.
  /// May add one several times.
  void depend(uint64_t begin, uint64_t end, bool isWrite,
              llvm::SmallVectorImpl<uint32_t> &dependencies);
  /// From now on `step` is the last that touched them. All accesses of a step depend before the
  /// first of them is noted.
  void note(uint64_t begin, uint64_t end, bool isWrite, uint32_t step);

private:
  struct Range {
    uint64_t end;
    uint32_t writer = ~0u;
    llvm::SmallVector<uint32_t, 2> readers; ///< since `writer`
  };
  using Ranges = std::map<uint64_t, Range>;

  /// The first range that ends behind `begin`.
  Ranges::iterator firstBehind(uint64_t begin);
  /// Makes `at` a border between ranges where it lies within one.
  void split(uint64_t at);

  Ranges ranges_; ///< by begin; disjoint
};

} // namespace rondo
