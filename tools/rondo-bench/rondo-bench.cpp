//===- rondo-bench.cpp - Rondo against a device's own API -----------------===//
//
//   rondo-bench --device=cuda --json=bench.json
//
// Exit codes: 0 success, 1 a benchmark or its input failed, 2 wrong usage, 3 output that cannot be
// written, 4 a bar that --check asks for is not met.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"

#include "support/Devices.h"
#include "support/Files.h"

#include "rondo/ir/CoreOps.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace rondo;
namespace cl = llvm::cl;

namespace {

enum ExitCode : int { success = 0, failed = 1, badUsage = 2, cannotWrite = 3, barNotMet = 4 };
enum class BenchKind : uint8_t {
  Replay,
  Eager,
  Capture,
  Handover,
  Policies,
  Memory,
  Remat,
  Checkpoint,
  Traces
};

/// The command line. Options are members rather than globals: nothing registers itself.
struct Options {
  cl::OptionCategory category{"rondo-bench options"};

  cl::list<std::string> benches{cl::Positional, cl::desc("[benchmark...]"), cl::ZeroOrMore,
                                cl::cat(category)};
  cl::opt<std::string> device{
      "device", cl::desc("Where to run: host (default), cuda (which is cuda:0), cuda:N"),
      cl::value_desc("device"), cl::init("host"), cl::cat(category)};
  cl::opt<std::string> traces{
      "traces",
      cl::desc(
          "A trace, or a folder of traces as JSON (default: tests/data/traces); in a folder "
          "those are left out that have an op which no executor runs; `memory` and `remat` take "
          "gpt2_small_bf16 of it, else gpt_tiny"),
      cl::value_desc("path"), cl::init("tests/data/traces"), cl::cat(category)};
  cl::opt<unsigned> rounds{"rounds", cl::desc("Rounds, whose median counts (default: 51)"),
                           cl::init(51), cl::cat(category)};
  cl::opt<unsigned> calls{"calls",
                          cl::desc("Calls in a row of each thing that is compared (default: 16)"),
                          cl::init(16), cl::cat(category)};
  cl::opt<unsigned> largest{"largest",
                            cl::desc("Largest input of `policies` (default: 65536, 64 MiB)"),
                            cl::value_desc("KiB"), cl::init(65536), cl::cat(category)};
  cl::opt<unsigned> blocks{"blocks", cl::desc("Blocks of the model of `checkpoint` (default: 8)"),
                           cl::init(8), cl::cat(category)};
  cl::opt<unsigned> batch{"batch", cl::desc("Rows that it gets (default: 2048, on the host 16)"),
                          cl::cat(category)};
  cl::opt<unsigned> width{"width",
                          cl::desc("Elements of a row, and of four rows between the two layers of "
                                   "a block (default: 1024, on the host 32)"),
                          cl::cat(category)};
  cl::opt<std::string> json{"json", cl::desc("Write all figures to this file, too"),
                            cl::value_desc("file"), cl::cat(category)};
  cl::opt<bool> check{"check", cl::desc("Fail unless every bar is met"), cl::cat(category)};
};

constexpr unsigned mostCheckpointSize = 1 << 20; ///< blocks, rows or elements: no product overflows

constexpr llvm::StringLiteral overview =
    "rondo-bench: what Rondo costs beside the API of the device, measured in the same run\n\n"
    "  rondo-bench --device=cuda --json=bench.json\n"
    "  rondo-bench replay eager --rounds=101\n"
    "  rondo-bench traces --traces=tests/data/traces/gpt_tiny.json\n"
    "  rondo-bench checkpoint --device=cuda --batch=512\n"
    "\n"
    "Benchmarks (all by default):\n"
    "  replay      a program of one region of 64 small kernels with 150 static inputs and 4\n"
    "              results against a launch of its graph; allocations per call\n"
    "  eager       launches of a kernel one by one against the raw launch\n"
    "  capture     making and instantiating graphs against the same by the raw API\n"
    "  handover    what an input adds to a call if it has moved, patched and copied\n"
    "  policies    calls whose inputs move: patched, copied, and what is chosen by measured cost\n"
    "  memory      the most memory that steps of a trace take, against the planned\n"
    "  remat       recomputation of a trace for budgets of 90 % to 30 %: saved, planned, work\n"
    "  checkpoint  a step whose blocks are computed again in the backward against one that saves\n"
    "              what it needs: time, memory; peer.py measures PyTorch's\n"
    "  traces      steps of traces, replayed against eager\n"
    "Exit codes: 0 success, 1 a benchmark failed, 2 wrong usage, 3 output not written, 4 --check "
    "found\na bar that is not met.\n";

} // namespace

