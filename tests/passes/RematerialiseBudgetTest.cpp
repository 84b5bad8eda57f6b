//===- RematerialiseBudgetTest.cpp - Budgets of what is saved, and costs --===//

#include "PassFixture.h"
#include "support/TestPaths.h"

#include "rondo/ir/ImportFX.h"
#include "rondo/ir/Liveness.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/Rematerialise.h"

#include "llvm/Support/MemoryBuffer.h"

#include <set>

using namespace rondo;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

struct CostCase {
  const char *op;
  double cost;
};

// Ops cost their memory traffic, contractions their arithmetic where that is more, views nothing.
TEST(RematerialiseCostTest, Roofline) {
  OpRegistry registry;
  llvm::cantFail(registerCoreOps(registry));
  const double big = 4096;
  const CostCase cases[] = {
      {"f32[4, 4] = add(%s, %s)", 4 * 3 * 16},
      {"f32[] = sum(%s)", 4 * (16 + 1)},
      {"f32[16] = reshape(%s) {shape = [16]}", 0},
      {"f32[8] = full() {device = host, dtype = f32, shape = [8], value = 1.0}", 4 * 8},
      {"f32[4, 4] = mm(%s, %s)", 4 * 3 * 16},
      {"f32[4096, 4096] = mm(%b, %b)", 2 * big * big * big / flopsPerByte},
      {"f32[4096, 4096] = linear(%b, %b)", 2 * big * big * big / flopsPerByte},
      {"f32[4096, 4096] = addmm(%v, %b, %b)", 2 * big * big * big / flopsPerByte},
      {"f32[3, 4096] = embedding(%b, %i)", 4 * 2 * 3 * big + 8 * 3},
      {"f32[1, 1, 4096, 64], %l: f32[1, 1, 4096] = scaled_dot_product_attention(%q, %q, %q)",
       2 * 2 * 4096. * 4096 * 64 / flopsPerByte},
      {"f32[8, 256, 64, 64] = convolution(%c, %k) {dilation = [1, 1], padding = [1, 1], stride = "
       "[1, 1]}",
       2 * 256. * 256 * 64 * 64 * 9 * 8 / flopsPerByte},
  };
  for (const CostCase &single : cases) {
    std::string text =
        "trace @f(%s: f32[4, 4], %b: f32[4096, 4096], %v: f32[4096], %i: i64[3], "
        "%q: f32[1, 1, 4096, 64], %c: f32[8, 256, 64, 64], %k: f32[256, 256, 3, 3]) {"
        "\n  %r: " +
        std::string(single.op) + "\n  return()\n}";
    llvm::Expected<TracePair> pair = parsePair(text, "test", registry);
    ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
    const Trace &trace = pair->forward();
    EXPECT_NEAR(estimateOpCost(trace, trace.op(trace.ops().front())), single.cost,
                1e-9 * single.cost)
        << single.op;
  }
}

//===----------------------------------------------------------------------===//
// Budgets
//===----------------------------------------------------------------------===//

class RematerialiseBudgetTest : public PassFixture {
protected:
  struct Outcome {
    TracePair pair;
    RematerialiseReport report;
    std::string diagnostics;
  };

  Outcome rematerialise(TracePair pair, std::optional<int64_t> budget,
                        RecomputeRemarks remarks = RecomputeRemarks::Summary) {
    return runOn(std::move(pair),
                 std::make_unique<RematerializationPass>(RematerialiseOptions{budget, remarks}));
  }
  Outcome runOn(TracePair pair, std::unique_ptr<RematerializationPass> pass) {
    const RematerializationPass &borrowed = *pass;
    PassManager manager;
    manager.add(std::move(pass));
    TracePair result = llvm::cantFail(manager.run(std::move(pair)));
    std::string text;
    llvm::raw_string_ostream os(text);
    manager.diagnostics().print(os);
    return {std::move(result), borrowed.report(), os.str()};
  }

  TracePair recorded(llvm::StringRef name) {
    std::string path = testDataDir() + "/traces/" + name.str() + ".json";
    auto text = llvm::MemoryBuffer::getFile(path);
    EXPECT_TRUE(bool(text));
    PassRegistry passes;
    PassManager manager;
    llvm::cantFail(registerPasses(passes, {}));
    llvm::cantFail(passes.parsePipeline("dce,cse,canonicalise", manager));
    return llvm::cantFail(
        manager.run(llvm::cantFail(importFX((*text)->getBuffer(), path, registry))));
  }

  static std::vector<std::string> namesOf(const RematerialiseReport &report) {
    std::vector<std::string> names;
    for (const RecomputedValue &value : report.values)
      names.push_back(value.name);
    return names;
  }

  /// The backward's peak of what is saved and what it makes; without parameters.
  static int64_t peak(const TracePair &pair) {
    const Trace &trace = pair.backward();
    int64_t arguments = 0;
    for (ValueId argument : trace.arguments())
      arguments += *storageBytes(trace.type(argument));
    return livenessPeak(trace, trace.ops(), StorageRoots(trace)).bytes - arguments +
           savedBytes(pair);
  }

