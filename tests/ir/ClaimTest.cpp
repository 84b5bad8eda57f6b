//===- ClaimTest.cpp - Claims and fusion records --------------------------===//

#include "rondo/ir/Claim.h"
#include "rondo/ir/FusionRecord.h"
#include "rondo/ir/OpRegistry.h"
#include "rondo/ir/Trace.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

/// Each answer says whether the op is taken, and whether it may be captured.
TEST(Claim, Answers) {
  ClaimAnswer yes = ClaimAnswer::accept(64), eager = ClaimAnswer::acceptUncapturable("reads back"),
              no = ClaimAnswer::decline("no f64");
  EXPECT_TRUE(yes.accepted && yes.capturable);
  EXPECT_EQ(yes.workspaceBytes, 64u);
  EXPECT_TRUE(eager.accepted && !eager.capturable);
  EXPECT_EQ(eager.why, "reads back");
  EXPECT_FALSE(no.accepted);
  EXPECT_EQ(no.why, "no f64");
}

/// A source that says nothing about groups wants none, and leaves the caller's alone.
TEST(Claim, NoGroupsByDefault) {
  struct Source final : ClaimSource {
    llvm::StringRef name() const override { return "table"; }
    ClaimAnswer claim(const Trace &, OpId) const override { return ClaimAnswer::accept(); }
  };
  OpRegistry registry;
  Trace trace(registry);
  std::vector<GroupClaim> groups(1);
  Source().claimGroups(trace, Trace::topBody(), groups);
  EXPECT_EQ(groups.size(), 1u);
}

/// Claims are equal when all of their parts are.
TEST(Claim, Equality) {
  Claim claim{"host", true, "", 0};
  EXPECT_EQ(claim, (Claim{"host", true, "", 0}));
  EXPECT_NE(claim, (Claim{"cublas", true, "", 0}));
  EXPECT_NE(claim, (Claim{"host", false, "", 0}));
  EXPECT_NE(claim, (Claim{"host", true, "why", 0}));
  EXPECT_NE(claim, (Claim{"host", true, "", 1}));
}

/// Names of deciders read back; other names are refused.
TEST(FusionRecord, DeciderNames) {
  for (FusionDecider decider : {FusionDecider::Legality, FusionDecider::Executor,
                                FusionDecider::Policy, FusionDecider::Region})
    EXPECT_EQ(parseFusionDecider(fusionDeciderName(decider)), decider);
  EXPECT_EQ(fusionDeciderName(FusionDecider::Legality), "legality");
  EXPECT_EQ(parseFusionDecider("Legality"), std::nullopt);
  EXPECT_EQ(parseFusionDecider(""), std::nullopt);
}

} // namespace
