//===- Block.h - Memory that calls lease ------------------------*- C++ -*-===//
//
// A slab, a set of results and a lane's arena are blocks: memory with fixed addresses, one piece
// per device. A pool owns blocks; who else refers to one, or to its storages, leases it.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/runtime/LastUse.h"

#include "rondo/executors/Kernel.h"
#include "rondo/executors/Tensor.h"

#include <vector>

namespace rondo {

class Block;
using BlockRef = llvm::IntrusiveRefCntPtr<Block>;

/// A tensor of the caller that a forward saved: its storage, and where it starts.
struct SavedTensor {
  StorageRef storage;
  std::byte *data = nullptr;
};

/// A storage of results that lies in memory of the caller's.
struct PlacedResult {
  uint32_t storage; ///< of the forward's schedule, or the side's that makes it
  SavedTensor tensor;
};

/// The one for `storage`, or null.
inline const PlacedResult *findPlaced(llvm::ArrayRef<PlacedResult> placed, uint32_t storage) {
  for (const PlacedResult &result : placed)
    if (result.storage == storage)
      return &result;
  return nullptr;
}

/// Counted intrusively; used by one call at a time.
class Block {
public:
  /// `bytes` per device; nothing is allocated where it is 0.
  static llvm::Expected<BlockRef> create(llvm::ArrayRef<DeviceRef> devices,
                                         llvm::ArrayRef<uint64_t> bytes, uint64_t id);

  uint64_t id() const { return id_; }
  /// Null where there are no bytes.
  std::byte *base(unsigned device) const {
    return storages_[device] ? storages_[device]->data() : nullptr;
  }
  const StorageRef &storage(unsigned device) const { return storages_[device]; }
  uint64_t bytes(unsigned device) const {
    return storages_[device] ? storages_[device]->bytes() : 0;
  }
  /// True if the pool's is the only reference to the block and the block's the only ones to its
  /// storages.
  bool isIdle() const;
  /// True if there is another reference to the block than the pool's. Tensors in it do not count.
  bool isLeased() const { return references_.load(std::memory_order_acquire) > 1; }

  LastUse &lastUse() { return lastUse_; }
  uint64_t lastStream() const { return lastUse_.stream(); }
  // Of the lease, for the pool's owner.

  uint64_t leaseStream = 0; ///< of the call that leased it last; 0 before that
  uint64_t leaseWindow = 0; ///< of BlockPool, when that was

  // For IntrusiveRefCntPtr.
  void Retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }

  // What belongs to a saved state beside the bytes of its slab.

  std::vector<SavedTensor> savedTensors;
  std::vector<Slot> savedScalars;
  BlockRef forwardResults;
  std::vector<PlacedResult> savedPlaced; ///< what is saved of them, in place of forwardResults
  uint64_t program = 0;                  ///< which specialisation of which program filled it
  /// Lets go of all that.
  void clearSaved();

private:
  Block() = default;

  uint64_t id_ = 0;
  llvm::SmallVector<StorageRef, 1> storages_;
  LastUse lastUse_;
  mutable std::atomic<uint32_t> references_ = 0;
};

/// Blocks of one layout, as many as calls need at a time. Not thread-safe: the program's lock
/// protects it.
class BlockPool {
public:
  /// An idle block that satisfies `prefer`, else, unless only those will do, another idle one; null
  /// if there is none.
  BlockRef lease(llvm::function_ref<bool(const Block &)> prefer, bool onlyPreferred);
  /// The caller has leased it.
  void add(BlockRef block);
  size_t size() const { return blocks_.size(); }
  /// Is one of its blocks leased?
  bool isLeased() const;
  llvm::ArrayRef<BlockRef> blocks() const { return blocks_; }
  /// Takes out idle blocks that were not leased lately: within the last `window` leases, to twice
  /// as many.
  void takeSurplus(std::vector<BlockRef> &taken);
  void takeIdle(std::vector<BlockRef> &taken);

private:
  static constexpr unsigned window = 64;
  void countLease(Block &block) { block.leaseWindow = leases_++ / window; }

  std::vector<BlockRef> blocks_;
  uint64_t leases_ = 0;
};

} // namespace rondo
