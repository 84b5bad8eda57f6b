//===- OpStatistics.h - Distributions of random ops -------------*- C++ -*-===//
//
// One suite of statistical tests for the random ops of every executor. A test of a device describes
// how to make it and who executes ops on it, and instantiates `OpStatistics`, one test for each
// distribution:
//
//   INSTANTIATE_TEST_SUITE_P(Host, OpStatistics, testing::ValuesIn(opStatisticsTests(target)),
//                            opStatisticsName);
//
// Seeds are known, so that a test gives the same in every run. Statistics are compared with
// critical values that independent draws exceed with probability 1e-6:
//
//   mean, variance        |z| <= 4.8916, of the normal distribution; the variance of the mean
//   square
//                         about the known mean is (m4 - v^2) / n, with the fourth central moment m4
//   chi-square, k cells   Wilson and Hilferty, PNAS 17 (1931) 684: with d = k - 1 degrees of
//   freedom
//                         (X / d)^(1/3) is about normal with mean 1 - 2 / (9 d) and variance
//                         2 / (9 d): z <= 4.7534, one-sided
//   Kolmogorov-Smirnov    D (sqrt n + 0.12 + 0.11 / sqrt n) <= 2.6934, where 2 exp(-2 x^2) = 1e-6;
//                         the correction is that of Stephens, JASA 69 (1974) 730
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/OpConformance.h"

namespace rondo {

namespace statistics {

/// Distances from what is expected as parts of what is allowed: more than 1 is too much.
double meanExcess(llvm::ArrayRef<double> x, double mean, double variance);
double varianceExcess(llvm::ArrayRef<double> x, double mean, double variance, double fourthMoment);
/// Counts of what fell into cells against their probabilities, which sum to 1 and are not 0.
double chiSquareExcess(llvm::ArrayRef<uint64_t> counts, llvm::ArrayRef<double> probabilities);
double chiSquareCritical(double degrees);
/// Of numbers that should be distributed by `cdf`, which is continuous.
double kolmogorovSmirnovExcess(std::vector<double> x, llvm::function_ref<double(double)> cdf);

} // namespace statistics

struct StatisticsCase {
  std::string name;
  /// Adds failures of the current test.
  void (*run)(const OpTarget &target);
};

struct OpStatisticsParam {
  std::shared_ptr<const OpConformanceTarget> target;
  const StatisticsCase *test;
};
/// A test for each distribution.
std::vector<OpStatisticsParam> opStatisticsTests(OpConformanceTarget target);
std::string opStatisticsName(const testing::TestParamInfo<OpStatisticsParam> &info);
void PrintTo(const OpStatisticsParam &param, std::ostream *os);

class OpStatistics : public testing::TestWithParam<OpStatisticsParam> {};

} // namespace rondo
