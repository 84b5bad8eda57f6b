//===- rondo-run.cpp - Runs traces eagerly and replayed -------------------===//
//
//   rondo-run gpt_tiny.json --check
//
// Exit codes: 0 success, 1 bad input or a run that failed, 2 wrong usage, 4 a bound that --check
// asks for is broken.
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "Run.h"

#include "support/Devices.h"

#include "rondo/ir/CoreOps.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"

using namespace rondo;
namespace cl = llvm::cl;

namespace {

enum ExitCode : int { success = 0, badInput = 1, badUsage = 2, boundBroken = 4 };

/// The command line. Options are members rather than globals: nothing registers itself.
struct Options {
  cl::OptionCategory category{"rondo-run options"};

  cl::list<std::string> inputs{cl::Positional, cl::desc("<trace>..."), cl::OneOrMore,
                               cl::cat(category)};
  cl::opt<std::string> values{
      "values",
      cl::desc("Recorded arguments and results (default: the trace's name with .safetensors, if it "
               "is there; else arguments are random)"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> device{"device",
                              cl::desc("Where to run: host (default), cuda (which is cuda:0), "
                                       "cuda:N"),
                              cl::value_desc("device"), cl::init("host"), cl::cat(category)};
  cl::opt<std::string> pipeline{
      "pipeline", cl::desc("Passes to run; they must claim every op"), cl::value_desc("passes"),
      cl::init("dce,cse,canonicalise,execution,cuda-graph,del"), cl::cat(category)};
  cl::alias pipelineAlias{"p", cl::desc("Alias for --pipeline"), cl::aliasopt(pipeline),
                          cl::cat(category)};
  cl::opt<bool> feedMasks{"feed-masks",
                          cl::desc("Take the masks of dropout from the recorded values"),
                          cl::cat(category)};
  cl::opt<unsigned> steps{"steps", cl::desc("Steps to replay, and to run eagerly (default: 10)"),
                          cl::init(10), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::desc("Of random arguments and generators (default: 0)"),
                         cl::init(0), cl::cat(category)};
  cl::opt<bool> noGraphs{"no-graphs", cl::desc("Run eagerly only"), cl::cat(category)};
  cl::opt<bool> check{
      "check",
      cl::desc("Fail unless results are within --loss-bound and --bound of the recorded ones, "
               "replayed results have the bits of eager ones and memory is within --memory-bound; "
               "also prove the order of each graph's nodes and poison dead memory"),
      cl::cat(category)};
  cl::opt<double> lossBound{
      "loss-bound",
      cl::desc("Greatest relative error of a result of the forward (default: 1e-5; 2e-2 where an "
               "argument or result has less precision than f32)"),
      cl::init(0), cl::cat(category)};
  cl::opt<double> bound{
      "bound",
      cl::desc("Greatest relative error of gradients, saved values and written arguments "
               "(default: 1e-4; 2e-2 likewise)"),
      cl::init(0), cl::cat(category)};
  cl::opt<double> memoryBound{"memory-bound",
                              cl::desc("Greatest peak over its lower bound (default: 1.05)"),
                              cl::init(1.05), cl::cat(category)};
  cl::opt<bool> memory{
      "memory",
      cl::desc("Print how memory is planned, and what holds its peak, instead of running"),
      cl::cat(category)};
  cl::opt<bool> listGraphs{
      "graphs",
      cl::desc("List each graph that is held at the end: nodes, estimated memory, what building it "
               "took, how often it was used"),
      cl::cat(category)};
  cl::opt<bool> tableOnly{"table", cl::desc("Print the table alone"), cl::cat(category)};
};

constexpr llvm::StringLiteral overview =
    "rondo-run: runs forward and backward traces, eagerly and as replayed graphs, and compares\n\n"
    "  rondo-run gpt_tiny.json\n"
    "  rondo-run mlp.json gpt_tiny.json --check --steps=100 --device=cuda\n"
    "  rondo-run gpt_tiny.json --memory\n"
    "  rondo-run step.trace --values=step.safetensors -p execution,cuda-graph{partition=dataflow}\n"
    "\n"
    "Columns of the table: ops that launch something, those in regions, regions "
    "(forward+backward);\n"
    "graphs captured, replays, bytes that the replay of a step copies; greatest relative error of\n"
    "the results of the forward, and of all else; whether eager and replayed results have equal\n"
    "bits; peak of memory and what any plan needs; median times of a step.\n"
    "Exit codes: 0 success, 1 bad input or a failed run, 2 wrong usage, 4 --check found a fault.\n";

} // namespace

static ExitCode report(llvm::Error error, ExitCode code) {
  llvm::logAllUnhandledErrors(std::move(error), llvm::errs());
  return code;
}

/// Says what is broken; true if nothing is.
static bool meetsBounds(const RunReport &run, const Options &options) {
  bool isMet = true;
  auto fail = [&](const llvm::Twine &message) {
    llvm::errs() << "error: " << run.name << ": " << message << '\n';
    isMet = false;
  };
  auto text = [](double value) {
    std::string result;
    llvm::raw_string_ostream(result) << llvm::format("%.3g", value);
    return result;
  };
  if (!run.errors || run.errors->numCompared == 0) {
    fail("there is nothing to compare with: no values were recorded");
  } else {
    constexpr double reducedBound = 2e-2;
    auto boundOf = [&](double given, double usual) {
      return given > 0 ? given : run.isReducedPrecision ? reducedBound : usual;
    };
    double lossBound = boundOf(options.lossBound, 1e-5), bound = boundOf(options.bound, 1e-4);
    if (!(run.errors->loss <= lossBound))
      fail("a result of the forward is off by " + text(run.errors->loss) + ", the bound is " +
           text(lossBound));
    if (!(run.errors->other <= bound))
      fail(run.errors->worst + " is off by " + text(run.errors->other) + ", the bound is " +
           text(bound));
  }
  if (run.isReplayEqual == false)
    fail("replayed results have other bits than eager ones");
  if (double(run.peakBytes) > options.memoryBound * double(run.lowerBound))
    fail("a step took " + llvm::Twine(run.peakBytes) + " bytes, more than " +
         text(options.memoryBound) + " times the " + llvm::Twine(run.lowerBound) +
         " that it needs");
  return isMet;
}

static ExitCode run(const Options &options) {
  std::optional<Device> where = deviceOption(options.device);
  if (!where)
    return report(makeError("'" + options.device + "' is no device; devices are: " + deviceOptions),
                  badUsage);
  if (options.memory && (options.check || options.tableOnly))
    return report(makeError("--memory runs nothing: --check and --table do not go with it"),
                  badUsage);
  OpRegistry registry;
  if (llvm::Error error = registerCoreOps(registry))
    return report(std::move(error), badUsage);
  if (llvm::Expected<DeviceRef> device = createDevice(*where); !device)
    return report(device.takeError(), badInput);
  std::vector<std::string> remarks;
  llvm::Expected<std::vector<std::unique_ptr<Executor>>> executors =
      createExecutors(*where, remarks);
  if (!executors)
    return report(executors.takeError(), badInput);
  for (const std::string &remark : remarks)
    llvm::errs() << "remark: " << remark << '\n';

  RunOptions runOptions;
  runOptions.valuesPath = options.values;
  runOptions.prepare = options.feedMasks ? "feed-masks" : "";
  runOptions.pipeline = options.pipeline;
  runOptions.steps = std::max(options.steps.getValue(), 1u);
  runOptions.seed = options.seed;
  runOptions.useGraphs = !options.noGraphs;
  runOptions.checkGraphs = options.check;
  runOptions.showProgress = llvm::errs().is_displayed();

  ExitCode code = success;
  std::vector<RunReport> reports;
  for (const std::string &input : options.inputs) {
    // A device of its own, so that its peak is the run's.
    llvm::Expected<DeviceRef> device = createDevice(*where);
    if (!device)
      return report(device.takeError(), badInput);
    if (options.memory) {
      llvm::Expected<PlanReport> plan =
          planTrace(input, runOptions, registry, listOf(*executors), *device);
      if (plan)
        printPlan(*plan, llvm::outs());
      else
        code = report(plan.takeError(), badInput);
      continue;
    }
    llvm::Expected<RunReport> run =
        runTrace(input, runOptions, registry, listOf(*executors), *device);
    if (!run) {
      code = report(run.takeError(), badInput);
      continue;
    }
    if (!options.tableOnly)
      printReport(*run, options.listGraphs, llvm::outs());
    if (options.check && !meetsBounds(*run, options) && code == success)
      code = boundBroken;
    reports.push_back(std::move(*run));
  }
  if (!options.tableOnly && !reports.empty())
    llvm::outs() << '\n';
  if (!reports.empty())
    printTable(reports, llvm::outs());
  return code;
}

int main(int argc, char **argv) {
  Options options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return badUsage;
  return run(options);
}
