//===- RandomKernels.cpp - Random numbers and their generators ------------===//
//
// Numbers come from their position (rondo/executors/Philox.h), so every kernel is a loop over the
// elements of its result in row-major order.
//
//===----------------------------------------------------------------------===//

#include "Pointwise.h"

#include "rondo/executors/Philox.h"

#include <cmath>

using namespace rondo;
using namespace rondo::host;

namespace {
/// The numbers of one op: those of its state from its offset on. Remembers the block it read last.
class Draws {
public:
  Draws(const RNGState &state, uint64_t offset)
      : seed_(state.seed), first_(state.offset + offset), position_(first_),
        block_(philox::blockOf(seed_, position_)) {}

  uint64_t seed() const { return seed_; }
  uint64_t position(int64_t i) const { return first_ + uint64_t(i); }
  uint32_t word(int64_t i) {
    uint64_t n = position(i);
    if (n >> 2 != position_ >> 2)
      block_ = philox::blockOf(seed_, n);
    position_ = n;
    return block_.words[n & 3];
  }

private:
  uint64_t seed_, first_, position_;
  philox::Block block_;
};
} // namespace

/// Calls `fn(i, offset)` for element i of `out`, in row-major order, and where it lies.
template <typename Fn> static void forEachElement(const TensorRef &out, Fn &&fn) {
  int64_t i = 0;
  forEachOffset<1>(out.shape, {out.strides},
                   [&](std::array<int64_t, 1> offsets) { fn(i++, offsets[0]); });
}

/// Sets element i of `out` to `draw(i)`, converted.
template <typename Draw> static void drawEach(const TensorRef &out, Draw &&draw) {
  dispatch(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    forEachElement(out,
                   [&](int64_t i, int64_t offset) { out.as<T>()[offset] = convert<T>(draw(i)); });
  });
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

static llvm::Expected<HostKernelFn> makeDropout(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  double p = op.numberAttribute("p");
  uint64_t offset = op.intAttribute("offset");
  return HostKernelFn([p, offset](const HostArgs &args) {
    const TensorRef &x = args.operand(0), &out = args.result(0), &mask = args.result(1);
    Draws draws(args.rng(1), offset);
    uint32_t dropped = philox::threshold(p);
    auto isKept = [&](int64_t i) { return !philox::happens(draws.word(i), dropped); };
    dispatchFloat(x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      Compute<T> scale = Compute<T>(1 / (1 - p));
      int64_t i = 0;
      forEachOffset<2>(x.shape, {x.strides, out.strides}, [&](std::array<int64_t, 2> offsets) {
        Compute<T> value = Compute<T>(x.as<T>()[offsets[0]]);
        out.as<T>()[offsets[1]] = T(isKept(i++) ? value * scale : Compute<T>(0));
      });
    });
    drawEach(mask, isKept); // it may lie where x does
  });
}

static void addDropoutBackward(HostExecutor &executor) {
  addPointwise(executor, {.op = "dropout_backward",
                          .rule = ComputeRule::First,
                          .rows = onFloats<3>(
                              [](auto grad, auto mask, auto scale) { return grad * mask * scale; }),
                          .parameters = {"scale"}});
}

//===----------------------------------------------------------------------===//
// Distributions
//===----------------------------------------------------------------------===//

/// Scaled in double and rounded once; a number that is rounded up to `high` becomes `low`.
static llvm::Expected<HostKernelFn> makeUniform(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  double low = op.numberAttribute("low", 0), high = op.numberAttribute("high", 1);
  uint64_t offset = op.intAttribute("offset");
  return HostKernelFn([low, high, offset](const HostArgs &args) {
    Draws draws(args.rng(0), offset);
    unsigned bits = uniformBits(args.result().dtype);
    dispatchFloat(args.result().dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      drawEach(args.result(), [&](int64_t i) {
        double u = philox::uniform(draws.word(i), bits);
        T value = convert<T>(low + u * (high - low));
        return convert<double>(value) < high ? value : convert<T>(low);
      });
    });
  });
}

static llvm::Expected<HostKernelFn> makeNormal(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  double mean = op.numberAttribute("mean", 0), deviation = op.numberAttribute("std", 1);
  uint64_t offset = op.intAttribute("offset");
  return HostKernelFn([mean, deviation, offset](const HostArgs &args) {
    Draws draws(args.rng(0), offset);
    drawEach(args.result(), [&](int64_t i) {
      return mean + deviation * philox::normal(draws.seed(), draws.position(i));
    });
  });
}

