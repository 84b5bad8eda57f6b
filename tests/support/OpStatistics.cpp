//===- OpStatistics.cpp - Distributions of random ops ---------------------===//

#include "support/OpStatistics.h"

#include "support/TensorTesting.h"

#include <algorithm>
#include <numeric>

using namespace rondo;

using List = std::vector<double>;
using Ints = llvm::SmallVector<int64_t, 4>;

//===----------------------------------------------------------------------===//
// Statistics
//===----------------------------------------------------------------------===//

static constexpr double criticalTwoSided = 4.8916, criticalOneSided = 4.7534,
                        criticalKolmogorov = 2.6934;

double statistics::meanExcess(llvm::ArrayRef<double> x, double mean, double variance) {
  double sum = std::accumulate(x.begin(), x.end(), 0.0), n = double(x.size());
  return std::abs(sum / n - mean) / std::sqrt(variance / n) / criticalTwoSided;
}

double statistics::varianceExcess(llvm::ArrayRef<double> x, double mean, double variance,
                                  double fourthMoment) {
  double sum = 0, n = double(x.size());
  for (double value : x)
    sum += (value - mean) * (value - mean);
  return std::abs(sum / n - variance) / std::sqrt((fourthMoment - variance * variance) / n) /
         criticalTwoSided;
}

double statistics::chiSquareCritical(double degrees) {
  double spread = 2 / (9 * degrees);
  return degrees * std::pow(1 - spread + criticalOneSided * std::sqrt(spread), 3);
}

double statistics::chiSquareExcess(llvm::ArrayRef<uint64_t> counts,
                                   llvm::ArrayRef<double> probabilities) {
  double n = double(std::accumulate(counts.begin(), counts.end(), uint64_t(0)));
  double sum = 0, degrees = double(counts.size()) - 1;
  for (size_t i = 0; i < counts.size(); ++i) {
    double expected = n * probabilities[i], difference = double(counts[i]) - expected;
    sum += difference * difference / expected;
  }
  return sum / chiSquareCritical(degrees);
}

double statistics::kolmogorovSmirnovExcess(std::vector<double> x,
                                           llvm::function_ref<double(double)> cdf) {
  std::sort(x.begin(), x.end());
  double n = double(x.size()), distance = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double expected = cdf(x[i]);
    distance = std::max({distance, double(i + 1) / n - expected, expected - double(i) / n});
  }
  return distance * (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n)) / criticalKolmogorov;
}

//===----------------------------------------------------------------------===//
// Draws
//===----------------------------------------------------------------------===//

static constexpr RNGState states[] = {{1, 0}, {20240613, 12345}, {~uint64_t(0), 1ull << 40}};
static constexpr int64_t numDraws = 100000;

/// The elements of result `result` of `op`, drawn with `state` after `operands`.
static List draw(const OpTarget &target, llvm::StringRef op, RNGState state,
                 std::vector<AttributeInit> attributes, std::vector<OperandInit> operands = {},
                 unsigned result = 0) {
  operands.push_back(state);
  attributes.push_back({"offset", 3});
  llvm::Expected<OpResults> results = runOpOn(target, op, operands, attributes);
  if (results)
    return valuesOf(*results->values[result].asTensor());
  ADD_FAILURE() << op.str() << ": " << llvm::toString(results.takeError());
  return {};
}

static List draw(const OpTarget &target, llvm::StringRef op, RNGState state, DType dtype,
                 std::vector<AttributeInit> attributes) {
  attributes.insert(attributes.end(), {{"dtype", dtype}, {"shape", Ints{numDraws}}});
  return draw(target, op, state, std::move(attributes));
}

/// How often each integer of [0, numValues) is there; others are a failure.
static std::vector<uint64_t> countsOf(llvm::ArrayRef<double> x, int64_t low, size_t numValues) {
  std::vector<uint64_t> counts(numValues);
  for (double value : x) {
    double index = value - double(low);
    if (index >= 0 && index < double(numValues) && index == std::floor(index))
      ++counts[size_t(index)];
    else
      ADD_FAILURE() << "drew " << value;
  }
  return counts;
}

/// Counts of pairs of neighbours that do not overlap, each number in one of `cells` parts of [0,
/// 1).
static std::vector<uint64_t> pairsOf(llvm::ArrayRef<double> x, unsigned cells) {
  std::vector<uint64_t> counts(cells * cells);
  for (size_t i = 0; i + 1 < x.size(); i += 2)
    ++counts[unsigned(x[i] * cells) * cells + unsigned(x[i + 1] * cells)];
  return counts;
}

static List equalParts(size_t n) {
  return List(n, 1.0 / double(n));
}

static double normalCDF(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}

//===----------------------------------------------------------------------===//
// Distributions
//===----------------------------------------------------------------------===//

