//===- Effects.h - What an op reads, writes and views -----------*- C++ -*-===//
//
// Passes ask an op for its effects, never for its name. Effects speak of operands and results by
// position, and of resources that are no values: a generator, a communicator, the host, or anything
// at all (unknown).
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Ids.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace rondo {

class Trace;

enum class ResourceKind : uint8_t {
  Generator,    ///< a named random-number generator's seed and base offset
  Communicator, ///< a named group of ranks; collectives on it keep their order
  Host,         ///< the op waits for the device, or the host sees its data
  Custom,       ///< an embedder's own, by name
  Unknown,      ///< anything may be read and written: the op is ordered against every other op
};
llvm::StringRef resourceKindName(ResourceKind kind);

struct ResourceEffect {
  ResourceKind kind;
  llvm::StringRef name; ///< borrowed from the op or its spec; empty for Host and Unknown
  bool writes;
  friend bool operator==(const ResourceEffect &, const ResourceEffect &) = default;
};

/// Result `result` names (part of) the storage of operand `operand`.
struct ViewEffect {
  unsigned operand;
  unsigned result;
  friend bool operator==(ViewEffect, ViewEffect) = default;
};

/// The effects of one op. Operand lists are sorted and without duplicates.
class Effects {
public:
  llvm::SmallVector<unsigned, 4> reads;  ///< operands whose storage is read
  llvm::SmallVector<unsigned, 2> writes; ///< operands whose storage is written in place
  llvm::SmallVector<ViewEffect, 2> views;
  llvm::SmallVector<ResourceEffect, 1> resources;

  void clear();
  void addRead(unsigned operand);
  void addWrite(unsigned operand);
  void addView(unsigned operand, unsigned result);
  void addResource(ResourceEffect effect);

  bool writesOperand(unsigned operand) const;
  /// Nothing is known: the op may touch any storage and any resource.
  bool isUnknown() const;
  bool synchronisesHost() const;
  /// Neither writes storage nor writes a resource, and nothing is unknown: may be removed when its
  /// results are unused.
  bool isRemovable() const;
  /// Removable, and reads no resource: two such ops with equal operands and attributes give equal
  /// results.
  bool isPure() const;
  /// The operand that result `result` views; several if it may be any of them; empty for fresh
  /// storage.
  llvm::SmallVector<unsigned, 1> viewedBy(unsigned result) const;
};

/// Fills `effects` with those of `op`. The effects of an op with bodies are the union over its
/// bodies, expressed in its own operands and results. Linear in the size of the bodies. Names in it
/// borrow from the trace.
void getEffects(const Trace &trace, OpId op, Effects &effects);
inline Effects getEffects(const Trace &trace, OpId op) {
  Effects effects;
  getEffects(trace, op, effects);
  return effects;
}

} // namespace rondo
