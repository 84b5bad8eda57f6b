//===- PassManagerTest.cpp - Running pipelines ------------------------------===//

#include "rondo/passes/PassManager.h"

#include "PassFixture.h"

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

namespace {

/// A pass that is what the test makes of it.
class TestPass : public PairPass {
public:
  using Run = std::function<llvm::Expected<PassResult>(TracePair &, DiagnosticList &)>;

  TestPass(llvm::StringRef name, PassProperties properties, Run run = nullptr)
      : name_(name.str()), properties_(properties), run_(std::move(run)) {}

  llvm::StringRef name() const override { return name_; }
  PassProperties properties() const override { return properties_; }
  std::string optionsText() const override { return options; }

  std::string options;

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &diagnostics) override {
    return run_ ? run_(pair, diagnostics) : llvm::Expected<PassResult>(PassResult::Unchanged);
  }

private:
  std::string name_;
  PassProperties properties_;
  Run run_;
};

std::unique_ptr<TestPass> makePass(llvm::StringRef name, PassProperties properties = {},
                                   TestPass::Run run = nullptr) {
  return std::make_unique<TestPass>(name, properties, std::move(run));
}

constexpr TraceProperties claimed = TraceProperties::Claimed;
constexpr TraceProperties regions = TraceProperties::HasRegions;
constexpr TraceProperties dels = TraceProperties::HasDels;

PassProperties sets(TraceProperties properties) {
  return {.sets = properties};
}
PassProperties clears(TraceProperties properties) {
  return {.clears = properties};
}
PassProperties requires_(TraceProperties properties) {
  return {.requires_ = properties};
}
PassProperties forbids(TraceProperties properties) {
  return {.forbids = properties};
}

/// A TracePass: renames every trace, and can fail on one side.
class RenamePass : public TracePass {
public:
  llvm::StringRef name() const override { return "rename"; }
  std::vector<Side> seen;
  std::optional<Side> unchangedOn, failsOn;

protected:
  llvm::Expected<PassResult> runOnTrace(Trace &trace, Side side, DiagnosticList &) override {
    seen.push_back(side);
    if (failsOn == side)
      return makeError("no name for the " + sideName(side));
    if (unchangedOn == side)
      return PassResult::Unchanged;
    trace.setName((trace.name() + "_new").str());
    return PassResult::Changed;
  }
};

class PassManagerTest : public PassFixture {
protected:
  static constexpr llvm::StringLiteral forwardText = R"(trace @step(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  return(%y)
}
)";
  static constexpr llvm::StringLiteral pairText = R"(pair @step {
  forward @fw(%x: f32[8]) {
    %y: f32[8] = relu(%x)
    return(%y, %x saved #0)
  }
  backward @bw(%g: f32[8], %x: f32[8] saved #0) {
    %d: f32[8] = threshold_backward(%g, %x)
    return(%d)
  }
}
)";

  PassManager manager;
};

