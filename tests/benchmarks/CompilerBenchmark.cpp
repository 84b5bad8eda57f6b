//===- CompilerBenchmark.cpp - What compiling a trace costs -----------------===//
//
// Every step over 1,000 to 1,000,000 ops. After the table come the medians of the CPU time (one
// thread does all the work; what else runs on the machine counts less) and the growth exponents:
// the slope of that time over the number of ops on logarithmic scales, least squares, from 10,000
// ops on (below, fixed costs and caches hide it).
//
//   build/release/bin/rondo_benchmarks --benchmark_repetitions=5
//
//===----------------------------------------------------------------------===//

#include "SyntheticTrace.h"

#include "Packing.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/ImportFX.h"
#include "rondo/ir/JSON.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/Verifier.h"
#include "rondo/passes/CUDAGraphTransform.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/Passes.h"
#include "rondo/passes/TableClaimSource.h"

#include "llvm/Support/MemoryBuffer.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <map>

#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace rondo;

namespace {

/// The registry and the pairs of each size, made on first use.
class Fixture {
public:
  Fixture() { llvm::cantFail(registerCoreOps(registry)); }

  const TracePair &pair(unsigned numOps) {
    auto it = pairs_.find(numOps);
    if (it == pairs_.end())
      it = pairs_.emplace(numOps, makeSyntheticPair(registry, numOps)).first;
    return it->second;
  }

  OpRegistry registry;

private:
  std::map<unsigned, TracePair> pairs_;
};

} // namespace

static std::string textOf(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(pair, os);
  return std::move(os.str());
}

static std::string jsonOf(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeJSON(pair, os);
  return std::move(os.str());
}

/// Runs `pass` on a fresh copy each time; copying is not timed.
static void runPass(benchmark::State &state, Fixture &fixture,
                    llvm::function_ref<std::unique_ptr<Pass>()> makePass) {
  const TracePair &pair = fixture.pair(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    auto copy = std::make_unique<TracePair>(pair.clone());
    std::unique_ptr<Pass> pass = makePass();
    DiagnosticList diagnostics;
    state.ResumeTiming();
    llvm::cantFail(pass->run(*copy, diagnostics).takeError());
    state.PauseTiming();
    copy.reset();
    state.ResumeTiming();
  }
}

static std::unique_ptr<Pass> makeTransform(Partition partition) {
  CUDAGraphOptions options;
  options.partition = partition;
  return std::make_unique<CUDAGraphTransform>(options);
}

static void registerPassBenchmarks(
    Fixture &fixture,
    llvm::function_ref<void(const char *, std::function<void(benchmark::State &)>)> add) {
  add("partition_consecutive", [&](benchmark::State &state) {
    runPass(state, fixture, [] { return makeTransform(Partition::Consecutive); });
  });
  add("partition_dataflow", [&](benchmark::State &state) {
    runPass(state, fixture, [] { return makeTransform(Partition::Dataflow); });
  });
  add("del", [&](benchmark::State &state) { runPass(state, fixture, createDelPass); });
  add("dce",
      [&](benchmark::State &state) { runPass(state, fixture, createDeadCodeEliminationPass); });
  add("cse", [&](benchmark::State &state) {
    runPass(state, fixture, createCommonSubexpressionEliminationPass);
  });
  add("canonicalise",
      [&](benchmark::State &state) { runPass(state, fixture, createCanonicalisePass); });
  add("verify", [&](benchmark::State &state) {
    const TracePair &pair = fixture.pair(state.range(0));
    for (auto _ : state)
      llvm::cantFail(verify(pair));
  });
}

static void registerFormatBenchmarks(
    Fixture &fixture,
    llvm::function_ref<void(const char *, std::function<void(benchmark::State &)>)> add) {
  add("text_print", [&](benchmark::State &state) {
    const TracePair &pair = fixture.pair(state.range(0));
    for (auto _ : state)
      benchmark::DoNotOptimize(textOf(pair));
  });
  add("text_parse", [&](benchmark::State &state) {
    std::string text = textOf(fixture.pair(state.range(0)));
    for (auto _ : state)
      llvm::cantFail(parsePair(text, "benchmark", fixture.registry).takeError());
    state.SetBytesProcessed(int64_t(state.iterations()) * text.size());
  });
  add("json_write", [&](benchmark::State &state) {
    const TracePair &pair = fixture.pair(state.range(0));
    for (auto _ : state)
      benchmark::DoNotOptimize(jsonOf(pair));
  });
  add("json_read", [&](benchmark::State &state) {
    std::string text = jsonOf(fixture.pair(state.range(0)));
    for (auto _ : state)
      llvm::cantFail(readJSON(text, "benchmark", fixture.registry).takeError());
    state.SetBytesProcessed(int64_t(state.iterations()) * text.size());
  });
}

