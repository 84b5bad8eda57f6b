//===- FusionRecord.h - Why an op is or is not in a region ------*- C++ -*-===//

#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

/// Who decided whether an op goes into a region.
enum class FusionDecider : uint8_t {
  Legality, ///< a rule that no policy can overrule
  Executor, ///< the claim says that the op cannot be captured
  Policy,   ///< `canFuse`
  Region,   ///< the region it would have been in was not kept, or the op was trimmed from its edge
};
/// `legality`, `executor`, `policy`, `region`.
llvm::StringRef fusionDeciderName(FusionDecider decider);
std::optional<FusionDecider> parseFusionDecider(llvm::StringRef name);

/// The recorded verdict on one op. It is what `explain` prints; a trace stores it, printed and
/// parsed.
struct FusionRecord {
  bool captured = false;
  FusionDecider decider = FusionDecider::Policy;
  /// Short and equal for equal causes, so that records can be grouped: "synchronises with the
  /// host".
  std::string reason;

  friend bool operator==(const FusionRecord &, const FusionRecord &) = default;
};

} // namespace rondo
