//===- RematBench.cpp - Memory against work -------------------------------===//
//
// A step for budgets of 90 % to 30 % of what its forward saves. What is saved and the work that is
// repeated are the pass's; the planned peak is the runtime's. They follow from the trace and the
// kernels, so that each run finds the same. The host only plans: other devices run the step, too.
//
//===----------------------------------------------------------------------===//

#include "StepPlayer.h"

#include <limits>

using namespace rondo;

namespace {

/// A step for one budget.
struct BudgetedStep {
  unsigned percent = 100; ///< of what is saved without a budget
  RematerialiseReport report;
  PlannedMemory planned;
  // On a device that runs it.
  std::optional<uint64_t> peak;
  std::optional<double> seconds; ///< by the device's clock if it has one
};

class RematBench {
public:
  RematBench(const BenchSetup &setup, ProgramOptions options)
      : setup_(setup), player_(setup, std::move(options)) {}

  llvm::Error run(llvm::StringRef path, std::vector<Figure> &figures);

private:
  bool runsSteps() const { return !setup_.device->device().isHost(); }
  llvm::Error prepare(llvm::StringRef path);
  llvm::Expected<BudgetedStep> stepFor(unsigned percent, int64_t budget);
  llvm::Error measure(BudgetedStep &step);
  void report(const BudgetedStep &step);
  void reportCurve();
  Figure &push(const llvm::Twine &what, const char *unit, double value,
               std::optional<double> baseline = std::nullopt, const char *baselineName = "");

  const BenchSetup &setup_;
  StepPlayer player_;
  std::vector<BudgetedStep> steps_; ///< the first without recomputation
  std::vector<Figure> *figures_ = nullptr;
};

} // namespace

/// Another program runs a step, so that what libraries load once in a process is there.
llvm::Error RematBench::prepare(llvm::StringRef path) {
  if (!runsSteps())
    return player_.read(path);
  if (llvm::Error error = player_.load(path))
    return error;
  return player_.step(/*isEager=*/false).takeError();
}

llvm::Expected<BudgetedStep> RematBench::stepFor(unsigned percent, int64_t budget) {
  BudgetedStep step;
  step.percent = percent;
  player_.setBudget(budget);
  if (llvm::Error error = runsSteps() ? measure(step) : player_.compileProgram())
    return error;
  step.report = player_.recomputation();
  step.planned = plannedMemory(player_.program(), setup_.device->device());
  return step;
}

/// Compiles the step and runs it: the most memory of three, as `memory` does, and what one takes.
llvm::Error RematBench::measure(BudgetedStep &step) {
  llvm::Expected<uint64_t> peak = player_.measurePeak();
  if (!peak)
    return peak.takeError();
  step.peak = plannedMemory(player_.program(), setup_.device->device()).arguments + *peak;
  llvm::Expected<std::vector<StepTimes>> times =
      timeSteps(setup_, {[&] { return player_.step(/*isEager=*/false); }}, std::chrono::seconds(2));
  if (!times)
    return times.takeError();
  StepTimes &took = times->front();
  step.seconds = medianOf(std::move(took.device.empty() ? took.done : took.device));
  return llvm::Error::success();
}

Figure &RematBench::push(const llvm::Twine &what, const char *unit, double value,
                         std::optional<double> baseline, const char *baselineName) {
  figures_->push_back(
      {"remat", (player_.name() + ", " + what).str(), unit, value, baseline, baselineName});
  return figures_->back();
}

void RematBench::report(const BudgetedStep &step) {
  const BudgetedStep &full = steps_.front();
  std::string budget = "budget " + std::to_string(step.percent) + " %, ";
  push(budget + "saved", "KiB", inKiB(double(step.report.after.savedBytes)),
       inKiB(double(full.report.after.savedBytes)), "100 %");
  push(budget + "work repeated, of the forward's", "%", 100 * step.report.share());
  push(budget + "planned peak", "KiB", inKiB(double(step.planned.peak)),
       inKiB(double(step.planned.needed)), "lower bound");
  if (step.peak)
    push(budget + "peak of 3 steps", "KiB", inKiB(double(*step.peak)),
         inKiB(double(step.planned.peak)), "planned");
  if (step.seconds)
    push(budget + "replayed step", "us", *step.seconds * 1e6, *full.seconds * 1e6, "100 %");
}

/// What is given up is to be gained, and a smaller budget to plan for no more memory and no less
/// work.
void RematBench::reportCurve() {
  const BudgetedStep &full = steps_.front();
  unsigned numRises = 0;
  for (size_t i = 1; i < steps_.size(); ++i) {
    const BudgetedStep &greater = steps_[i - 1], &step = steps_[i];
    numRises += step.planned.peak > greater.planned.peak ||
                step.report.after.work < greater.report.after.work;
    if (step.percent == 50)
      push("budget 50 %, saved less", "KiB",
           inKiB(double(full.report.after.savedBytes - step.report.after.savedBytes)),
           inKiB(double(full.planned.peak) - double(step.planned.peak)), "planned less")
          .bar = 1.25;
  }
  push("smaller budgets with a higher planned peak or less work", "", numRises).bar = 0;
}

llvm::Error RematBench::run(llvm::StringRef path, std::vector<Figure> &figures) {
  figures_ = &figures;
  if (llvm::Error error = prepare(path))
    return error;
  if (!player_.program().hasBackward())
    return makeError("recomputation needs a trace with a backward");
  int64_t saved = 0;
  for (unsigned percent = 100; percent >= 30; percent -= 10) {
    // Of the first nothing is recomputed but what is tagged.
    int64_t budget = percent == 100 ? std::numeric_limits<int64_t>::max() : saved * percent / 100;
    llvm::Expected<BudgetedStep> step = stepFor(percent, budget);
    if (!step)
      return step.takeError();
    if (percent == 100)
      saved = step->report.after.savedBytes;
    steps_.push_back(std::move(*step));
    report(steps_.back());
  }
  reportCurve();
  return llvm::Error::success();
}

llvm::Error rondo::benchRemat(const BenchSetup &setup, llvm::StringRef path,
                              std::vector<Figure> &figures) {
  if (setup.device->device().isHost()) {
    ProgramOptions options;
    options.costs = BufferCosts(); // measured ones would differ from run to run
    return RematBench(setup, std::move(options)).run(path, figures);
  }
  llvm::Expected<ProgramOptions> options = optionsWithCosts(setup);
  if (!options)
    return options.takeError();
  return RematBench(setup, std::move(*options)).run(path, figures);
}
