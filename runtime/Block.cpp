//===- Block.cpp - Memory that calls lease --------------------------------===//

#include "Block.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

llvm::Expected<BlockRef> Block::create(llvm::ArrayRef<DeviceRef> devices,
                                       llvm::ArrayRef<uint64_t> bytes, uint64_t id) {
  BlockRef block(new Block);
  block->id_ = id;
  for (unsigned i = 0; i < devices.size(); ++i) {
    StorageRef storage;
    if (bytes[i] != 0) {
      llvm::Expected<StorageRef> made = Storage::allocate(devices[i], bytes[i]);
      if (!made)
        return made.takeError();
      storage = std::move(*made);
    }
    block->storages_.push_back(std::move(storage));
  }
  return block;
}

bool Block::isIdle() const {
  return references_.load(std::memory_order_acquire) == 1 &&
         llvm::all_of(storages_,
                      [](const StorageRef &storage) { return !storage || storage->isUnique(); });
}

void Block::clearSaved() {
  savedTensors.clear();
  savedScalars.clear();
  forwardResults.reset();
  savedPlaced.clear();
  program = 0;
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

BlockRef BlockPool::lease(llvm::function_ref<bool(const Block &)> prefer, bool onlyPreferred) {
  const BlockRef *found = nullptr;
  for (const BlockRef &block : blocks_) {
    if (!block->isIdle())
      continue;
    bool isPreferred = prefer(*block);
    if (isPreferred || (!onlyPreferred && !found))
      found = &block;
    if (isPreferred)
      break;
  }
  if (!found)
    return nullptr;
  countLease(**found);
  return *found;
}

void BlockPool::add(BlockRef block) {
  countLease(*block);
  blocks_.push_back(std::move(block));
}

bool BlockPool::isLeased() const {
  return llvm::any_of(blocks_, [](const BlockRef &block) { return block->isLeased(); });
}

void BlockPool::takeSurplus(std::vector<BlockRef> &taken) {
  for (size_t i = blocks_.size(); i-- > 0;) {
    if (blocks_[i]->leaseWindow + 1 >= leases_ / window || !blocks_[i]->isIdle())
      continue;
    taken.push_back(std::move(blocks_[i]));
    blocks_.erase(blocks_.begin() + i);
  }
}

void BlockPool::takeIdle(std::vector<BlockRef> &taken) {
  for (size_t i = blocks_.size(); i-- > 0;) {
    if (!blocks_[i]->isIdle())
      continue;
    taken.push_back(std::move(blocks_[i]));
    blocks_.erase(blocks_.begin() + i);
  }
}
