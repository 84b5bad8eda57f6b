//===- ReductionKernels.cpp - Reductions and running sums -----------------===//
//
// Floats are accumulated in double and rounded once, integers in int64 modulo 2^64.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"
#include "Reduction.h"

#include <cmath>

using namespace rondo;
using namespace rondo::host;

/// Runs `compute` on double or, where elements are `as` integers, on int64_t.
template <typename Compute>
static HostKernelFn reductionOfNumbers(const OpContext &op, DType as, Compute compute) {
  return [dims = ReducedDims::get(op), as, compute](const HostArgs &args) {
    if (isFloat(as))
      reduce<double>(dims, args.operand(0), as, args.result(), compute);
    else
      reduce<int64_t>(dims, args.operand(0), as, args.result(), compute);
  };
}
/// Runs `compute` on elements as double.
template <typename Compute>
static HostKernelFn reductionOfFloats(const OpContext &op, Compute compute) {
  return [dims = ReducedDims::get(op), compute](const HostArgs &args) {
    reduce<double>(dims, args.operand(0), DType::F64, args.result(), compute);
  };
}

static DType resultDType(const OpContext &op) {
  return op.results()[0]->asTensor()->dtype;
}

static constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

static llvm::Expected<HostKernelFn> makeSum(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return reductionOfNumbers(op, resultDType(op), [](const auto &elements, int64_t) {
    return elements.sum([](auto x) { return x; });
  });
}

static llvm::Expected<HostKernelFn> makeProd(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return reductionOfNumbers(op, resultDType(op),
                            []<typename C>(const ReducedElements<C> &elements, int64_t) {
                              C product = 1;
                              elements.forEach([&](C x) { product = wrapMul(product, x); });
                              return product;
                            });
}

static double meanOf(const ReducedElements<double> &elements, int64_t count) {
  return elements.sum([](double x) { return x; }) / double(count);
}

/// Elements are rounded to the result's dtype before they are added, as by a cast.
static llvm::Expected<HostKernelFn> makeMean(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([dims = ReducedDims::get(op), as = resultDType(op)](const HostArgs &args) {
    reduce<double>(dims, args.operand(0), as, args.result(), meanOf);
  });
}

/// nan where there are no more elements than `correction` and no deviation.
static llvm::Expected<HostKernelFn> makeVar(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  double correction = op.numberAttribute("correction", 1);
  return reductionOfFloats(
      op, [correction](const ReducedElements<double> &elements, int64_t count) {
        double mean = meanOf(elements, count);
        double squares = elements.sum([mean](double x) { return (x - mean) * (x - mean); });
        return squares / std::max(0.0, double(count) - correction);
      });
}

/// Norms of infinite p are the greatest and the least |x|; of p = 0 the number of non-zeros.
static double normOf(const ReducedElements<double> &elements, double p) {
  if (p == 0)
    return elements.sum([](double x) { return double(x != 0); });
  if (p == 1)
    return elements.sum([](double x) { return std::fabs(x); });
  if (p == 2)
    return std::sqrt(elements.sum([](double x) { return x * x; }));
  if (std::isinf(p)) {
    double extremum = p > 0 ? 0 : infinity;
    elements.forEach([&](double x) {
      double size = std::fabs(x);
      bool isNew = p > 0 ? size > extremum : size < extremum;
      if (isNew || std::isnan(x) || std::isnan(extremum))
        extremum = std::isnan(extremum) ? extremum : size;
    });
    return extremum;
  }
  return std::pow(elements.sum([p](double x) { return std::pow(std::fabs(x), p); }), 1 / p);
}

static llvm::Expected<HostKernelFn> makeNorm(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  double p = op.numberAttribute("p", 2);
  return reductionOfFloats(
      op, [p](const ReducedElements<double> &elements, int64_t) { return normOf(elements, p); });
}

/// Shifted by the greatest element, so that nothing overflows: log(sum exp(x - max)) + max.
static llvm::Expected<HostKernelFn> makeLogSumExp(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return reductionOfFloats(op, [](const ReducedElements<double> &elements, int64_t) {
    double max = -infinity;
    elements.forEach([&](double x) { max = std::max(max, x); });
    double shift = std::isfinite(max) ? max : 0;
    return std::log(elements.sum([shift](double x) { return std::exp(x - shift); })) + shift;
  });
}

//===----------------------------------------------------------------------===//
// Extrema and truth
//===----------------------------------------------------------------------===//

/// There must be elements to choose from wherever there is a result.
static llvm::Error checkExtremum(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  auto isZero = [](const Dim &size) { return size.isConstant(0); };
  if (llvm::any_of(op.tensor(0)->shape, isZero) &&
      llvm::none_of(op.results()[0]->asTensor()->shape, isZero))
    return makeError("expects at least one element to choose from, got " + op.operand(0)->str());
  return llvm::Error::success();
}