static llvm::Expected<HostKernelFn> makeRandint(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  int64_t low = op.intAttribute("low");
  uint64_t count = uint64_t(op.intAttribute("high")) - uint64_t(low);
  uint64_t offset = op.intAttribute("offset");
  return HostKernelFn([low, count, offset](const HostArgs &args) {
    Draws draws(args.rng(0), offset);
    drawEach(args.result(), [&](int64_t i) {
      return philox::integer(draws.seed(), draws.position(i), low, count);
    });
  });
}

static llvm::Expected<HostKernelFn> makeBernoulli(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  uint64_t offset = op.intAttribute("offset");
  return HostKernelFn([offset](const HostArgs &args) {
    Draws draws(args.rng(1), offset);
    std::vector<double> p = toDense<double>(args.operand(0));
    drawEach(args.result(),
             [&](int64_t i) { return philox::happens(draws.word(i), philox::threshold(p[i])); });
  });
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// The first index at which the running sum of the weights exceeds `u` of their total. With no
/// weight left, the first index that is not `taken`.
static int64_t choose(llvm::ArrayRef<double> weights, llvm::ArrayRef<bool> taken, double u) {
  double total = 0, running = 0;
  for (double weight : weights)
    total += weight;
  int64_t last = -1;
  for (size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] > 0)
      last = k;
    running += weights[k];
    if (running > u * total)
      return k;
  }
  if (last >= 0) // u * total was rounded up
    return last;
  return std::find(taken.begin(), taken.end(), false) - taken.begin();
}

/// Draw j of row r is number r * n + j. Without replacement a category that was drawn loses its
/// weight. Weights that are negative or not finite count as 0.
static llvm::Expected<HostKernelFn> makeMultinomial(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  const TensorType &w = *op.tensor(0);
  if (w.shape.back().isConstant(0) && !op.results()[0]->asTensor()->numElements().isConstant(0))
    return makeError("expects at least one category to choose, got " + op.operand(0)->str());
  bool replacement = op.boolAttribute("replacement");
  uint64_t offset = op.intAttribute("offset");
  return HostKernelFn([replacement, offset](const HostArgs &args) {
    Draws draws(args.rng(1), offset);
    std::vector<double> dense = toDense<double>(args.operand(0));
    for (double &weight : dense)
      weight = std::isfinite(weight) && weight > 0 ? weight : 0;
    size_t categories = args.operand(0).shape.back();
    int64_t n = args.result().shape.back();
    llvm::MutableArrayRef<double> weights;
    llvm::SmallVector<bool, 16> taken;
    drawEach(args.result(), [&](int64_t i) {
      if (i % n == 0) {
        weights = llvm::MutableArrayRef<double>(dense).slice(i / n * categories, categories);
        taken.assign(categories, false);
      }
      int64_t chosen = choose(weights, taken, philox::uniform(draws.word(i), 32));
      if (!replacement) {
        weights[chosen] = 0;
        taken[chosen] = true;
      }
      return chosen;
    });
  });
}

//===----------------------------------------------------------------------===//
// Generators
//===----------------------------------------------------------------------===//

static llvm::Expected<HostKernelFn> makeGeneratorRead(const OpContext &) {
  return HostKernelFn([](const HostArgs &args) { args.rngResult() = args.generator(); });
}

static llvm::Expected<HostKernelFn> makeGeneratorAdvance(const OpContext &op) {
  return HostKernelFn([count = uint64_t(op.intAttribute("count"))](const HostArgs &args) {
    args.generator().offset += count;
  });
}

static llvm::Expected<HostKernelFn> makeGeneratorSeed(const OpContext &) {
  return HostKernelFn([](const HostArgs &args) {
    args.generator() = {uint64_t(args.scalar(0).i64), /*offset=*/0};
  });
}

void host::addRandomKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "dropout", .make = makeDropout, .isElementwise = true});
  addDropoutBackward(executor);
  addKernel(executor, {.op = "uniform", .make = makeUniform});
  addKernel(executor, {.op = "normal", .make = makeNormal});
  addKernel(executor, {.op = "randint", .make = makeRandint});
  addKernel(executor, {.op = "bernoulli", .make = makeBernoulli});
  addKernel(executor, {.op = "multinomial", .make = makeMultinomial});
  addKernel(executor, {.op = "generator_read", .make = makeGeneratorRead});
  addKernel(executor, {.op = "generator_advance", .make = makeGeneratorAdvance});
  addKernel(executor, {.op = "generator_seed", .make = makeGeneratorSeed});
}