static void testUniform(const OpTarget &target) {
  for (RNGState state : states) {
    for (DType dtype : {DType::F32, DType::F64}) {
      List x = draw(target, "uniform", state, dtype, {});
      EXPECT_LE(statistics::meanExcess(x, 0.5, 1.0 / 12), 1);
      EXPECT_LE(statistics::varianceExcess(x, 0.5, 1.0 / 12, 1.0 / 80), 1);
      EXPECT_LE(statistics::kolmogorovSmirnovExcess(x, [](double at) { return at; }), 1);
      EXPECT_LE(statistics::chiSquareExcess(pairsOf(x, 16), equalParts(256)), 1) << "of pairs";
      List y = draw(target, "uniform", state, dtype, {{"low", -3}, {"high", 5}});
      EXPECT_LE(statistics::meanExcess(y, 1, 64.0 / 12), 1);
      EXPECT_LE(statistics::kolmogorovSmirnovExcess(y, [](double at) { return (at + 3) / 8; }), 1);
    }
    // Half precision has as many values as bits: 2048 and 256, each as likely as another.
    for (auto [dtype, count] : {std::pair(DType::F16, 2048), std::pair(DType::BF16, 256)}) {
      List x = draw(target, "uniform", state, dtype, {});
      for (double &value : x)
        value *= count;
      EXPECT_LE(statistics::chiSquareExcess(countsOf(x, 0, count), equalParts(count)), 1);
    }
  }
}

static void testNormal(const OpTarget &target) {
  for (RNGState state : states) {
    for (DType dtype : {DType::F32, DType::F64}) {
      List x = draw(target, "normal", state, dtype, {});
      EXPECT_LE(statistics::meanExcess(x, 0, 1), 1);
      EXPECT_LE(statistics::varianceExcess(x, 0, 1, 3), 1);
      EXPECT_LE(statistics::kolmogorovSmirnovExcess(x, normalCDF), 1);
      // Both of a pair come from one radius and one angle.
      List uniform(x.size());
      std::transform(x.begin(), x.end(), uniform.begin(),
                     [](double value) { return std::min(normalCDF(value), 1 - 1e-9); });
      EXPECT_LE(statistics::chiSquareExcess(pairsOf(uniform, 16), equalParts(256)), 1)
          << "of pairs";
      List y = draw(target, "normal", state, dtype, {{"mean", -2}, {"std", 3}});
      EXPECT_LE(statistics::meanExcess(y, -2, 9), 1);
      EXPECT_LE(statistics::varianceExcess(y, -2, 9, 3 * 81), 1);
    }
    for (DType dtype : {DType::F16, DType::BF16}) { // rounding adds too little to see
      List x = draw(target, "normal", state, dtype, {});
      EXPECT_LE(statistics::meanExcess(x, 0, 1), 1);
      EXPECT_LE(statistics::varianceExcess(x, 0, 1, 3), 1);
    }
  }
}

static void testRandint(const OpTarget &target) {
  for (RNGState state : states)
    for (DType dtype : {DType::I64, DType::I32})
      for (auto [low, count] : {std::pair(-3, 6), std::pair(0, 256), std::pair(5, 1000),
                                std::pair(-500, 997), std::pair(7, 2)}) {
        List x = draw(target, "randint", state, dtype, {{"low", low}, {"high", low + count}});
        EXPECT_LE(statistics::chiSquareExcess(countsOf(x, low, count), equalParts(count)), 1)
            << "from " << low << ", " << count;
        double variance = (double(count) * count - 1) / 12;
        EXPECT_LE(statistics::meanExcess(x, low + (count - 1) / 2.0, variance), 1);
      }
}

/// Ranges near and beyond one word, also such that a third of the words have no place: each third
/// is as likely as another.
static void testRandintOfLargeRanges(const OpTarget &target) {
  for (RNGState state : states)
    for (int64_t count : {int64_t(3) << 30, (int64_t(1) << 32) + 1, int64_t(3) << 40,
                          int64_t(3) << 50, int64_t(9007199254740881)}) {
      List x = draw(target, "randint", state, DType::I64, {{"low", 0}, {"high", count}});
      for (double &value : x)
        value /= double(count);
      EXPECT_LE(statistics::kolmogorovSmirnovExcess(x, [](double at) { return at; }), 1) << count;
      for (double &value : x)
        value = std::floor(value * 96);
      EXPECT_LE(statistics::chiSquareExcess(countsOf(x, 0, 96), equalParts(96)), 1) << count;
    }
}

static void testBernoulli(const OpTarget &target) {
  for (RNGState state : states)
    for (double p : {0.5, 0.1, 0.999, 1e-3}) {
      Tensor probabilities = tensorOf(DType::F32, {numDraws}, List(numDraws, p));
      List x = draw(target, "bernoulli", state, {}, {probabilities});
      p = valuesOf(probabilities)[0]; // as rounded
      std::vector<uint64_t> counts = countsOf(x, 0, 2);
      EXPECT_LE(statistics::chiSquareExcess(counts, {1 - p, p}), 1) << p;
    }
}