/// Breaks the trace: the first op uses its own result.
llvm::Expected<PassResult> breakTrace(TracePair &pair, DiagnosticList &) {
  Trace &trace = pair.forward();
  const Op &op = trace.op(trace.ops().front());
  trace.setOperand(op.id(), 0, op.result());
  return PassResult::Changed;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

// A pass that requires what an earlier one sets, and forbids what a later one sets, is in order.
TEST_F(PassManagerTest, AcceptsPassesInOrder) {
  manager.add(makePass("a", sets(claimed)))
      .add(makePass("b", {.requires_ = claimed, .forbids = dels, .sets = regions}))
      .add(makePass("c", sets(dels)));
  EXPECT_EQ(messageOf(manager.checkOrder(TraceProperties::None)), "success");
}

// A requirement that nothing sets is an error that names the pass and the property.
TEST_F(PassManagerTest, RequirementThatNothingSets) {
  manager.add(makePass("a")).add(makePass("b", requires_(claimed)));
  EXPECT_EQ(messageOf(manager.checkOrder(TraceProperties::None)),
            "<pipeline>: error: pass 'b' requires 'claimed', which no pass before it sets\n"
            "a,b\n"
            "  ^");
  EXPECT_EQ(messageOf(manager.checkOrder(claimed)), "success");
}

// When a later pass sets what is required, a note says so.
TEST_F(PassManagerTest, RequirementThatComesLater) {
  manager.add(makePass("b", requires_(claimed))).add(makePass("a", sets(claimed)));
  EXPECT_EQ(messageOf(manager.checkOrder(TraceProperties::None)),
            "<pipeline>: error: pass 'b' requires 'claimed', which no pass before it sets\n"
            "b,a\n"
            "^\n"
            "note: pass 'a' sets it, but comes later");
}

// When an earlier pass clears what is required, it is named.
TEST_F(PassManagerTest, RequirementThatIsCleared) {
  manager.add(makePass("a", clears(claimed))).add(makePass("b", requires_(claimed)));
  EXPECT_THAT(messageOf(manager.checkOrder(claimed)),
              HasSubstr("pass 'b' requires 'claimed', which pass 'a' clears"));
}

// What is forbidden and set before is an error that names both passes, the last one that set it.
TEST_F(PassManagerTest, ForbiddenAndSetBefore) {
  manager.add(makePass("del", sets(dels)))
      .add(makePass("again", sets(dels)))
      .add(makePass("graph", forbids(dels)));
  EXPECT_EQ(messageOf(manager.checkOrder(TraceProperties::None)),
            "<pipeline>: error: pass 'graph' forbids 'dels', which pass 'again' sets\n"
            "del,again,graph\n"
            "          ^");
}

// What is forbidden and cleared in between is fine.
TEST_F(PassManagerTest, ForbiddenButCleared) {
  manager.add(makePass("del", sets(dels)))
      .add(makePass("undel", clears(dels)))
      .add(makePass("graph", forbids(dels)));
  EXPECT_EQ(messageOf(manager.checkOrder(TraceProperties::None)), "success");
}

// What the trace has from the start counts.
TEST_F(PassManagerTest, ForbiddenFromTheStart) {
  manager.add(makePass("graph", forbids(dels)));
  EXPECT_THAT(messageOf(manager.checkOrder(dels)),
              HasSubstr("pass 'graph' forbids 'dels', which the trace has from the start"));
  EXPECT_EQ(messageOf(manager.checkOrder(claimed | regions)), "success");
}

// Every broken rule is reported, not the first only.
TEST_F(PassManagerTest, ReportsEveryBrokenRule) {
  manager.add(makePass("a", {.requires_ = claimed | regions, .forbids = dels}))
      .add(makePass("b", requires_(claimed)));
  std::string message = messageOf(manager.checkOrder(dels));
  EXPECT_THAT(message, HasSubstr("pass 'a' requires 'claimed'"));
  EXPECT_THAT(message, HasSubstr("pass 'a' requires 'regions'"));
  EXPECT_THAT(message, HasSubstr("pass 'a' forbids 'dels'"));
  EXPECT_THAT(message, HasSubstr("pass 'b' requires 'claimed'"));
}

// Of a pair, both traces must have what is required and neither what is forbidden.
TEST_F(PassManagerTest, ChecksBothTracesOfAPair) {
  TracePair pair = parse(pairText);
  pair.forward().setProperties(claimed);
  manager.add(makePass("needs", requires_(claimed)));
  EXPECT_THAT(messageOf(manager.checkOrder(pair)), HasSubstr("requires 'claimed'"));
  pair.backward().setProperties(claimed);
  EXPECT_EQ(messageOf(manager.checkOrder(pair)), "success");

  PassManager other;
  other.add(makePass("refuses", forbids(dels)));
  EXPECT_EQ(messageOf(other.checkOrder(pair)), "success");
  pair.backward().setProperties(dels);
  EXPECT_THAT(messageOf(other.checkOrder(pair)), HasSubstr("forbids 'dels'"));
}

// A pipeline out of order runs nothing at all.
TEST_F(PassManagerTest, RunsNothingOutOfOrder) {
  bool ran = false;
  manager
      .add(makePass("first", sets(dels),
                    [&](TracePair &, DiagnosticList &) {
                      ran = true;
                      return PassResult::Unchanged;
                    }))
      .add(makePass("graph", forbids(dels)));
  EXPECT_THAT(messageOf(manager.run(parse(forwardText))), HasSubstr("which pass 'first' sets"));
  EXPECT_FALSE(ran);
  EXPECT_TRUE(manager.timings().empty());
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

// Without passes the pair comes back as it was.
TEST_F(PassManagerTest, EmptyPipeline) {
  llvm::Expected<TracePair> pair = manager.run(parse(pairText));
  ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
  EXPECT_EQ(textOf(*pair), pairText);
  EXPECT_EQ(manager.pipelineText(), "");
}

// Passes run in order, and the traces get and lose the properties that they declare.
TEST_F(PassManagerTest, UpdatesProperties) {
  std::vector<TraceProperties> seen;
  auto look = [&](TracePair &pair, DiagnosticList &) {
    EXPECT_EQ(pair.forward().properties(), pair.backward().properties());
    seen.push_back(pair.forward().properties());
    return PassResult::Unchanged;
  };
  manager.add(makePass("a", sets(dels | regions), look))
      .add(makePass("b", {.sets = regions, .clears = dels}, look))
      .add(makePass("c", clears(regions), look));
  llvm::Expected<TracePair> pair = manager.run(parse(pairText));
  ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
  EXPECT_THAT(seen, ElementsAre(TraceProperties::None, dels | regions, regions));
  EXPECT_EQ(pair->forward().properties(), TraceProperties::None);
}

// A TracePass sees the forward, then the backward, and has changed something if it did on either.
TEST_F(PassManagerTest, TracePassSeesForwardThenBackward) {
  auto pass = std::make_unique<RenamePass>();
  RenamePass &rename = *pass;
  manager.add(std::move(pass));
  llvm::Expected<TracePair> pair = manager.run(parse(pairText));
  ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
  EXPECT_THAT(rename.seen, ElementsAre(Side::Forward, Side::Backward));
  EXPECT_EQ(pair->forward().name(), "fw_new");
  EXPECT_EQ(pair->backward().name(), "bw_new");

  for (Side side : {Side::Forward, Side::Backward}) {
    rename.unchangedOn = side;
    ASSERT_TRUE(bool(manager.run(parse(pairText))));
    EXPECT_TRUE(manager.timings().front().changed);
  }
}

// A TracePass on a pair without backward sees the forward only, and says what it said of it.
TEST_F(PassManagerTest, TracePassWithoutBackward) {
  auto pass = std::make_unique<RenamePass>();
  RenamePass &rename = *pass;
  manager.add(std::move(pass));
  rename.unchangedOn = Side::Forward;
  llvm::Expected<TracePair> pair = manager.run(parse(forwardText));
  ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
  EXPECT_THAT(rename.seen, ElementsAre(Side::Forward));
  EXPECT_FALSE(manager.timings().front().changed);
}

// An error of a TracePass on the forward ends it; one on the backward fails it, too.
TEST_F(PassManagerTest, TracePassThatFails) {
  auto pass = std::make_unique<RenamePass>();
  RenamePass &rename = *pass;
  manager.add(std::move(pass));
  rename.failsOn = Side::Forward;
  EXPECT_EQ(messageOf(manager.run(parse(pairText))), "error: no name for the forward");
  EXPECT_THAT(rename.seen, ElementsAre(Side::Forward));
  rename.failsOn = Side::Backward;
  EXPECT_EQ(messageOf(manager.run(parse(pairText))), "error: no name for the backward");
}

// An error of a pass comes out as it is, and the passes after it do not run.
TEST_F(PassManagerTest, ErrorOfAPassEndsTheRun) {
  bool ran = false;
  manager
      .add(makePass("fails", {},
                    [](TracePair &, DiagnosticList &) -> llvm::Expected<PassResult> {
                      return makeError({"gpt.trace", 3, 5, {}}, "no");
                    }))
      .add(makePass("after", {}, [&](TracePair &, DiagnosticList &) {
        ran = true;
        return PassResult::Unchanged;
      }));
  EXPECT_EQ(messageOf(manager.run(parse(forwardText))), "gpt.trace:3:5: error: no");
  EXPECT_FALSE(ran);
  ASSERT_EQ(manager.timings().size(), 1u);
}

// An error that a pass adds to the diagnostics fails the run although the pass returns success.
TEST_F(PassManagerTest, ErrorAmongTheDiagnostics) {
  manager.add(makePass("adds", {}, [](TracePair &, DiagnosticList &diagnostics) {
    diagnostics.error({}, "bad input");
    return PassResult::Unchanged;
  }));
  EXPECT_EQ(messageOf(manager.run(parse(forwardText))), "error: bad input");
}

// Warnings are kept for the caller, those of the last run only.
TEST_F(PassManagerTest, KeepsWarnings) {
  manager.add(makePass("warns", {}, [](TracePair &, DiagnosticList &diagnostics) {
    diagnostics.warning({}, "slow");
    return PassResult::Unchanged;
  }));
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(bool(manager.run(parse(forwardText))));
    ASSERT_EQ(manager.diagnostics().diagnostics().size(), 1u);
    EXPECT_EQ(manager.diagnostics().diagnostics().front().str(), "warning: slow\n");
  }
}

//===----------------------------------------------------------------------===//
// Verifying
//===----------------------------------------------------------------------===//

// A pass that breaks the trace is named, before what the verifier says.
TEST_F(PassManagerTest, NamesThePassThatBreaksTheTrace) {
  manager.add(makePass("fine")).add(makePass("breaks", {}, breakTrace)).add(makePass("after"));
  std::string message = messageOf(manager.run(parse(forwardText)));
  EXPECT_THAT(message, StartsWith("error: pass 'breaks' broke the rules of the IR\ntest:2:"));
  EXPECT_THAT(message, HasSubstr("'relu' op"));
  EXPECT_EQ(manager.timings().size(), 2u);
}

// A trace that is broken from the start is no pass's fault.
TEST_F(PassManagerTest, VerifiesBeforeTheFirstPass) {
  TracePair pair = parse(forwardText);
  DiagnosticList none;
  llvm::cantFail(breakTrace(pair, none));
  manager.add(makePass("fine"));
  EXPECT_THAT(messageOf(manager.run(std::move(pair))),
              StartsWith("error: the traces break the rules of the IR before the first pass\n"));
  EXPECT_TRUE(manager.timings().empty());
}

// With verification off, a broken trace goes through.
TEST_F(PassManagerTest, VerificationCanBeTurnedOff) {
  manager.setVerify(false);
  manager.add(makePass("breaks", {}, breakTrace)).add(makePass("after"));
  llvm::Expected<TracePair> pair = manager.run(parse(forwardText));
  ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
  EXPECT_EQ(manager.timings()[0].verifySeconds, 0);
}

//===----------------------------------------------------------------------===//
// Unchanged
//===----------------------------------------------------------------------===//

// A pass that lies about having changed nothing is found out, with the first line that differs.
TEST_F(PassManagerTest, FindsChangesOfAPassThatDeniesThem) {
  manager.setCheckUnchanged(true);
  manager.add(makePass("lies", {}, [](TracePair &pair, DiagnosticList &) {
    pair.forward().setName(pair.forward().arguments().front(), "z");
    return PassResult::Unchanged;
  }));
  EXPECT_EQ(messageOf(manager.run(parse(forwardText))),
            "error: pass 'lies' said that it left the traces unchanged, but line 2 of their text "
            "differs\n"
            "note: before:   forward @step(%x: f32[8]) {\n"
            "note: after:   forward @step(%z: f32[8]) {");
}

// What is only added or only taken away is found as well.
TEST_F(PassManagerTest, FindsLinesAddedAndRemoved) {
  manager.setCheckUnchanged(true);
  manager.setVerify(false);
  manager.add(makePass("drops", {}, [](TracePair &pair, DiagnosticList &) {
    pair.forward().setOps(Trace::topBody(), {});
    return PassResult::Unchanged;
  }));
  EXPECT_THAT(messageOf(manager.run(parse(forwardText))), HasSubstr("line 3 of their text"));
}

// A pass that says so may change things, and the check can be turned off.
TEST_F(PassManagerTest, UncheckedOrHonestChangesPass) {
  auto rename = [](PassResult result) {
    return [result](TracePair &pair, DiagnosticList &) {
      pair.forward().setName("other");
      return result;
    };
  };
  manager.setCheckUnchanged(true);
  manager.add(makePass("honest", {}, rename(PassResult::Changed)));
  EXPECT_EQ(messageOf(manager.run(parse(forwardText))), "success");

  PassManager unchecked;
  unchecked.setCheckUnchanged(false);
  unchecked.add(makePass("lies", {}, rename(PassResult::Unchanged)));
  EXPECT_EQ(messageOf(unchecked.run(parse(forwardText))), "success");
}

// The properties that the manager itself updates are no change of the pass.
TEST_F(PassManagerTest, PropertiesAreNoChange) {
  manager.setCheckUnchanged(true);
  manager.add(makePass("sets", sets(dels)));
  EXPECT_EQ(messageOf(manager.run(parse(forwardText))), "success");
  EXPECT_FALSE(manager.timings().front().changed);
}

//===----------------------------------------------------------------------===//
// Observers, timing, text
//===----------------------------------------------------------------------===//

// Observers are called before and after each pass, in the order they were added, with the
// properties of that moment.
TEST_F(PassManagerTest, ObserversInOrder) {
  std::vector<std::string> calls;
  for (llvm::StringRef who : {"1", "2"})
    manager.addObserver([&calls, who](const Pass &pass, const TracePair &pair, bool isBefore) {
      calls.push_back((who + (isBefore ? " before " : " after ") + pass.name() +
                       (pair.forward().has(dels) ? " dels" : ""))
                          .str());
    });
  manager.add(makePass("a", sets(dels))).add(makePass("b"));
  ASSERT_TRUE(bool(manager.run(parse(forwardText))));
  EXPECT_THAT(calls, ElementsAre("1 before a", "2 before a", "1 after a dels", "2 after a dels",
                                 "1 before b dels", "2 before b dels", "1 after b dels",
                                 "2 after b dels"));
}

// An observer sees what a pass broke, before the verifier ends the run; of a pass that fails it
// sees nothing more.
TEST_F(PassManagerTest, ObserversSeeABrokenTrace) {
  std::vector<std::string> calls;
  auto observe = [&](const Pass &pass, const TracePair &, bool isBefore) {
    calls.push_back((isBefore ? "before " : "after ") + pass.name().str());
  };
  manager.addObserver(observe);
  manager.add(makePass("breaks", {}, breakTrace));
  EXPECT_NE(messageOf(manager.run(parse(forwardText))), "success");
  EXPECT_THAT(calls, ElementsAre("before breaks", "after breaks"));

  calls.clear();
  PassManager other;
  other.addObserver(observe);
  other.add(makePass("fails", {}, [](TracePair &, DiagnosticList &) {
    return llvm::Expected<PassResult>(makeError("no"));
  }));
  EXPECT_NE(messageOf(other.run(parse(forwardText))), "success");
  EXPECT_THAT(calls, ElementsAre("before fails"));
}

// There is one timing entry per pass of the last run, with what it said of changes.
TEST_F(PassManagerTest, TimesEveryPass) {
  manager.add(std::make_unique<RenamePass>()).add(makePass("idle"));
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(bool(manager.run(parse(pairText))));
    ASSERT_EQ(manager.timings().size(), 2u);
    EXPECT_EQ(manager.timings()[0].pass, "rename");
    EXPECT_TRUE(manager.timings()[0].changed);
    EXPECT_EQ(manager.timings()[1].pass, "idle");
    EXPECT_FALSE(manager.timings()[1].changed);
    for (const PassTiming &timing : manager.timings()) {
      EXPECT_GT(timing.seconds, 0);
      EXPECT_GT(timing.verifySeconds, 0);
    }
  }
}

// The text of a pipeline has the passes in order, with options in braces where there are any.
TEST_F(PassManagerTest, PipelineText) {
  auto pass = makePass("b");
  pass->options = "x=1 y=two";
  manager.add(makePass("a")).add(std::move(pass));
  EXPECT_EQ(manager.pipelineText(), "a,b{x=1 y=two}");
}

// Text that may not stand bare in a pipeline is put in quotes, other text is not.
TEST_F(PassManagerTest, QuotesPipelineValues) {
  EXPECT_EQ(quotePipelineValue("cuda:0"), "cuda:0");
  EXPECT_EQ(quotePipelineValue("a+b/c_d-e.f"), "a+b/c_d-e.f");
  EXPECT_EQ(quotePipelineValue(""), "\"\"");
  EXPECT_EQ(quotePipelineValue("two words"), "\"two words\"");
  EXPECT_EQ(quotePipelineValue("a\"}\n"), "\"a\\\"}\\n\"");
}

} // namespace
