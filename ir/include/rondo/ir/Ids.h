//===- Ids.h - Typed 32-bit ids ---------------------------------*- C++ -*-===//
//
// A trace keeps its values, ops and bodies in tables and names them by typed ids. An id is
// trace-wide, never reused, and kept when an op moves into another body, so that it can be stored
// in side tables and in dumps.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/raw_ostream.h"

#include <cassert>
#include <cstdint>

namespace rondo {

/// A typed index into one table. `Tag` names the kind of thing it points to and the letter it is
/// printed with. A default-constructed id is invalid; it stands for "absent" where an operand may
/// be left out.
template <typename Tag> class Id {
public:
  constexpr Id() = default;
  constexpr explicit Id(uint32_t index) : index_(index) {}

  constexpr bool isValid() const { return index_ != invalidIndex; }
  constexpr explicit operator bool() const { return isValid(); }
  constexpr uint32_t index() const {
    assert(isValid() && "index of an invalid id");
    return index_;
  }
  /// The index, or 2^32-1 when invalid. For hashing and serialisation only.
  constexpr uint32_t rawIndex() const { return index_; }

  friend constexpr bool operator==(Id a, Id b) { return a.index_ == b.index_; }
  friend constexpr auto operator<=>(Id a, Id b) { return a.index_ <=> b.index_; }
  friend llvm::hash_code hash_value(Id id) { return llvm::hash_value(id.index_); }
  friend llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Id id) {
    return id ? os << Tag::letter << id.index_ : os << "none";
  }

private:
  static constexpr uint32_t invalidIndex = ~uint32_t(0);
  uint32_t index_ = invalidIndex;
};

struct ValueTag {
  static constexpr char letter = '%';
};
struct OpTag {
  static constexpr char letter = '!';
};
struct BodyTag {
  static constexpr char letter = '^';
};
struct SavedTag {
  static constexpr char letter = '#';
};

using ValueId = Id<ValueTag>;
using OpId = Id<OpTag>;
using BodyId = Id<BodyTag>;
/// Ties an operand of the forward's `return` to an argument of the backward. See TracePair.
using SavedId = Id<SavedTag>;

} // namespace rondo

namespace llvm {
template <typename Tag> struct DenseMapInfo<rondo::Id<Tag>> {
  static rondo::Id<Tag> getEmptyKey() { return rondo::Id<Tag>(~0u - 1); }
  static rondo::Id<Tag> getTombstoneKey() { return rondo::Id<Tag>(~0u - 2); }
  static unsigned getHashValue(rondo::Id<Tag> id) { return id.rawIndex() * 37u; }
  static bool isEqual(rondo::Id<Tag> a, rondo::Id<Tag> b) { return a == b; }
};
} // namespace llvm