/// What is kept, and in which runs: of 8 neighbours every pattern comes as often as it should.
static void testDropout(const OpTarget &target) {
  Tensor x = tensorOf(DType::F32, {numDraws}, List(numDraws, 1));
  for (RNGState state : states)
    for (double p : {0.5, 0.1, 0.9}) {
      List kept = draw(target, "dropout", state, {{"p", p}}, {x}, /*result=*/1);
      List out = draw(target, "dropout", state, {{"p", p}}, {x});
      EXPECT_LE(statistics::chiSquareExcess(countsOf(kept, 0, 2), {p, 1 - p}), 1) << p;
      EXPECT_LE(statistics::meanExcess(out, 1, p / (1 - p)), 1) << p;
      if (p != 0.5)
        continue;
      List patterns;
      for (int64_t i = 0; i + 8 <= numDraws; i += 8) {
        double pattern = 0;
        for (int64_t j = 0; j < 8; ++j)
          pattern = 2 * pattern + kept[i + j];
        patterns.push_back(pattern);
      }
      EXPECT_LE(statistics::chiSquareExcess(countsOf(patterns, 0, 256), equalParts(256)), 1);
    }
}

/// `count` weights, some of them 0, and what they sum to.
static std::pair<List, double> weightsOf(size_t count) {
  List weights(count);
  for (size_t i = 0; i < count; ++i)
    weights[i] = double(i * 7 % 5) / 4;
  return {weights, std::accumulate(weights.begin(), weights.end(), 0.0)};
}

static void testMultinomialWithReplacement(const OpTarget &target) {
  for (RNGState state : states)
    for (size_t count : {2, 7, 300}) {
      auto [weights, sum] = weightsOf(count);
      List x = draw(target, "multinomial", state, {{"n", numDraws}, {"replacement", true}},
                    {tensorOf(DType::F32, {int64_t(count)}, weights)});
      std::vector<uint64_t> counts = countsOf(x, 0, count), possible;
      List probabilities;
      for (size_t i = 0; i < count; ++i) {
        if (weights[i] == 0) {
          EXPECT_EQ(counts[i], 0U) << i;
          continue;
        }
        possible.push_back(counts[i]);
        probabilities.push_back(weights[i] / sum);
      }
      if (possible.size() > 1) {
        EXPECT_LE(statistics::chiSquareExcess(possible, probabilities), 1) << count;
      }
    }
}

/// Two of four without replacement: the ordered pair (i, j) has probability w_i w_j / (1 - w_i),
/// where weights sum to 1.
static void testMultinomialWithoutReplacement(const OpTarget &target) {
  constexpr int64_t numRows = 30000;
  const List weights = {0.1, 0.2, 0.3, 0.4};
  List rows;
  for (int64_t row = 0; row < numRows; ++row)
    rows.insert(rows.end(), weights.begin(), weights.end());
  Tensor operand = tensorOf(DType::F64, {numRows, 4}, rows);
  for (RNGState state : states) {
    List x = draw(target, "multinomial", state, {{"n", 2}}, {operand});
    ASSERT_EQ(x.size(), size_t(2 * numRows));
    List pairs, probabilities;
    for (int64_t row = 0; row < numRows; ++row)
      pairs.push_back(4 * x[2 * row] + x[2 * row + 1]);
    std::vector<uint64_t> counts = countsOf(pairs, 0, 16), possible;
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned j = 0; j < 4; ++j) {
        if (i == j) {
          EXPECT_EQ(counts[4 * i + j], 0U);
          continue;
        }
        possible.push_back(counts[4 * i + j]);
        probabilities.push_back(weights[i] * weights[j] / (1 - weights[i]));
      }
    EXPECT_LE(statistics::chiSquareExcess(possible, probabilities), 1);
  }
}

//===----------------------------------------------------------------------===//
// The suite
//===----------------------------------------------------------------------===//

static llvm::ArrayRef<StatisticsCase> statisticsCases() {
  static const StatisticsCase cases[] = {
      {"uniform", testUniform},
      {"normal", testNormal},
      {"randint", testRandint},
      {"randint_large", testRandintOfLargeRanges},
      {"bernoulli", testBernoulli},
      {"dropout", testDropout},
      {"multinomial_with_replacement", testMultinomialWithReplacement},
      {"multinomial_without_replacement", testMultinomialWithoutReplacement}};
  return cases;
}

std::vector<OpStatisticsParam> rondo::opStatisticsTests(OpConformanceTarget target) {
  auto shared = std::make_shared<const OpConformanceTarget>(std::move(target));
  std::vector<OpStatisticsParam> params;
  for (const StatisticsCase &test : statisticsCases())
    params.push_back({shared, &test});
  return params;
}

std::string rondo::opStatisticsName(const testing::TestParamInfo<OpStatisticsParam> &info) {
  return info.param.test->name;
}

void rondo::PrintTo(const OpStatisticsParam &param, std::ostream *os) {
  *os << param.test->name;
}

namespace rondo {

// Not by every program that is linked with it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpStatistics);

// What the op draws is distributed as it should be.
TEST_P(OpStatistics, Distribution) {
  OpTarget target = GetParam().target->create();
  if (HasFatalFailure())
    return;
  if (!target.device)
    GTEST_SKIP() << "no device";
  GetParam().test->run(target);
}

} // namespace rondo
