//===- StorageRoots.h - Which values name the same storage? -----*- C++ -*-===//
//
// Tags, effects, liveness, `del` and memory act on storage roots, not on values. The root of an
// argument is itself, that of a fresh result is itself, and a view has the roots of what it views;
// a value that may view any of several (the result of an `if`) has several roots. Results of an op
// with bodies that name one storage, made in a body, have the first of them as root.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Trace.h"

namespace rondo {

/// Roots of every value of a trace, all bodies; found in one sweep. Borrowed: valid until the trace
/// changes. A root is named by the value that made the storage. Within a body, its arguments are
/// roots (bodies are isolated).
class StorageRoots {
public:
  explicit StorageRoots(const Trace &trace);

  /// At least one; usually exactly one. Sorted.
  llvm::ArrayRef<ValueId> roots(ValueId value) const;
  /// The first root: the only one in all but a few cases.
  ValueId root(ValueId value) const { return roots(value).front(); }
  bool mayAlias(ValueId a, ValueId b) const;
  /// Union of the tags of the value and of all its roots.
  ValueTags tags(ValueId value) const;
  /// True if the address of `value` does not move between calls: each of its roots is a parameter,
  /// a buffer or static.
  bool isStatic(ValueId value) const;

private:
  void addBody(BodyId body);
  void addSharedResults(const Op &op, BodyId body);
  void addView(ValueId viewed, ValueId view);

  const Trace *trace_;
  std::vector<ValueId> single_; ///< per value, unless it has several roots
  std::vector<llvm::SmallVector<ValueId, 2>> multiple_;
  llvm::DenseMap<ValueId, unsigned> multipleOf_;
};

/// Elements from the first element of the operand that result `result` of `op` views to the first of
/// the result; for an op that `countsFromStorageStart`, from the start of the operand's storage.
/// Asserts that its spec says that the result is a view: not an op with bodies, where it depends on
/// them, and not an opaque one, where nobody knows. `Dim::overflow()` for an op that does not verify
/// or whose offset does not fit 63 bits.
Dim viewOffset(const Trace &trace, OpId op, unsigned result);

} // namespace rondo
