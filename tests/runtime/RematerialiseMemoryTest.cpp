//===- RematerialiseMemoryTest.cpp - What recomputation does to a plan ----===//
//
// The pass counts what is saved; what counts for the user is what a step needs at once. Programs
// are compiled and planned, not run.
//
//===----------------------------------------------------------------------===//

#include "TraceTesting.h"

#include "rondo/ir/Liveness.h"
#include "rondo/passes/Rematerialise.h"

using namespace rondo;

namespace {

/// A step for one budget.
struct BudgetPlan {
  RematerialiseReport report;
  uint64_t planned = 0; ///< arguments, saved, results, temporaries
  uint64_t needed = 0;  ///< greatest sum of live bytes
};

class RematerialiseMemoryTest : public testing::Test {
protected:
  /// Reads and simplifies a recorded step.
  TracePair recorded(llvm::StringRef name) {
    std::string path = testDataDir() + "/traces/" + name.str() + ".json";
    auto text = llvm::MemoryBuffer::getFile(path);
    EXPECT_TRUE(bool(text)) << path;
    TracePair pair = cantFail(importFX((*text)->getBuffer(), path, registry));
    return cantFail(pipelineOf("place,dce,cse,canonicalise", host)(std::move(pair), {}));
  }

  /// Without a budget nothing is recomputed.
  BudgetPlan plan(const TracePair &pair, std::optional<int64_t> budget) {
    TracePair changed = pair.clone();
    RematerializationPass pass({budget, RecomputeRemarks::None});
    DiagnosticList diagnostics;
    cantFail(pass.run(changed, diagnostics).takeError());
    EXPECT_FALSE(diagnostics.hasErrors());

    ProgramOptions options = steadyOptions();
    Program program = cantFail(compile(std::move(changed), device, {&host},
                                       pipelineOf("dce,execution,cuda-graph,del", host), options));
    MemoryInfo forward = program.memory(Side::Forward), backward = program.memory(Side::Backward);
    BudgetPlan result{pass.report()};
    result.planned = argumentBytes(program) + forward.slab + forward.results + backward.results +
                     std::max(forward.arena, backward.arena);
    result.needed = std::max(forward.lowerBound, backward.lowerBound);
    return result;
  }

  /// Of both sides, without what the forward saves.
  static uint64_t argumentBytes(const Program &program) {
    uint64_t bytes = 0;
    for (Side side : {Side::Forward, Side::Backward})
      for (const ParameterInfo &input : program.inputs(side))
        bytes += storageBytes(input.type).value_or(0);
    return bytes;
  }

  static void print(unsigned percent, const BudgetPlan &plan) {
    auto number = [](double bytes) { return bytes / 1e6; };
    std::printf("budget %3u %%: saved %6.2f MB, work repeated %5.1f %%, planned %8.2f MB, needed "
                "%8.2f MB\n",
                percent, number(plan.report.after.savedBytes), 100 * plan.report.share(),
                number(plan.planned), number(plan.needed));
  }

  CoreRegistry registry;
  HostExecutor host;
  DeviceRef device = createHostDevice();
};

// A step of GPT-2 for budgets of 100 % to 30 % of what it saves: no smaller budget plans for more
// memory or for less work, and what is given up is gained: the planned peak falls by at least nine
// tenths of the bytes that are not saved any more.
TEST_F(RematerialiseMemoryTest, GPT2) {
  TracePair pair = recorded("gpt2_small_bf16");
  BudgetPlan full = plan(pair, std::nullopt), last = full;
  int64_t saved = full.report.before.savedBytes;
  EXPECT_EQ(full.report.after.savedBytes, saved);
  print(100, full);
  for (unsigned percent = 90; percent >= 30; percent -= 10) {
    SCOPED_TRACE(testing::Message() << percent << " %");
    BudgetPlan next = plan(pair, saved * percent / 100);
    print(percent, next);
    EXPECT_LE(next.report.after.savedBytes, saved * percent / 100);
    EXPECT_GT(next.report.after.work, 0);
    EXPECT_GE(next.report.after.work, last.report.after.work);
    EXPECT_LE(next.planned, last.planned);
    EXPECT_LE(next.needed, next.planned);
    EXPECT_LE(next.planned + (saved - next.report.after.savedBytes) * 9 / 10, full.planned);
    last = next;
  }
}

} // namespace
