//===- ReductionKernelsTest.cpp -------------------------------------------===//

#include "RunOp.h"

#include <algorithm>
#include <numeric>

using namespace rondo;

namespace {

using List = std::vector<double>;
using Ints = llvm::SmallVector<int64_t, 4>;
using Reduce = double (*)(const List &);

constexpr DType floats[] = {DType::F32, DType::F64, DType::BF16, DType::F16};
const double nan = std::numeric_limits<double>::quiet_NaN();
const double inf = std::numeric_limits<double>::infinity();

double sum(const List &x) {
  return std::accumulate(x.begin(), x.end(), 0.0);
}
double mean(const List &x) {
  return sum(x) / double(x.size());
}
double product(const List &x) {
  return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>());
}
template <int correction> double variance(const List &x) {
  double center = mean(x), squares = 0;
  for (double value : x)
    squares += (value - center) * (value - center);
  return squares / std::max(0.0, double(x.size()) - correction);
}
template <int p> double norm(const List &x) {
  double total = 0;
  for (double value : x)
    total += std::pow(std::fabs(value), p);
  return std::pow(total, 1.0 / p);
}
double greatestSize(const List &x) {
  double result = 0;
  for (double value : x)
    result = std::max(result, std::fabs(value));
  return result;
}
double leastSize(const List &x) {
  double result = inf;
  for (double value : x)
    result = std::min(result, std::fabs(value));
  return result;
}
double nonZeros(const List &x) {
  return double(x.size() - std::count(x.begin(), x.end(), 0.0));
}
double logSumExp(const List &x) {
  double total = 0;
  for (double value : x)
    total += std::exp(value);
  return std::log(total);
}
double greatest(const List &x) {
  return *std::max_element(x.begin(), x.end());
}
double least(const List &x) {
  return *std::min_element(x.begin(), x.end());
}
double some(const List &x) {
  return nonZeros(x) > 0;
}
double every(const List &x) {
  return nonZeros(x) == double(x.size());
}
double firstGreatest(const List &x) {
  return double(std::max_element(x.begin(), x.end()) - x.begin());
}
double firstLeast(const List &x) {
  return double(std::min_element(x.begin(), x.end()) - x.begin());
}

struct ReductionCase {
  const char *op;
  Reduce formula;
  bool takesIntegers = false;
  std::vector<AttributeInit> attributes = {};
};

std::vector<ReductionCase> reductionCases() {
  return {
      {"sum", sum, true},
      {"prod", product, true},
      {"mean", mean},
      {"var", variance<1>},
      {"var", variance<0>, false, {{"correction", 0}}},
      {"norm", norm<2>},
      {"norm", norm<1>, false, {{"p", 1}}},
      {"norm", norm<3>, false, {{"p", 3}}},
      {"norm", nonZeros, false, {{"p", 0}}},
      {"norm", greatestSize, false, {{"p", inf}}},
      {"norm", leastSize, false, {{"p", -inf}}},
      {"logsumexp", logSumExp, true},
      {"amax", greatest, true},
      {"amin", least, true},
      {"any", some, true},
      {"all", every, true},
  };
}

/// Numbers in [-2, 2), with some zeros; integers from -2 to 1.
Tensor numbers(DType dtype, llvm::ArrayRef<int64_t> shape, uint64_t seed, Layout layout) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  List values = randomValues(count, seed);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 5 == 2 ? 0 : isFloat(dtype) ? values[i] : std::floor(values[i]);
  if (dtype == DType::Bool)
    for (double &value : values)
      value = value != 0;
  return withLayout(tensorOf(dtype, shape, values), layout);
}

/// `formula` of the elements of x (row-major, `shape`) that differ in the dimensions in `dims`
/// only.
List reduceByFormula(const List &x, const Ints &shape, const Ints &dims, Reduce formula) {
  std::vector<List> groups;
  int64_t numGroups = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    numGroups *= llvm::is_contained(dims, int64_t(d)) ? 1 : shape[d];
  groups.resize(numGroups);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t group = 0, rest = i, scale = 1;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
      if (llvm::is_contained(dims, int64_t(d)))
        continue;
      group += rest % shape[d] * scale;
      scale *= shape[d];
    }
    groups[group].push_back(x[i]);
  }
  List result;
  for (const List &group : groups)
    result.push_back(formula(group));
  return result;
}

