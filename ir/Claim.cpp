//===- Claim.cpp - Who executes an op -------------------------------------===//

#include "rondo/ir/Claim.h"

namespace rondo {

ClaimSource::~ClaimSource() = default;

void ClaimSource::claimGroups(const Trace &, BodyId, std::vector<GroupClaim> &) const {}

} // namespace rondo
