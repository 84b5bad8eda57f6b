//===- CaptureDomain.h - Whose graphs are these? ----------------*- C++ -*-===//
//
// "Cached per transform, never globally": each CUDAGraphTransform creates one domain, each
// `cuda_graph` op it makes names that domain, and programs hold it. The runtime attaches its graph
// cache to the domain in a type-erased slot, so that the cache dies with the last of transform,
// traces and programs, and two transforms share nothing. What sits in a slot must not hold the
// domain, the trace or the program.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace rondo {

class CaptureDomain;
using CaptureDomainRef = llvm::IntrusiveRefCntPtr<CaptureDomain>;

/// An identity with type-erased slots; counted intrusively. Two domains are the same only if they
/// are the same object. All functions may be called from several threads.
class CaptureDomain : public llvm::ThreadSafeRefCountedBase<CaptureDomain> {
public:
  static CaptureDomainRef create(llvm::StringRef name);
  ~CaptureDomain();
  CaptureDomain(const CaptureDomain &) = delete;
  CaptureDomain &operator=(const CaptureDomain &) = delete;

  /// For people who read dumps; need not be unique.
  llvm::StringRef name() const { return name_; }

  /// What sits in the slot of `key`, made by `create` on first use. `key` is an address that the
  /// caller owns, such as that of a static constant; one call of `create` per key, under a lock: it
  /// must not use this domain. When it returns null the slot stays empty.
  std::shared_ptr<void> slot(const void *key, llvm::function_ref<std::shared_ptr<void>()> create);
  /// What sits in the slot of `key`, or null.
  std::shared_ptr<void> findSlot(const void *key) const;
  /// Empties the slot of `key`; what was in it dies with its last user.
  void eraseSlot(const void *key);

private:
  explicit CaptureDomain(llvm::StringRef name) : name_(name) {}

  struct Slot {
    const void *key;
    std::shared_ptr<void> content;
  };
  const std::string name_;
  mutable std::mutex mutex_;
  llvm::SmallVector<Slot, 2> slots_;
};

} // namespace rondo