std::string describe(const char *op, DType dtype, Layout layout, const Ints &dims) {
  std::string text = (op + (" " + dtypeName(dtype) + " " + layoutName(layout) + " over")).str();
  for (int64_t dim : dims)
    text += " " + std::to_string(dim);
  return text;
}

/// A reduction gives its formula's value of the elements along any dimensions, in every layout.
TEST(ReductionKernels, ReductionsComputeTheirFormula) {
  Ints shape = {3, 4, 5};
  for (const ReductionCase &test : reductionCases()) {
    std::vector<DType> dtypes(std::begin(floats), std::end(floats));
    if (test.takesIntegers)
      dtypes.insert(dtypes.end(), {DType::I64, DType::I32, DType::Bool});
    for (DType dtype : dtypes) {
      for (Layout layout : allLayouts) {
        for (const Ints &dims : {Ints{}, Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}}) {
          SCOPED_TRACE(describe(test.op, dtype, layout, dims));
          Tensor x = numbers(dtype, shape, 5, layout);
          std::vector<AttributeInit> attributes = test.attributes;
          attributes.emplace_back("dims", dims);
          Value out = runOp(test.op, {x}, attributes)[0];
          List expected = reduceByFormula(valuesOf(x), shape, dims.empty() ? Ints{0, 1, 2} : dims,
                                          test.formula);
          EXPECT_LE(relativeError(valuesOf(out), expected), toleranceOf(out.asTensor()->dtype()));
          EXPECT_EQ(out.asTensor()->rank(), dims.empty() ? 0 : 3 - dims.size());
        }
      }
    }
  }
}

/// argmax and argmin give the first of equal elements, of all or along one dimension.
TEST(ReductionKernels, ArgExtrema) {
  Ints shape = {3, 4, 5};
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::I64, DType::U8, DType::Bool}) {
    for (Layout layout : allLayouts) {
      Tensor x = numbers(dtype == DType::U8 ? DType::Bool : dtype, shape, 6, layout);
      if (dtype == DType::U8)
        x = withLayout(tensorOf(dtype, shape, valuesOf(x)), layout);
      for (auto [op, formula] : {std::pair<const char *, Reduce>{"argmax", firstGreatest},
                                 std::pair<const char *, Reduce>{"argmin", firstLeast}}) {
        SCOPED_TRACE(describe(op, dtype, layout, {}));
        EXPECT_EQ(valuesOf(runOp(op, {x})[0]),
                  reduceByFormula(valuesOf(x), shape, {0, 1, 2}, formula));
        for (int64_t dim : {0, 1, 2})
          EXPECT_EQ(valuesOf(runOp(op, {x}, {{"dim", dim - 3}})[0]),
                    reduceByFormula(valuesOf(x), shape, {dim}, formula));
      }
    }
  }
  Tensor numbers = tensorOf(DType::F32, {4}, {1, nan, inf, nan});
  EXPECT_EQ(valuesOf(runOp("argmax", {numbers})[0]), List{1}); // a nan comes first
  EXPECT_EQ(valuesOf(runOp("argmin", {numbers})[0]), List{1});
}

/// With keepdim a reduced dimension stays, with the same elements in the result.
TEST(ReductionKernels, KeepdimKeepsElements) {
  Tensor x = numbers(DType::F32, {3, 4, 5}, 7, Layout::Transposed);
  for (const char *op : {"sum", "amax", "all"}) {
    Value plain = runOp(op, {x}, {{"dims", Ints{1}}})[0];
    Value kept = runOp(op, {x}, {{"dims", Ints{-2}}, {"keepdim", true}})[0];
    EXPECT_EQ(kept.asTensor()->shape(), llvm::ArrayRef<int64_t>({3, 1, 5}));
    EXPECT_EQ(valuesOf(kept), valuesOf(plain));
  }
  EXPECT_EQ(valuesOf(runOp("argmax", {x}, {{"dim", 0}, {"keepdim", true}})[0]),
            valuesOf(runOp("argmax", {x}, {{"dim", 0}})[0]));
}

