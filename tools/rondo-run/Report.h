//===- Report.h - What runs showed, for people ------------------*- C++ -*-===//

#pragma once

#include "Run.h"

#include "llvm/Support/raw_ostream.h"

namespace rondo {

/// Regions, counters, memory and times of one run.
void printReport(const RunReport &report, llvm::raw_ostream &os);

/// One line per run.
void printTable(llvm::ArrayRef<RunReport> reports, llvm::raw_ostream &os);

} // namespace rondo