static ExitCode report(llvm::Error error, ExitCode code) {
  llvm::logAllUnhandledErrors(std::move(error), llvm::errs());
  return code;
}

/// The traces to run, sorted. Errors: there is nothing at `path`.
static llvm::Expected<std::vector<std::string>> listTraces(const std::string &path) {
  std::vector<std::string> paths;
  if (!llvm::sys::fs::is_directory(path)) {
    if (!llvm::sys::fs::exists(path))
      return makeError("there are no traces at '" + path + "'; --traces names a file or a folder");
    return std::vector<std::string>{path};
  }
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(path, code), end; !code && it != end;
       it.increment(code))
    if (llvm::sys::path::extension(it->path()) == ".json")
      paths.push_back(it->path());
  llvm::sort(paths);
  return paths;
}

static llvm::Error benchTraces(const BenchSetup &setup, const std::string &where,
                               std::vector<Figure> &figures) {
  llvm::Expected<std::vector<std::string>> paths = listTraces(where);
  if (!paths)
    return paths.takeError();
  bool isFolder = llvm::sys::fs::is_directory(where);
  for (const std::string &path : *paths) {
    llvm::Error error = benchTrace(setup, path, figures);
    if (!error)
      continue;
    std::string text = llvm::toString(std::move(error));
    if (!isFolder || text.find("no claim source accepts") == std::string::npos)
      return makeError(llvm::sys::path::filename(path) + ": " + text);
    llvm::errs() << "remark: " << llvm::sys::path::filename(path)
                 << " is left out: an op of it has no kernel here\n";
  }
  return llvm::Error::success();
}

/// The trace whose memory is measured: `where`, or one in that folder. Errors: there is none.
static llvm::Expected<std::string> findMemoryTrace(const std::string &where) {
  if (!llvm::sys::fs::is_directory(where)) {
    llvm::Expected<std::vector<std::string>> paths = listTraces(where);
    return paths ? llvm::Expected<std::string>(paths->front()) : paths.takeError();
  }
  for (const char *name : {"gpt2_small_bf16.json", "gpt_tiny.json"}) {
    std::string path = where + "/" + name;
    if (llvm::sys::fs::exists(path))
      return path;
  }
  return makeError("there is neither gpt2_small_bf16.json nor gpt_tiny.json in '" + where +
                   "'; --traces names a file or a folder");
}

/// Calls `bench`, `memory` or `remat`, with the trace at `where`.
static llvm::Error benchMemoryOf(decltype(benchMemory) &bench, const BenchSetup &setup,
                                 const std::string &where, std::vector<Figure> &figures) {
  llvm::Expected<std::string> path = findMemoryTrace(where);
  if (!path)
    return path.takeError();
  if (llvm::Error error = bench(setup, *path, figures))
    return makeError(llvm::sys::path::filename(*path) + ": " + llvm::toString(std::move(error)));
  return llvm::Error::success();
}

/// Those that are named, in that order; all if none is. Errors: there is none of that name.
static llvm::Expected<std::vector<BenchKind>> benchesOf(const Options &options) {
  constexpr std::pair<llvm::StringLiteral, BenchKind> all[] = {
      {"replay", BenchKind::Replay},     {"eager", BenchKind::Eager},
      {"capture", BenchKind::Capture},   {"handover", BenchKind::Handover},
      {"policies", BenchKind::Policies}, {"memory", BenchKind::Memory},
      {"remat", BenchKind::Remat},       {"checkpoint", BenchKind::Checkpoint},
      {"traces", BenchKind::Traces}};
  std::vector<BenchKind> kinds;
  for (const std::string &name : options.benches) {
    const auto *found = llvm::find_if(all, [&](const auto &entry) { return entry.first == name; });
    if (found == std::end(all))
      return makeError("'" + name +
                       "' is no benchmark; benchmarks are: replay, eager, capture, handover, "
                       "policies, memory, remat, checkpoint, traces");
    kinds.push_back(found->second);
  }
  if (kinds.empty())
    for (const auto &entry : all)
      kinds.push_back(entry.second);
  return kinds;
}

