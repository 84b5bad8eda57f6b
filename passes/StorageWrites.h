//===- StorageWrites.h - When may a storage be written? ---------*- C++ -*-===//
//
// What a pass must know before it lets one value stand for another: whether the storage behind a
// value is written, when, and who else can reach it. For passes that have checked that no `del`
// was placed.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/StorageRoots.h"

namespace rondo {

/// May two arguments of a body name overlapping storage? Passes that change what is written or
/// reordered assume so; who runs a trace refuses arguments that overlap one that is written.
enum class ArgumentOverlap : uint8_t { Assumed, NotWhereWritten };

/// The writes of every body of a trace, by storage. Found in one sweep. Borrowed: valid until the
/// trace changes, and only for values that existed when it was made. Positions index
/// `trace.ops(body)`, where `body` is the one that holds the value.
class StorageWrites {
public:
  StorageWrites(const Trace &trace, const StorageRoots &roots,
                ArgumentOverlap overlap = ArgumentOverlap::Assumed);

  /// True if something other than the ops of the body can reach the storage: it came in as an
  /// argument, or an op with unknown effects was given it. An op with unknown effects may touch
  /// any shared storage of the body; if overlap is assumed, so does a write to one of them.
  bool isShared(ValueId value) const { return hasFlag(value, Shared); }
  /// True if an op of the body writes the storage, or is given it and has unknown effects.
  bool isWritten(ValueId value) const { return hasFlag(value, Written); }
  /// True if the body's terminator gives a name of the storage.
  bool isReturned(ValueId value) const { return hasFlag(value, Returned); }

  /// One past the position of the last op before `position` that may write the storage; 0 if none
  /// may. Two reads see the same data exactly if this is equal for them.
  uint32_t lastWriteBefore(ValueId value, uint32_t position) const;
  /// True if an op after `position` may write the storage.
  bool isWrittenAfter(ValueId value, uint32_t position) const;

private:
  enum Flag : uint8_t { Shared = 1, Written = 2, Returned = 4 };
  using Positions = llvm::SmallVector<uint32_t, 1>; ///< rising

  void addBody(BodyId body);
  /// Flags the storage that ops with unknown effects are given and what is written; lists writes.
  void addWrites(const Op &op, uint32_t position,
                 std::vector<std::pair<ValueId, uint32_t>> &pending);
  void flag(ValueId value, uint8_t flags);
  bool hasFlag(ValueId value, Flag flag) const;
  /// The writes that may hit the storage rooted at `root`: of it alone, and of all that is shared.
  std::pair<llvm::ArrayRef<uint32_t>, llvm::ArrayRef<uint32_t>> positions(ValueId root) const;

  const Trace &trace_;
  const StorageRoots &roots_;
  const ArgumentOverlap overlap_;
  std::vector<uint8_t> flags_;                     ///< by root
  llvm::DenseMap<ValueId, Positions> ownWrites_;   ///< by root; with overlap, that is not shared
  llvm::DenseMap<BodyId, Positions> sharedWrites_; ///< to any shared root of the body
};

} // namespace rondo
