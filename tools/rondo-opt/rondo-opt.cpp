//===- rondo-opt.cpp - Reads a trace, runs a pipeline, prints ---------------===//
//
//   rondo-opt step.trace -p 'dce,cse,execution,cuda-graph{partition=dataflow},del' --explain
//
// Exit codes: 0 success, 1 bad input or a pass that failed, 2 wrong usage, 3 output that cannot be
// written.
//
//===----------------------------------------------------------------------===//

#include "OpList.h"
#include "support/Files.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/JSON.h"
#include "rondo/ir/Text.h"
#include "rondo/passes/Explain.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/TableClaimSource.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"

using namespace rondo;
namespace cl = llvm::cl;

namespace {

enum ExitCode : int { success = 0, badInput = 1, badUsage = 2, cannotWrite = 3 };
enum class OutputFormat : uint8_t { Text, JSON, None };
enum class OpListFormat : uint8_t { Off, Text, Markdown };
enum class ExplainMode : uint8_t { Off, Grouped, EveryOp };

/// The command line. Options are members rather than globals: nothing registers itself.
struct Options {
  cl::OptionCategory category{"rondo-opt options"};

  cl::opt<std::string> input{cl::Positional, cl::desc("<file, or - for standard input>"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<InputFormat> format{
      "input-format", cl::desc("Form of the input:"),
      cl::values(clEnumValN(InputFormat::Auto, "auto", "told from the first bytes (default)"),
                 clEnumValN(InputFormat::Text, "text", "text form"),
                 clEnumValN(InputFormat::JSON, "json", "JSON form"),
                 clEnumValN(InputFormat::FX, "fx", "PyTorch ATen graphs (fx-aten-1)")),
      cl::init(InputFormat::Auto), cl::cat(category)};
  cl::opt<std::string> pipeline{"pipeline",
                                cl::desc("Passes to run, e.g. 'dce,cse,execution{executors=host},"
                                         "cuda-graph{partition=dataflow},del'; see --list-passes"),
                                cl::value_desc("passes"), cl::cat(category)};
  cl::alias pipelineAlias{"p", cl::desc("Alias for --pipeline"), cl::aliasopt(pipeline),
                          cl::cat(category)};
  cl::opt<OutputFormat> emit{
      "emit", cl::desc("Form of the output:"),
      cl::values(clEnumValN(OutputFormat::Text, "text", "text form (default)"),
                 clEnumValN(OutputFormat::JSON, "json", "JSON form"),
                 clEnumValN(OutputFormat::None, "none", "nothing; only check and explain")),
      cl::init(OutputFormat::Text), cl::cat(category)};
  cl::opt<std::string> output{"o",
                              cl::desc("Where the output goes (default: standard output); "
                                       "the file appears whole or not at all"),
                              cl::value_desc("file"), cl::init("-"), cl::cat(category)};
  cl::opt<bool> noAnnotations{
      "no-annotations", cl::desc("Leave module paths, claims and verdicts out of the text output"),
      cl::cat(category)};
  cl::opt<ExplainMode> explain{
      "explain",
      cl::desc("Say which ops are in regions and why the others are not; goes to standard output, "
               "and replaces the text output unless -o is given"),
      cl::ValueOptional,
      cl::values(clEnumValN(ExplainMode::Grouped, "", "grouped by reason"),
                 clEnumValN(ExplainMode::Grouped, "grouped", "grouped by reason (default)"),
                 clEnumValN(ExplainMode::EveryOp, "all", "every op, in program order")),
      cl::init(ExplainMode::Off),
      cl::cat(category)};
  cl::opt<bool> printBeforeAll{"print-before-all",
                               cl::desc("Print the pair before every pass, to standard error"),
                               cl::cat(category)};
  cl::opt<bool> printAfterAll{"print-after-all",
                              cl::desc("Print the pair after every pass, to standard error"),
                              cl::cat(category)};
  cl::opt<bool> timing{"timing", cl::desc("Print the time of every pass, to standard error"),
                       cl::cat(category)};
  cl::opt<bool> noVerify{"no-verify", cl::desc("Do not verify between passes"), cl::cat(category)};
  cl::opt<OpListFormat> listOps{
      "list-ops",
      cl::desc("List the ops that are known, and stop"),
      cl::ValueOptional,
      cl::values(clEnumValN(OpListFormat::Text, "", "as text"),
                 clEnumValN(OpListFormat::Text, "text", "as text (default)"),
                 clEnumValN(OpListFormat::Markdown, "markdown", "as a Markdown table")),
      cl::init(OpListFormat::Off),
      cl::cat(category)};
  cl::opt<bool> listPasses{"list-passes", cl::desc("List the passes and their options, and stop"),
                           cl::cat(category)};
};

constexpr llvm::StringLiteral overview =
    "rondo-opt: reads a forward and backward trace, runs passes, prints what became of it\n\n"
    "  rondo-opt step.trace\n"
    "  rondo-opt step.trace -p dce,cse,execution,cuda-graph,del --explain\n"
    "  rondo-opt gpt.json -p execution,cuda-graph{partition=dataflow} --emit=json -o regions.json\n"
    "\n"
    "The executor 'host' claims every op it knows, on any device: a partition needs no kernels.\n"
    "Exit codes: 0 success, 1 bad input or a pass failed, 2 wrong usage, 3 output not written.\n";

} // namespace

static ExitCode report(llvm::Error error, ExitCode code) {
  llvm::logAllUnhandledErrors(std::move(error), llvm::errs());
  return code;
}

static void printTimings(const PassManager &manager) {
  double total = 0;
  for (const PassTiming &timing : manager.timings())
    total += timing.seconds + timing.verifySeconds;
  llvm::errs() << "  pass ms  verify ms  pass\n";
  for (const PassTiming &timing : manager.timings())
    llvm::errs() << llvm::format("%9.3f  %9.3f  ", timing.seconds * 1e3, timing.verifySeconds * 1e3)
                 << timing.pass << (timing.changed ? "" : " (unchanged)") << '\n';
  llvm::errs() << llvm::format("%9.3f ms in all\n", total * 1e3);
}

static void addPrinter(PassManager &manager, const Options &options) {
  bool before = options.printBeforeAll, after = options.printAfterAll;
  if (!before && !after)
    return;
  manager.addObserver([=](const Pass &pass, const TracePair &pair, bool isBefore) {
    if (isBefore ? !before : !after)
      return;
    llvm::errs() << "// " << (isBefore ? "before " : "after ") << pass.name() << '\n';
    print(pair, llvm::errs());
  });
}

static ExitCode writeOutputs(const TracePair &pair, const Options &options) {
  ExplainMode mode = options.explain;
  bool toStdout = options.output == "-";
  if (mode != ExplainMode::Off) {
    ExplainOptions explainOptions;
    explainOptions.everyOp = mode == ExplainMode::EveryOp;
    if (llvm::Error error = writeFile(
            "-", [&](llvm::raw_ostream &os) { rondo::explain(pair, os, explainOptions); }))
      return report(std::move(error), cannotWrite);
    if (toStdout)
      return success;
  }
  if (options.emit == OutputFormat::None)
    return success;
  PrintOptions printOptions;
  printOptions.annotations = !options.noAnnotations;
  llvm::Error error = writeFile(options.output, [&](llvm::raw_ostream &os) {
    options.emit == OutputFormat::JSON ? writeJSON(pair, os) : print(pair, os, printOptions);
  });
  return error ? report(std::move(error), cannotWrite) : success;
}

static ExitCode run(const Options &options) {
  OpRegistry registry;
  if (llvm::Error error = registerCoreOps(registry))
    return report(std::move(error), badUsage);
  TableClaimSource host = makeHostClaimTable(registry);
  PassRegistry passes;
  if (llvm::Error error = registerPasses(passes, {&host}))
    return report(std::move(error), badUsage);

  if (options.listPasses || options.listOps != OpListFormat::Off) {
    llvm::Error error = writeFile("-", [&](llvm::raw_ostream &os) {
      if (options.listOps == OpListFormat::Text)
        rondo::listOps(registry, os);
      if (options.listOps == OpListFormat::Markdown)
        listOpsAsMarkdown(registry, os);
      if (options.listPasses)
        rondo::listPasses(passes, os);
    });
    return error ? report(std::move(error), cannotWrite) : success;
  }

  PassManager manager;
  manager.setVerify(!options.noVerify);
  if (llvm::Error error = passes.parsePipeline(options.pipeline, manager))
    return report(std::move(error), badUsage);
  addPrinter(manager, options);
  llvm::Expected<TracePair> input = readPair(options.input, options.format, registry);
  if (!input)
    return report(input.takeError(), badInput);
  llvm::Expected<TracePair> result = manager.run(std::move(*input));
  manager.diagnostics().print(llvm::errs());
  if (options.timing)
    printTimings(manager);
  if (!result)
    return report(result.takeError(), badInput);
  return writeOutputs(*result, options);
}

int main(int argc, char **argv) {
  Options options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return badUsage;
  return run(options);
}
