//===- TracePair.h - A forward and its backward -----------------*- C++ -*-===//
//
// A pair ties a forward trace to its backward by saved links: a `SavedId` on an operand of the
// forward's `return` and on an argument of the backward. Nothing is ever found by its position in a
// list. A pair may lack a backward (inference, an optimiser step).
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Trace.h"

#include <optional>

namespace rondo {

enum class Side : uint8_t { Forward, Backward };
llvm::StringRef sideName(Side side);

/// One value that goes from forward to backward.
struct SavedLink {
  SavedId id;
  ValueId forward;  ///< operand of the forward's `return`
  ValueId backward; ///< argument of the backward
};

class TracePair {
public:
  explicit TracePair(Trace forward) : name_(forward.name().str()), forward_(std::move(forward)) {}
  TracePair(Trace forward, Trace backward)
      : name_(forward.name().str()), forward_(std::move(forward)), backward_(std::move(backward)) {}

  TracePair clone() const;

  llvm::StringRef name() const { return name_; }
  void setName(llvm::StringRef name) { name_ = name.str(); }

  Trace &forward() { return forward_; }
  const Trace &forward() const { return forward_; }
  bool hasBackward() const { return backward_.has_value(); }
  /// Asserts that there is one.
  Trace &backward() { return *backward_; }
  const Trace &backward() const { return *backward_; }
  Trace &trace(Side side) { return side == Side::Forward ? forward_ : *backward_; }
  const Trace &trace(Side side) const { return side == Side::Forward ? forward_ : *backward_; }

  /// Saves `forward` for the backward: appends it to the forward's `return` (which must exist) and
  /// adds an argument of the same type, named `name` (default: as in the forward), to the backward.
  /// Returns the new link's id.
  SavedId addSaved(ValueId forward, llvm::StringRef name = {});
  /// Links an operand of the forward's `return` to an argument of the backward that both exist; for
  /// readers and importers.
  SavedId linkSaved(unsigned returnOperand, unsigned argument);
  /// Removes the link, the operand of the forward's `return`, and the backward's argument, which
  /// must have no use left.
  void dropSaved(SavedId id);

  /// In the order of the forward's `return`.
  llvm::SmallVector<SavedLink, 0> saved() const;
  /// The link with this id, if there is one.
  std::optional<SavedLink> findSaved(SavedId id) const;

  /// Marks one end of a link; for readers, which see the two ends apart. The verifier finds links
  /// with one end only. Ids at or above `maxSavedId` are refused by assertion: readers check first.
  void markSavedReturn(unsigned returnOperand, SavedId id);
  void markSavedArgument(unsigned argument, SavedId id);
  static constexpr uint32_t maxSavedId = 1u << 30;

private:
  std::string name_;
  Trace forward_;
  std::optional<Trace> backward_;
  uint32_t nextSaved_ = 0;
};

} // namespace rondo
