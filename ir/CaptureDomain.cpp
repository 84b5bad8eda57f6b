//===- CaptureDomain.cpp - Whose graphs are these? ------------------------===//

#include "rondo/ir/CaptureDomain.h"

namespace rondo {

CaptureDomainRef CaptureDomain::create(llvm::StringRef name) {
  return CaptureDomainRef(new CaptureDomain(name));
}

CaptureDomain::~CaptureDomain() = default;

std::shared_ptr<void> CaptureDomain::slot(const void *key,
                                          llvm::function_ref<std::shared_ptr<void>()> create) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Slot &slot : slots_)
    if (slot.key == key)
      return slot.content;
  std::shared_ptr<void> content = create();
  if (content)
    slots_.push_back({key, content});
  return content;
}

std::shared_ptr<void> CaptureDomain::findSlot(const void *key) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Slot &slot : slots_)
    if (slot.key == key)
      return slot.content;
  return nullptr;
}

void CaptureDomain::eraseSlot(const void *key) {
  // The content dies after the lock is given back: its destructor may be long, or ask this domain.
  std::shared_ptr<void> content;
  std::lock_guard<std::mutex> lock(mutex_);
  for (Slot &slot : slots_) {
    if (slot.key != key)
      continue;
    content = std::move(slot.content);
    slots_.erase(&slot);
    return;
  }
}

} // namespace rondo
