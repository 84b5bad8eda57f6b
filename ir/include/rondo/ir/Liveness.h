//===- Liveness.h - Last uses and live bytes --------------------*- C++ -*-===//

#pragma once

#include "rondo/ir/StorageRoots.h"

namespace rondo {

/// Last use of every value of one body, found in one backward sweep; nested bodies use values
/// through their op's operands. Borrowed: valid until the trace changes. Positions index
/// `trace.ops(body)`.
class Liveness {
public:
  static constexpr uint32_t neverUsed = ~uint32_t(0);

  Liveness(const Trace &trace, BodyId body, const StorageRoots &roots);

  /// Position of the last op that uses `value` by this name, or neverUsed.
  uint32_t lastUse(ValueId value) const { return lastUse_[value.index()]; }
  /// Position of the last op that uses the storage rooted at `root` by any name; the defining op if
  /// nothing does.
  uint32_t lastUseOfStorage(ValueId root) const { return lastUseOfRoot_[root.index()]; }

private:
  std::vector<uint32_t> lastUse_, lastUseOfRoot_;
};

/// Bytes of dense storage of `value`'s tensor type; 0 for values that are no tensors; nothing if a
/// dimension is symbolic. For a root, what its allocation needs (largest strided extent of its
/// type).
std::optional<int64_t> storageBytes(const Type &type);

/// Live bytes over one body, executed in a given order: the greatest sum, over all positions, of
/// the bytes of storage roots that were made before or at the position and are used at or after it.
/// Arguments and what views them count as live throughout. Symbolic sizes count as 0.
struct LivenessPeak {
  int64_t bytes = 0;
  uint32_t position = 0; ///< where in `order` the peak is reached first
};
LivenessPeak livenessPeak(const Trace &trace, llvm::ArrayRef<OpId> order,
                          const StorageRoots &roots);

} // namespace rondo