/// By default smaller on the host, where a step would take minutes.
static CheckpointSizes checkpointSizes(const Options &options, bool isHost) {
  auto given = [](const cl::opt<unsigned> &option, unsigned otherwise) {
    return option.getNumOccurrences() ? option.getValue() : otherwise;
  };
  return {options.blocks, given(options.batch, isHost ? 16 : 2048),
          given(options.width, isHost ? 32 : 1024)};
}

static llvm::Error runBench(BenchKind kind, const BenchSetup &setup, const Options &options,
                            std::vector<Figure> &figures) {
  switch (kind) {
  case BenchKind::Replay:
    return benchReplay(setup, figures);
  case BenchKind::Eager:
    return benchEager(setup, figures);
  case BenchKind::Capture:
    return benchCapture(setup, figures);
  case BenchKind::Handover:
    return benchHandover(setup, figures);
  case BenchKind::Policies:
    return benchPolicies(setup, uint64_t(options.largest) * 1024, figures);
  case BenchKind::Memory:
    return benchMemoryOf(benchMemory, setup, options.traces, figures);
  case BenchKind::Remat:
    return benchMemoryOf(benchRemat, setup, options.traces, figures);
  case BenchKind::Checkpoint:
    return benchCheckpoint(setup, checkpointSizes(options, setup.device->device().isHost()),
                           figures);
  case BenchKind::Traces:
    return benchTraces(setup, options.traces, figures);
  }
  return llvm::Error::success();
}

static ExitCode runAll(llvm::ArrayRef<BenchKind> kinds, const BenchSetup &setup,
                       const Options &options) {
  ExitCode code = success;
  std::vector<Figure> figures;
  for (BenchKind kind : kinds)
    if (llvm::Error error = runBench(kind, setup, options, figures))
      code = report(std::move(error), failed);

  if (!options.json.empty())
    if (llvm::Error error = writeFile(options.json, [&](llvm::raw_ostream &os) {
          writeFigures(figures, deviceName(setup.device->device()), setup.device->description(),
                       os);
        }))
      code = report(std::move(error), cannotWrite);
  llvm::outs() << "on " << setup.device->description() << ": medians of at most " << setup.rounds
               << " rounds of " << setup.calls << " calls; a step of a trace is called once\n";
  printFigures(figures, llvm::outs());
  if (options.check && code == success &&
      !llvm::all_of(figures, [](const Figure &figure) { return figure.meetsBar(); }))
    return report(makeError("a bar is not met"), barNotMet);
  return code;
}

static ExitCode run(const Options &options) {
  std::optional<Device> where = deviceOption(options.device);
  if (!where)
    return report(makeError("'" + options.device + "' is no device; devices are: " + deviceOptions),
                  badUsage);
  if (options.largest == 0)
    return report(makeError("--largest is 0; it has to be 1 or more"), badUsage);
  for (const cl::opt<unsigned> *size : {&options.blocks, &options.batch, &options.width})
    if (size->getNumOccurrences() && (*size == 0 || *size > mostCheckpointSize))
      return report(makeError("--" + size->ArgStr + " is " + llvm::Twine(*size) +
                              "; it has to be 1 to " + llvm::Twine(mostCheckpointSize)),
                    badUsage);
  llvm::Expected<std::vector<BenchKind>> kinds = benchesOf(options);
  if (!kinds)
    return report(kinds.takeError(), badUsage);
  OpRegistry registry;
  if (llvm::Error error = registerCoreOps(registry))
    return report(std::move(error), failed);
  llvm::Expected<DeviceRef> device = createDevice(*where);
  if (!device)
    return report(device.takeError(), failed);
  std::vector<std::string> remarks;
  llvm::Expected<std::vector<std::unique_ptr<Executor>>> executors =
      createExecutors(*where, remarks);
  if (!executors)
    return report(executors.takeError(), failed);
  for (const std::string &remark : remarks)
    llvm::errs() << "remark: " << remark << '\n';
  llvm::Expected<std::unique_ptr<RawAPI>> raw =
      where->isHost() ? createHostRaw() : createCUDARaw(**device);
  if (!raw)
    return report(raw.takeError(), failed);
  std::vector<const Executor *> list = listOf(*executors);
  return runAll(*kinds,
                {registry, *device, list, **raw, std::max(options.rounds.getValue(), 1u),
                 std::max(options.calls.getValue(), 1u)},
                options);
}

int main(int argc, char **argv) {
  Options options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return badUsage;
  return run(options);
}
