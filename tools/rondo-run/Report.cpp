//===- Report.cpp - What runs showed, for people --------------------------===//

#include "Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace rondo;

static std::string number(const char *format, double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(format, value);
  return text;
}

static std::string milliseconds(double seconds) {
  return seconds == 0 ? "-" : number("%.3f", seconds * 1e3);
}

std::string rondo::byteText(uint64_t bytes) {
  if (bytes < 10000)
    return std::to_string(bytes);
  if (bytes < 10000 * 1024)
    return number("%.1fK", double(bytes) / 1024);
  return number("%.1fM", double(bytes) / (1024 * 1024));
}

static void printMemory(llvm::StringRef side, const MemoryInfo &memory, llvm::raw_ostream &os) {
  os << "  " << side << " memory: arguments " << byteText(memory.arguments) << ", arena "
     << byteText(memory.arena) << ", slab " << byteText(memory.slab) << ", results "
     << byteText(memory.results) << "; in all " << byteText(memory.peak()) << ", lower bound "
     << byteText(memory.lowerBound) << '\n';
}

static void printGraph(const EntryStatistics &graph, llvm::raw_ostream &os) {
  os << "    graph of specialisation " << graph.key.program << ", region key " << graph.key.region
     << ", arena " << graph.key.lane << ": " << graph.numNodes << " nodes, "
     << byteText(graph.bytes) << " on the device, built in " << milliseconds(graph.buildSeconds)
     << " ms, used " << graph.uses << " times, copies " << byteText(graph.copiedBytes)
     << " per replay\n";
}

void rondo::printReport(const RunReport &report, bool listGraphs, llvm::raw_ostream &os) {
  os << report.name << '\n';
  for (const RegionInfo &region : report.regions)
    os << "  region " << region.id << " of the " << sideName(region.side) << ": " << region.numOps
       << " ops, arguments: " << region.count(BufferPolicy::Static) << " static, "
       << region.count(BufferPolicy::Patched) << " patched, " << region.count(BufferPolicy::Copied)
       << " copied (" << byteText(region.copiedBytes) << " per replay)\n";
  const CacheCounters &counters = report.counters;
  os << "  graphs: " << counters.entries << " held, " << counters.captures << " captured, "
     << counters.replays << " replays, " << counters.eagerRuns << " eager runs, "
     << counters.patches << " patches of " << counters.patchedNodes << " nodes, "
     << counters.recaptures << " recaptures, " << counters.failures << " failures, "
     << counters.evictions << " evictions\n";
  if (listGraphs)
    for (const EntryStatistics &graph : report.graphs)
      printGraph(graph, os);
  printMemory("forward", report.memory[0], os);
  if (report.memory[1].lowerBound)
    printMemory("backward", report.memory[1], os);
  os << "  step: peak " << byteText(report.peakBytes) << ", lower bound "
     << byteText(report.lowerBound) << "; eager " << milliseconds(report.eagerSeconds)
     << " ms, replayed " << milliseconds(report.replaySeconds) << " ms (medians)\n";
  if (report.errors) {
    os << "  error: results " << number("%.1e", report.errors->loss) << ", others at most "
       << number("%.1e", report.errors->other);
    if (!report.errors->worst.empty())
      os << " (" << report.errors->worst << ")";
    os << "; " << report.errors->numCompared << " values compared, " << report.errors->numMissing
       << " not recorded\n";
  }
  for (const std::string &remark : report.remarks)
    os << "  remark: " << remark << '\n';
}

namespace {

struct Column {
  const char *title;
  bool isLeft;
  std::function<std::string(const RunReport &)> text;
};

} // namespace

static std::string bothSides(const RunReport &report, unsigned forward, unsigned backward) {
  std::string text = std::to_string(forward);
  return report.memory[1].lowerBound ? text + "+" + std::to_string(backward) : text;
}

static unsigned numRegions(const RunReport &report, Side side) {
  return llvm::count_if(report.regions,
                        [&](const RegionInfo &region) { return region.side == side; });
}

static std::vector<Column> columns() {
  using R = const RunReport &;
  return {
      {"trace", true, [](R r) { return r.name; }},
      {"ops", false, [](R r) { return bothSides(r, r.numOps[0], r.numOps[1]); }},
      {"captured", false,
       [](R r) { return bothSides(r, r.numCapturedOps[0], r.numCapturedOps[1]); }},
      {"regions", false,
       [](R r) {
         return bothSides(r, numRegions(r, Side::Forward), numRegions(r, Side::Backward));
       }},
      {"captures", false, [](R r) { return std::to_string(r.counters.captures); }},
      {"replays", false, [](R r) { return std::to_string(r.counters.replays); }},
      {"copied B", false, [](R r) { return std::to_string(r.copiedPerStep); }},
      {"loss err", false, [](R r) { return r.errors ? number("%.1e", r.errors->loss) : "-"; }},
      {"max err", false, [](R r) { return r.errors ? number("%.1e", r.errors->other) : "-"; }},
      {"bits", false,
       [](R r) { return !r.isReplayEqual   ? "-"
                        : *r.isReplayEqual ? "equal"
                                           : "DIFFER"; }},
      {"peak B", false, [](R r) { return byteText(r.peakBytes); }},
      {"bound B", false, [](R r) { return byteText(r.lowerBound); }},
      {"ratio", false,
       [](R r) {
         return r.lowerBound ? number("%.3f", double(r.peakBytes) / double(r.lowerBound)) : "-";
       }},
      {"eager ms", false, [](R r) { return milliseconds(r.eagerSeconds); }},
      {"replay ms", false, [](R r) { return milliseconds(r.replaySeconds); }},
  };
}

void rondo::printTable(llvm::ArrayRef<RunReport> reports, llvm::raw_ostream &os) {
  std::vector<Column> all = columns();
  std::vector<std::vector<std::string>> rows(reports.size() + 1);
  for (const Column &column : all) {
    rows[0].push_back(column.title);
    for (size_t i = 0; i < reports.size(); ++i)
      rows[i + 1].push_back(column.text(reports[i]));
  }
  for (const std::vector<std::string> &row : rows) {
    for (size_t c = 0; c < all.size(); ++c) {
      size_t width = 0;
      for (const std::vector<std::string> &other : rows)
        width = std::max(width, other[c].size());
      if (c)
        os << "  ";
      os << (all[c].isLeft ? llvm::left_justify(row[c], width)
                           : llvm::right_justify(row[c], width));
    }
    os << '\n';
  }
}