namespace {
/// The extremum of the elements seen, the first of equal ones; a nan comes before all numbers.
template <typename C> struct Extremum {
  bool isGreatest;
  C value = {};
  int64_t index = -1, seen = 0;

  void see(C x) {
    bool isBetter = isGreatest ? x > value : x < value;
    if (index < 0 || (value == value && (isBetter || x != x))) {
      value = x;
      index = seen;
    }
    ++seen;
  }
};
} // namespace

/// The value of the extremum, or its position among the elements. `x` is computed with in the type
/// of its own dtype, so that equal means equal.
template <bool wantsIndex>
static llvm::Expected<HostKernelFn> makeExtremum(const OpContext &op, bool isGreatest) {
  if (llvm::Error error = checkExtremum(op))
    return error;
  return reductionOfNumbers(op, op.tensor(0)->dtype,
                            [isGreatest]<typename C>(const ReducedElements<C> &elements, int64_t) {
                              Extremum<C> extremum{isGreatest};
                              elements.forEach([&](C x) { extremum.see(x); });
                              return wantsIndex ? C(extremum.index) : extremum.value;
                            });
}

static llvm::Expected<HostKernelFn> makeTruth(const OpContext &op, bool isAll) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([dims = ReducedDims::get(op), isAll](const HostArgs &args) {
    reduce<int64_t>(dims, args.operand(0), DType::Bool, args.result(),
                    [isAll](const ReducedElements<int64_t> &elements, int64_t count) {
                      int64_t numTrue = elements.sum([](int64_t x) { return x; });
                      return int64_t(isAll ? numTrue == count : numTrue != 0);
                    });
  });
}

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

template <typename C> static void cumsum(const TensorRef &x, const TensorRef &out, unsigned dim) {
  // The lines along `dim`: all of the tensor, with that dimension's size 1.
  llvm::SmallVector<int64_t, 5> lines(x.shape.begin(), x.shape.end());
  int64_t length = x.rank() == 0 ? 1 : x.shape[dim];
  int64_t stride = x.rank() == 0 ? 0 : x.strides[dim];
  int64_t outStride = x.rank() == 0 ? 0 : out.strides[dim];
  if (length == 0)
    return;
  if (x.rank() > 0)
    lines[dim] = 1;
  C buffer[rowCapacity], sums[rowCapacity];
  forEachOffset<2>(lines, {x.strides, out.strides}, [&](std::array<int64_t, 2> offsets) {
    C total = 0;
    for (int64_t begin = 0; begin < length; begin += rowCapacity) {
      int64_t n = std::min(rowCapacity, length - begin);
      const C *row =
          loadRow<C>(x.dtype, out.dtype, x.data, offsets[0] + begin * stride, stride, n, buffer);
      for (int64_t i = 0; i < n; ++i)
        sums[i] = total = wrapAdd(total, row[i]);
      storeRow<C>(sums, out.dtype, out.data, offsets[1] + begin * outStride, outStride, n);
    }
  });
}

static llvm::Expected<HostKernelFn> makeCumsum(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  unsigned rank = std::max(op.tensor(0)->rank(), 1U);
  int64_t dim = op.intAttribute("dim");
  return HostKernelFn([dim = unsigned(dim < 0 ? dim + rank : dim)](const HostArgs &args) {
    if (isFloat(args.result().dtype))
      cumsum<double>(args.operand(0), args.result(), dim);
    else
      cumsum<int64_t>(args.operand(0), args.result(), dim);
  });
}

void host::addReductionKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "sum", .make = makeSum});
  addKernel(executor, {.op = "prod", .make = makeProd});
  addKernel(executor, {.op = "mean", .make = makeMean});
  addKernel(executor, {.op = "var", .make = makeVar});
  addKernel(executor, {.op = "norm", .make = makeNorm});
  addKernel(executor, {.op = "logsumexp", .make = makeLogSumExp});
  addKernel(executor, {.op = "cumsum", .make = makeCumsum});
  for (bool isGreatest : {false, true}) {
    addKernel(executor,
              {.op = isGreatest ? "amax" : "amin", .make = [isGreatest](const OpContext &op) {
                 return makeExtremum</*wantsIndex=*/false>(op, isGreatest);
               }});
    addKernel(executor,
              {.op = isGreatest ? "argmax" : "argmin", .make = [isGreatest](const OpContext &op) {
                 return makeExtremum</*wantsIndex=*/true>(op, isGreatest);
               }});
  }
  for (bool isAll : {false, true})
    addKernel(executor, {.op = isAll ? "all" : "any",
                         .make = [isAll](const OpContext &op) { return makeTruth(op, isAll); }});
}