/// A 0-d tensor has one element; its one dimension may be named.
TEST(ReductionKernels, ScalarsHaveOneElement) {
  Tensor x = tensorOf(DType::F32, {}, {-2});
  EXPECT_EQ(valuesOf(runOp("sum", {x})[0]), List{-2});
  EXPECT_EQ(valuesOf(runOp("sum", {x}, {{"dims", Ints{-1}}})[0]), List{-2});
  EXPECT_EQ(valuesOf(runOp("norm", {x})[0]), List{2});
  EXPECT_EQ(valuesOf(runOp("argmax", {x}, {{"dim", 0}})[0]), List{0});
  EXPECT_EQ(valuesOf(runOp("cumsum", {x}, {{"dim", 0}})[0]), List{-2});
  EXPECT_TRUE(std::isnan(valuesOf(runOp("var", {x})[0])[0]));
}

/// Of no elements: sum 0, product 1, mean nan, any false, all true, log of a sum -inf; an extremum
/// there is not.
TEST(ReductionKernels, OfNoElements) {
  Tensor none = tensorOf(DType::F32, {0, 2}, {});
  auto run = [&](const char *op, Ints dims) {
    return valuesOf(runOp(op, {none}, {{"dims", dims}})[0]);
  };
  EXPECT_EQ(run("sum", {0}), (List{0, 0}));
  EXPECT_EQ(run("prod", {0}), (List{1, 1}));
  EXPECT_EQ(run("norm", {}), List{0});
  EXPECT_EQ(run("any", {}), List{0});
  EXPECT_EQ(run("all", {0}), (List{1, 1}));
  EXPECT_EQ(run("logsumexp", {}), List{-inf});
  EXPECT_TRUE(std::isnan(run("mean", {})[0]));
  EXPECT_TRUE(std::isnan(run("var", {})[0]));
  EXPECT_EQ(run("amax", {1}), List()); // no results, either
  EXPECT_EQ(run("sum", {1}), List());
  EXPECT_EQ(valuesOf(runOp("cumsum", {none}, {{"dim", 0}})[0]), List());

  OpRegistry registry;
  cantFail(registerCoreOps(registry));
  for (const char *op : {"amax", "argmin"}) {
    TraceBuilder builder(registry);
    builder.returnValues({builder.op(op, {builder.argument("x", TensorType(DType::F32, {0, 2}))})});
    OpId id = builder.trace().ops().front();
    llvm::Expected<Trace> trace = std::move(builder).finish();
    ASSERT_TRUE(bool(trace));
    ClaimAnswer answer = HostExecutor().claim(*trace, id);
    EXPECT_FALSE(answer.accepted);
    EXPECT_THAT(answer.why, testing::HasSubstr("at least one element"));
  }
}

/// Sums of integers wrap and are exact; those of bool count; `dtype` is cast to before adding.
TEST(ReductionKernels, SumsOfIntegers) {
  Tensor big = tensorOf(DType::I64, {3}, {0, 0, 0});
  int64_t *data = big.ref().as<int64_t>();
  data[0] = std::numeric_limits<int64_t>::max();
  data[1] = 1;
  data[2] = 2;
  EXPECT_EQ(*runOp("sum", {big})[0].asTensor()->ref().as<int64_t>(),
            std::numeric_limits<int64_t>::min() + 2);
  Value count = runOp("sum", {tensorOf(DType::Bool, {4}, {1, 0, 1, 1})})[0];
  EXPECT_EQ(count.asTensor()->dtype(), DType::I64);
  EXPECT_EQ(valuesOf(count), List{3});
  Tensor halves = tensorOf(DType::F32, {3}, {0.5, 1.5, 2.5});
  EXPECT_EQ(valuesOf(runOp("sum", {halves}, {{"dtype", DType::I64}})[0]), List{3});
  EXPECT_EQ(valuesOf(runOp("sum", {tensorOf(DType::U8, {2}, {200, 100})})[0]), List{300});
}

