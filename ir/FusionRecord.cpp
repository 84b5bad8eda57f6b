//===- FusionRecord.cpp - Why an op is or is not in a region --------------===//

#include "rondo/ir/FusionRecord.h"

#include "llvm/Support/ErrorHandling.h"

namespace rondo {

llvm::StringRef fusionDeciderName(FusionDecider decider) {
  switch (decider) {
  case FusionDecider::Legality:
    return "legality";
  case FusionDecider::Executor:
    return "executor";
  case FusionDecider::Policy:
    return "policy";
  case FusionDecider::Region:
    return "region";
  }
  llvm_unreachable("no such decider");
}

std::optional<FusionDecider> parseFusionDecider(llvm::StringRef name) {
  for (FusionDecider decider : {FusionDecider::Legality, FusionDecider::Executor,
                                FusionDecider::Policy, FusionDecider::Region})
    if (fusionDeciderName(decider) == name)
      return decider;
  return std::nullopt;
}

} // namespace rondo
