//===- HostOpStatisticsTest.cpp - Distributions of the host's random ops --===//

#include "support/OpStatistics.h"

#include "rondo/executors/Philox.h"

#include <gmock/gmock.h>

using namespace rondo;

namespace {

using List = std::vector<double>;
using testing::Gt;
using testing::Lt;

List uniformNumbers(size_t n) {
  List x(n);
  for (size_t i = 0; i < n; ++i)
    x[i] = philox::uniform(philox::word(5, i), 32);
  return x;
}

// The mean and the variance of numbers are found out where they are off by little.
TEST(OpStatisticsSuite, NoticesMeanAndVariance) {
  List x = uniformNumbers(100000);
  EXPECT_THAT(statistics::meanExcess(x, 0.5, 1.0 / 12), Lt(1));
  EXPECT_THAT(statistics::meanExcess(x, 0.51, 1.0 / 12), Gt(1));
  EXPECT_THAT(statistics::varianceExcess(x, 0.5, 1.0 / 12, 1.0 / 80), Lt(1));
  for (double &value : x)
    value = 0.5 + (value - 0.5) * 1.02;
  EXPECT_THAT(statistics::varianceExcess(x, 0.5, 1.0 / 12, 1.0 / 80), Gt(1));
}

// A distribution function that is off by a percent is found out, and so are numbers that leave out
// the last 256th.
TEST(OpStatisticsSuite, NoticesDistributions) {
  List x = uniformNumbers(100000);
  auto uniform = [](double at) { return at; };
  EXPECT_THAT(statistics::kolmogorovSmirnovExcess(x, uniform), Lt(1));
  EXPECT_THAT(statistics::kolmogorovSmirnovExcess(x, [](double at) { return std::pow(at, 1.03); }),
              Gt(1));
  auto counts = [&](double scale) {
    std::vector<uint64_t> cells(256);
    for (double value : x)
      ++cells[size_t(value * scale)];
    return cells;
  };
  List equal(256, 1.0 / 256);
  EXPECT_THAT(statistics::chiSquareExcess(counts(256), equal), Lt(1));
  EXPECT_THAT(statistics::chiSquareExcess(counts(255), equal), Gt(1));
}

/// The probability that chi-square exceeds `x`: for even degrees of freedom a sum, for one the
/// normal distribution.
double chiSquareSurvival(double x, unsigned degrees) {
  if (degrees == 1)
    return std::erfc(std::sqrt(x / 2));
  double term = std::exp(-x / 2), sum = 0;
  for (unsigned k = 0; k < degrees / 2; ++k) {
    sum += term;
    term *= x / 2 / double(k + 1);
  }
  return sum;
}

// Independent draws exceed the critical value with probability 1e-6, or somewhat less where there
// are few degrees of freedom.
TEST(OpStatisticsSuite, CriticalValuesOfChiSquare) {
  for (unsigned degrees : {1U, 2U, 4U, 10U, 100U, 256U, 1000U}) {
    double p = chiSquareSurvival(statistics::chiSquareCritical(degrees), degrees);
    EXPECT_THAT(p, Gt(degrees < 10 ? 1e-7 : 6e-7)) << degrees;
    EXPECT_THAT(p, Lt(1.1e-6)) << degrees;
  }
}

} // namespace

namespace rondo {
INSTANTIATE_TEST_SUITE_P(Host, OpStatistics,
                         testing::ValuesIn(opStatisticsTests({[] { return hostOpTarget(); }})),
                         opStatisticsName);
} // namespace rondo
