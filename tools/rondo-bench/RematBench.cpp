//===- RematBench.cpp - Memory against work -------------------------------===//
//
// A step for budgets of 90 % to 30 % of what its forward saves. What is saved and the work that is
// repeated are the pass's; the planned peak is the runtime's. They follow from the trace and the
// kernels, so that each run finds the same. The host only plans: other devices run the step, too.
//
//===----------------------------------------------------------------------===//

#include "MemoryWatch.h"
#include "StepPlayer.h"

#include <chrono>
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
  Figure &push(const llvm::Twine &what, const char *unit, double value);

  static constexpr double unit = 1024;

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
  player_.dropProgram();
  player_.setBudget(budget);
  llvm::Error error = llvm::Error::success();
  if (runsSteps())
    error = measure(step);
  else
    error = player_.compileProgram();
  if (error)
    return error;
  step.report = player_.recomputation();
  step.planned = plannedMemory(player_.program(), setup_.device->device());
  return step;
}

/// Compiles the step, runs it, and finds the most memory of three of them, as `memory` does, and
/// what one takes.
llvm::Error RematBench::measure(BudgetedStep &step) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds longest(2);
  llvm::Expected<MemoryWatch> watch = MemoryWatch::create(setup_);
  if (!watch)
    return watch.takeError();
  if (llvm::Error error = player_.compileProgram())
    return error;
  std::vector<double> times;
  auto begin = Clock::now();
  for (unsigned i = 0; i < 3 + setup_.rounds && (i <= 3 || Clock::now() - begin < longest); ++i) {
    bool isWatched = i < 3; // the first of them captures
    llvm::Expected<StepPlayer::Times> took = player_.step(
        /*isEager=*/false, [&] { return isWatched ? watch->sample() : llvm::Error::success(); });
    if (!took)
      return took.takeError();
    if (!isWatched)
      times.push_back(took->device.value_or(took->done));
  }
  uint64_t arguments = plannedMemory(player_.program(), setup_.device->device()).arguments;
  step.peak = arguments + watch->mostBytes();
  step.seconds = medianOf(std::move(times));
  return llvm::Error::success();
}

Figure &RematBench::push(const llvm::Twine &what, const char *unit, double value) {
  figures_->push_back({"remat", (player_.name() + ", " + what).str(), unit, value});
  return figures_->back();
}

void RematBench::report(const BudgetedStep &step) {
  const BudgetedStep &full = steps_.front();
  std::string budget = "budget " + std::to_string(step.percent) + " %, ";
  Figure &saved = push(budget + "saved", "KiB", double(step.report.after.savedBytes) / unit);
  saved.baseline = double(full.report.after.savedBytes) / unit;
  saved.baselineName = "100 %";
  push(budget + "work repeated, of the forward's", "%", 100 * step.report.share());
  Figure &planned = push(budget + "planned peak", "KiB", double(step.planned.peak) / unit);
  planned.baseline = double(step.planned.needed) / unit;
  planned.baselineName = "lower bound";
  if (step.peak) {
    Figure &peak = push(budget + "peak of 3 steps", "KiB", double(*step.peak) / unit);
    peak.baseline = double(step.planned.peak) / unit;
    peak.baselineName = "planned";
  }
  if (step.seconds) {
    Figure &time = push(budget + "replayed step", "us", *step.seconds * 1e6);
    time.baseline = *full.seconds * 1e6;
    time.baselineName = "100 %";
  }
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
    if (step.percent != 50)
      continue;
    Figure &gain = push("budget 50 %, saved less", "KiB",
                        double(full.report.after.savedBytes - step.report.after.savedBytes) / unit);
    gain.baseline = (double(full.planned.peak) - double(step.planned.peak)) / unit;
    gain.baselineName = "planned less";
    gain.bar = 1.25;
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
  ProgramOptions options;
  options.costs = BufferCosts();
  if (!setup.device->device().isHost()) { // to measure them takes memory
    llvm::Expected<BufferCosts> costs = measureBufferCosts(setup.device);
    if (!costs)
      return costs.takeError();
    options.costs = *costs;
  }
  return RematBench(setup, std::move(options)).run(path, figures);
}