  /// Bytes of saved storage that are neither arguments' nor the caller's, counted independently.
  static int64_t savedBytes(const TracePair &pair) {
    const Trace &trace = pair.forward();
    StorageRoots roots(trace);
    std::set<ValueId> seen;
    for (unsigned i = 0; i < trace.terminator()->operands().size(); ++i)
      if (ValueId value = trace.terminator()->operand(i); value && trace.savedReturn(i))
        seen.insert(roots.root(value));
    for (unsigned i = 0; i < trace.terminator()->operands().size(); ++i)
      if (ValueId value = trace.terminator()->operand(i); value && !trace.savedReturn(i))
        seen.erase(roots.root(value));
    int64_t bytes = 0;
    for (ValueId root : seen)
      if (!trace.isArgument(root))
        bytes += *storageBytes(trace.type(root));
    return bytes;
  }
};

/// %a is cheap for its size, %p needs a product of matrices.
constexpr llvm::StringLiteral cheapAndDear = R"(
pair @p {
  forward @f(%x: f32[512, 512], %w: f32[512, 512] parameter) {
    %p: f32[512, 512] = mm(%x, %w)
    %a: f32[512, 512] = exp(%p)
    %y: f32[] = sum(%a)
    return(%y, %p saved #0, %a saved #1, %w saved #2)
  }
  backward @b(%p: f32[512, 512] saved #0, %a: f32[512, 512] saved #1,
              %w: f32[512, 512] parameter saved #2, %g: f32[]) {
    %h: f32[512, 512] = mul(%g, %a)
    %i: f32[512, 512] = mul(%h, %p)
    %r: f32[512, 512] = mm(%i, %w)
    return(%r)
  }
})";
constexpr int64_t matrix = 512 * 512 * 4;

// The cheapest for its bytes goes first, and no more than the budget asks for; parameters cost
// nothing to save. The report says what was chosen, and by what right.
TEST_F(RematerialiseBudgetTest, CheapestFirst) {
  Outcome all = rematerialise(parse(cheapAndDear), 2 * matrix);
  EXPECT_EQ(all.report.before.savedBytes, 2 * matrix);
  EXPECT_EQ(all.report.after.savedBytes, 2 * matrix);
  EXPECT_TRUE(all.report.values.empty());
  EXPECT_EQ(all.diagnostics, "");
  EXPECT_EQ(textOf(all.pair), textOf(parse(cheapAndDear)));

  Outcome half = rematerialise(parse(cheapAndDear), 2 * matrix - 1, RecomputeRemarks::Values);
  EXPECT_EQ(half.report.after.savedBytes, matrix);
  EXPECT_THAT(namesOf(half.report), ElementsAre("a"));
  EXPECT_FALSE(half.report.values[0].isTagged);
  EXPECT_EQ(half.report.numOps, 1u);
  EXPECT_EQ(half.report.after.work, 2. * matrix);
  EXPECT_GT(half.report.share(), 0);
  EXPECT_LT(half.report.share(), 1);
  EXPECT_THAT(half.diagnostics, HasSubstr("@f: note: recomputes 1 saved value: the forward saves "
                                          "1048576 bytes instead of 2097152"));
  EXPECT_THAT(half.diagnostics, HasSubstr("recomputes %a, for the budget"));

  Outcome none = rematerialise(parse(cheapAndDear), 0, RecomputeRemarks::None);
  EXPECT_EQ(none.report.after.savedBytes, 0);
  EXPECT_THAT(namesOf(none.report), ElementsAre("p", "a"));
  EXPECT_EQ(none.diagnostics, "");
}

// Who knows better what ops cost, says so.
TEST_F(RematerialiseBudgetTest, OwnCosts) {
  class Own : public RematerializationPass {
  public:
    Own() : RematerializationPass({matrix, RecomputeRemarks::None}) {}

  protected:
    double cost(const Trace &, const Op &op) const override { return op.name() == "exp" ? 1e9 : 1; }
  };
  Outcome outcome = runOn(parse(cheapAndDear), std::make_unique<Own>());
  EXPECT_THAT(namesOf(outcome.report), ElementsAre("p"));
  EXPECT_EQ(outcome.report.after.work, 1);
}

// What is not tagged and cannot run again is saved, silently; a budget that is thereby out of reach
// is warned of.
TEST_F(RematerialiseBudgetTest, SavesWhatIsRefused) {
  Outcome outcome = rematerialise(parse(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %p: f32[8] = all_reduce(%x) {group = "tp"}
    %a: f32[8] = exp(%p)
    %y: f32[] = sum(%a)
    return(%y, %p saved #0, %a saved #1)
  }
  backward @b(%p: f32[8] saved #0, %a: f32[8] saved #1, %g: f32[]) {
    %h: f32[8] = mul(%g, %a)
    %i: f32[8] = mul(%h, %p)
    return(%i)
  }
})"),
                                  0);
  EXPECT_THAT(namesOf(outcome.report), ElementsAre("a"));
  EXPECT_THAT(outcome.diagnostics,
              HasSubstr("warning: the forward saves 32 bytes, above the budget "
                        "of 0: nothing more can be recomputed"));
}