/// Many elements lose no more than the last digit, where adding one after the other in f32 would.
TEST(ReductionKernels, LongSumsAreAccurate) {
  size_t n = 100000;
  for (DType dtype : {DType::F32, DType::F64}) {
    List values = randomValues(n, 8);
    for (double &value : values)
      value += 100;
    Tensor x = tensorOf(dtype, {int64_t(n)}, values);
    long double exact = 0;
    for (double value : valuesOf(x))
      exact += value;
    double tolerance = dtype == DType::F32 ? 1e-7 : 1e-15;
    EXPECT_LE(relativeError(valuesOf(runOp("sum", {x})[0]), {double(exact)}), tolerance);
    EXPECT_LE(relativeError(valuesOf(runOp("mean", {x})[0]), {double(exact / n)}), tolerance);
  }
  Tensor ones = withLayout(tensorOf(DType::BF16, {2, 1000}, List(2000, 1)), Layout::Expanded);
  EXPECT_EQ(valuesOf(runOp("sum", {ones})[0]), List{2000});
}

/// A nan reaches every reduction of numbers; infinities do not become nan in logsumexp.
TEST(ReductionKernels, SpecialNumbers) {
  for (DType dtype : floats) {
    Tensor x = tensorOf(dtype, {3}, {1, nan, 2});
    for (const char *op : {"sum", "prod", "mean", "var", "norm", "logsumexp", "amax", "amin"})
      EXPECT_TRUE(std::isnan(valuesOf(runOp(op, {x})[0])[0])) << op;
    for (double p : {0.5, 1.0, inf, -inf})
      EXPECT_TRUE(std::isnan(valuesOf(runOp("norm", {x}, {{"p", p}})[0])[0])) << p;
    EXPECT_EQ(valuesOf(runOp("any", {x})[0]), List{1});
    auto logsumexp = [&](List values) {
      return valuesOf(runOp("logsumexp", {tensorOf(dtype, {2}, values)})[0])[0];
    };
    EXPECT_EQ(logsumexp({-inf, -inf}), -inf);
    EXPECT_EQ(logsumexp({inf, 0}), inf);
    EXPECT_EQ(logsumexp({1000, -1000}), 1000);
  }
}

/// Results of other strides get the same elements.
TEST(ReductionKernels, ResultsOfAnyStrides) {
  Tensor x = numbers(DType::F32, {3, 4, 5}, 9, Layout::Contiguous);
  Type columns = TensorType(DType::F32, {3, 4}, {1, 3}, Device::host());
  EXPECT_EQ(valuesOf(runOp("sum", {x}, {{"dims", Ints{2}}}, nullptr, {columns})[0]),
            valuesOf(runOp("sum", {x}, {{"dims", Ints{2}}})[0]));
}

/// cumsum adds along one dimension, in every layout, with integers in i64.
TEST(ReductionKernels, Cumsum) {
  Ints shape = {3, 4, 5};
  for (DType dtype :
       {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I32, DType::Bool}) {
    for (Layout layout : allLayouts) {
      Tensor x = numbers(dtype, shape, 11, layout);
      for (int64_t dim : {0, 1, 2}) {
        SCOPED_TRACE(describe("cumsum", dtype, layout, {dim}));
        List expected = valuesOf(x);
        size_t stride = dim == 0 ? 20 : dim == 1 ? 5 : 1;
        for (size_t i = 0; i < expected.size(); ++i)
          if (i / stride % shape[dim] != 0)
            expected[i] += expected[i - stride];
        Value out = runOp("cumsum", {x}, {{"dim", dim}})[0];
        EXPECT_LE(relativeError(valuesOf(out), expected), toleranceOf(out.asTensor()->dtype()));
      }
    }
  }
  List counted =
      valuesOf(runOp("cumsum", {tensorOf(DType::F32, {1200}, List(1200, 1))}, {{"dim", -1}})[0]);
  EXPECT_EQ(counted[599], 600);
  EXPECT_EQ(counted[1199], 1200);
}

TEST(ReductionKernels, EveryOpHasAKernel) {
  HostExecutor executor;
  for (const char *op : {"sum", "prod", "mean", "var", "norm", "logsumexp", "amax", "amin", "any",
                         "all", "argmax", "argmin", "cumsum"})
    EXPECT_NE(executor.find(op), nullptr) << op;
}

} // namespace
