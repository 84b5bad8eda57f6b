//===- Figures.h - What benchmarks measured ---------------------*- C++ -*-===//

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <string>

namespace rondo {

/// One measured number, beside another of the same run where there is one to compare with.
struct Figure {
  std::string bench, what;
  std::string unit; ///< of both numbers
  double value = 0;
  std::optional<double> baseline = std::nullopt;
  std::string baselineName = ""; ///< `cudaGraphLaunch`, `eager`
  /// What must not be exceeded, by value / baseline or, without a baseline, by the value.
  std::optional<double> bar = std::nullopt;
  bool barIsOnValue = false; ///< although there is a baseline

  std::optional<double> ratio() const {
    return baseline && *baseline > 0 ? std::optional(value / *baseline) : std::nullopt;
  }
  bool meetsBar() const {
    if (!bar)
      return true;
    return baseline && !barIsOnValue ? ratio() && *ratio() <= *bar : value <= *bar;
  }
};

/// Figures of memory are in KiB.
inline double inKiB(double bytes) {
  return bytes / 1024;
}

/// One line per figure.
void printFigures(llvm::ArrayRef<Figure> figures, llvm::raw_ostream &os);
/// All of them, with what they were measured on.
void writeFigures(llvm::ArrayRef<Figure> figures, llvm::StringRef device,
                  llvm::StringRef description, llvm::raw_ostream &os);

} // namespace rondo