/// Offsets for as many temporaries as there are ops: most of them short-lived, some long, of few
/// sizes.
static void packMemory(benchmark::State &state) {
  std::vector<PackingItem> items;
  for (uint32_t i = 0; i < uint32_t(state.range(0)); ++i) {
    uint32_t mixed = i * 2654435761u; // Knuth's multiplicative hash
    uint32_t duration = mixed >> 27 ? mixed >> 24 & 7 : mixed >> 16 & 255;
    items.push_back({256 * uint64_t(1 + (mixed >> 8) % 40), i, i + duration});
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(pack(items, {}).arenaBytes);
}

/// A real training step through the usual pipeline, verified after each pass.
static void gpt2Pipeline(benchmark::State &state, Fixture &fixture) {
  const std::string path = std::string(RONDO_TEST_DATA_DIR) + "/traces/gpt2_small_bf16.json";
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    state.SkipWithError(("cannot read " + path).c_str());
    return;
  }
  TracePair pair = llvm::cantFail(importFX((*buffer)->getBuffer(), path, fixture.registry));
  TableClaimSource host = makeHostClaimTable(fixture.registry);
  PassRegistry passes;
  llvm::cantFail(registerPasses(passes, {&host}));
  for (auto _ : state) {
    state.PauseTiming();
    PassManager manager;
    llvm::cantFail(passes.parsePipeline(
        "canonicalise,dce,cse,execution,cuda-graph{partition=dataflow},del", manager));
    TracePair copy = pair.clone();
    state.ResumeTiming();
    llvm::cantFail(manager.run(std::move(copy)).takeError());
  }
}

namespace {

/// Prints the usual table, keeps the times, and prints medians and exponents last.
class GrowthReporter : public benchmark::ConsoleReporter {
public:
  void ReportRuns(const std::vector<Run> &runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run &run : runs)
      if (run.run_type == Run::RT_Iteration && !run.error_occurred)
        times_[run.run_name.function_name][std::atoll(run.run_name.args.c_str())].push_back(
            run.GetAdjustedCPUTime() / benchmark::GetTimeUnitMultiplier(run.time_unit));
  }

  void Finalize() override {
    ConsoleReporter::Finalize();
    GetOutputStream()
        << "\nmedian CPU ms by number of ops, and growth exponent from 10,000 ops on\n";
    for (auto &[name, bySize] : times_) {
      GetOutputStream() << "  " << name << ':';
      std::vector<std::pair<double, double>> points;
      for (auto &[size, times] : bySize) {
        std::sort(times.begin(), times.end());
        double median = times[times.size() / 2];
        GetOutputStream() << "  " << (size ? std::to_string(size) + " = " : "") << median * 1e3;
        if (size >= 10000)
          points.push_back({std::log(double(size)), std::log(median)});
      }
      if (points.size() > 1)
        GetOutputStream() << "  exponent " << slope(points);
      GetOutputStream() << '\n';
    }
  }

private:
  static double slope(const std::vector<std::pair<double, double>> &points) {
    double n = points.size(), sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (auto [x, y] : points)
      sx += x, sy += y, sxx += x * x, sxy += x * y;
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
  }

  std::map<std::string, std::map<long long, std::vector<double>>> times_;
};

} // namespace

/// Keeps freed memory in the process: else every large run pays for fresh pages from the kernel,
/// and the growth shows that rather than the algorithms.
static void keepMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

int main(int argc, char **argv) {
  keepMemory();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  Fixture fixture;
  auto add = [](const char *name, std::function<void(benchmark::State &)> run) {
    benchmark::RegisterBenchmark(name, run)
        ->RangeMultiplier(10)
        ->Range(1000, 1000000)
        ->Unit(benchmark::kMillisecond);
  };
  registerPassBenchmarks(fixture, add);
  registerFormatBenchmarks(fixture, add);
  add("memory_plan", packMemory);
  benchmark::RegisterBenchmark("gpt2_small_pipeline", [&](benchmark::State &state) {
    gpt2Pipeline(state, fixture);
  })->Unit(benchmark::kMillisecond);
  GrowthReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}
