//===- Report.h - What runs showed, for people ------------------*- C++ -*-===//

#pragma once

#include "Run.h"

#include "llvm/Support/raw_ostream.h"

namespace rondo {

/// Exact below 10,000; then KiB, MiB.
std::string byteText(uint64_t bytes);

/// Regions, counters, memory and times of one run; with `listGraphs` a line for each graph, too.
void printReport(const RunReport &report, bool listGraphs, llvm::raw_ostream &os);

/// The memory plan of each side: figures, what holds the peak, and where every storage is.
void printPlan(const PlanReport &report, llvm::raw_ostream &os);

/// One line per run.
void printTable(llvm::ArrayRef<RunReport> reports, llvm::raw_ostream &os);

} // namespace rondo