// A budget needs sizes: a saved value of symbolic size is an error, an argument of one is not.
TEST_F(RematerialiseBudgetTest, Symbols) {
  auto text = [](llvm::StringRef saved) {
    return ("pair @p {\n  forward @f(%x: f32[B]) {\n    %a: f32[B] = exp(%x)\n    return(%a, %" +
            saved +
            " saved #0)\n  }\n  backward @b(%v: f32[B] saved #0, %g: f32[B]) {\n"
            "    %r: f32[B] = mul(%g, %v)\n    return(%r)\n  }\n}\n")
        .str();
  };
  EXPECT_THAT(runPass(createRematerializationPass({0, RecomputeRemarks::None}), parse(text("a"))),
              HasSubstr("test:3:5: error: a budget needs sizes, but %a, which is saved, has type "
                        "f32[B]; specialise before"));
  EXPECT_EQ(runPass(createRematerializationPass({0, RecomputeRemarks::None}), parse(text("x"))),
            textOf(parse(text("x"))));
}

// Values of a step of GPT-2 are recomputed until half of the bytes are left: the less memory, the
// more work, on one curve; what is reported is what the pair then does.
TEST_F(RematerialiseBudgetTest, GPT2) {
  TracePair pair = recorded("gpt2_small_bf16");
  const int64_t full = savedBytes(pair);
  Outcome whole = rematerialise(pair.clone(), 0);
  const std::vector<RecomputePoint> &curve = whole.report.curve;
  ASSERT_GT(curve.size(), 20u);
  EXPECT_EQ(curve.front().savedBytes, full);
  EXPECT_EQ(curve.front().work, 0);
  EXPECT_EQ(curve.back().savedBytes, whole.report.after.savedBytes);
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_LT(curve[i].savedBytes, curve[i - 1].savedBytes);
    EXPECT_GE(curve[i].work, curve[i - 1].work);
  }

  double work = 0;
  for (unsigned eighth = 7; eighth > 0; --eighth) {
    int64_t budget = full * eighth / 8;
    Outcome outcome = rematerialise(pair.clone(), budget);
    const RematerialiseReport &report = outcome.report;
    EXPECT_LE(report.after.savedBytes, budget);
    EXPECT_EQ(report.after.savedBytes, savedBytes(outcome.pair));
    EXPECT_EQ(report.before.savedBytes, full);
    EXPECT_GE(report.after.work, work);
    EXPECT_GT(report.after.work, 0);
    work = report.after.work;
    EXPECT_EQ(report.curve.back().savedBytes, report.after.savedBytes);
    // What is computed again is not held for long: the backward's peak falls as what is saved.
    EXPECT_LE(peak(outcome.pair), peak(pair) - (full - report.after.savedBytes) * 9 / 10);
  }

  // Some links of the long chain from layer to layer stay saved.
  EXPECT_GT(whole.report.after.savedBytes, 0);
  EXPECT_LT(whole.report.after.savedBytes, full / 16);
  EXPECT_THAT(whole.diagnostics, HasSubstr("nothing more can be recomputed"));
}

// A value that a clone would read long before the backward itself does stays saved.
TEST_F(RematerialiseBudgetTest, DoesNotHoldForLong) {
  auto text = [](unsigned distance) {
    std::string backward;
    for (unsigned i = 0; i < distance; ++i)
      backward +=
          "    %h" + std::to_string(i + 1) + ": f32[8] = neg(%h" + std::to_string(i) + ")\n";
    return "pair @p {\n  forward @f(%x: f32[8]) {\n    %a: f32[8] = exp(%x)\n"
           "    %b: f32[8] = sin(%a)\n    %y: f32[] = sum(%b)\n"
           "    return(%y, %a saved #0, %b saved #1)\n  }\n"
           "  backward @b(%a: f32[8] saved #0, %b: f32[8] saved #1, %g: f32[8]) {\n"
           "    %h0: f32[8] = mul(%g, %b)\n" +
           backward + "    %r: f32[8] = mul(%h" + std::to_string(distance) +
           ", %a)\n    return(%r)\n  }\n}\n";
  };
  EXPECT_THAT(namesOf(rematerialise(parse(text(8)), 0).report), ElementsAre("a", "b"));
  Outcome far = rematerialise(parse(text(40)), 0);
  EXPECT_EQ(far.report.values.size(), 1u);
  EXPECT_EQ(far.report.after.savedBytes, 32);
}

} // namespace
