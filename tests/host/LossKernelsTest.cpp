//===- LossKernelsTest.cpp - Losses on the host ---------------------------===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

using Shape = std::vector<int64_t>;
using Attributes = llvm::SmallVector<AttributeInit, 4>;
constexpr const char *reductions[] = {"none", "mean", "sum"};

/// Scores and targets: [C], [N, C] or [N, C, d]. Target -1 is the ignored class.
struct Case {
  Shape scores;
  Shape target;
  std::vector<double> classes;
};
const Case cases[] = {{{4}, {}, {2}},
                      {{3, 4}, {3}, {1, -1, 3}},
                      {{2, 3, 2}, {2, 2}, {0, 2, -1, 1}},
                      {{1, 1}, {1}, {0}},
                      {{0, 3}, {0}, {}}};

struct Sizes {
  int64_t classes, inner = 1;
  explicit Sizes(const Shape &scores) : classes(scores[scores.size() > 1 ? 1 : 0]) {
    for (size_t d = 2; d < scores.size(); ++d)
      inner *= scores[d];
  }
};

std::vector<double> logSoftmax(const Arg &x) {
  Sizes sizes(x.shape);
  std::vector<double> out;
  for (int64_t i = 0; i < int64_t(x.values.size()); ++i) {
    int64_t row = sizes.classes * sizes.inner, first = i / row * row + i % sizes.inner;
    double sum = 0;
    for (int64_t k = 0; k < sizes.classes; ++k)
      sum += std::exp(x.values[first + k * sizes.inner]);
    out.push_back(x.values[i] - std::log(sum));
  }
  return out;
}

std::vector<double> reduce(std::vector<double> losses, llvm::StringRef reduction, double divisor) {
  if (reduction == "none")
    return losses;
  double sum = 0;
  for (double loss : losses)
    sum += loss;
  return {reduction == "mean" ? sum / divisor : sum};
}

/// Of log-probabilities and classes; the second result is the sum of the weights. As PyTorch
/// writes label smoothing: (1 - s) * nll + s / C * (minus the weighted sum over all classes), each
/// reduced by itself.
std::vector<std::vector<double>> naiveLoss(const Arg &x, const std::vector<double> &logp,
                                           const Arg &target, const std::vector<double> &weights,
                                           llvm::StringRef reduction, double smoothing) {
  Sizes sizes(x.shape);
  std::vector<double> nll, smooth;
  double divisor = 0;
  for (size_t t = 0; t < target.values.size(); ++t) {
    int64_t first = t / sizes.inner * sizes.classes * sizes.inner + t % sizes.inner;
    int64_t k = target.values[t];
    nll.push_back(k < 0 ? 0 : -weights[k] * logp[first + k * sizes.inner]);
    smooth.push_back(0);
    for (int64_t c = 0; k >= 0 && c < sizes.classes; ++c)
      smooth.back() -= weights[c] * logp[first + c * sizes.inner];
    divisor += k < 0 ? 0 : weights[k];
  }
  std::vector<double> loss = reduce(nll, reduction, divisor),
                      added = reduce(smooth, reduction, divisor);
  for (size_t i = 0; i < loss.size(); ++i)
    loss[i] = (1 - smoothing) * loss[i] + smoothing / double(sizes.classes) * added[i];
  return {loss, {divisor}};
}

Arg targetOf(const Case &test) {
  return {test.target, test.classes, ArgKind::Index};
}
std::vector<double> positive(std::vector<double> values) {
  for (double &x : values)
    x = std::abs(x) + 0.1;
  return values;
}
/// An incoming gradient for the losses of a case.
Arg incoming(const Shape &unreduced, llvm::StringRef reduction) {
  return randomArg(reduction == "none" ? unreduced : Shape(), 7);
}

// nll_loss equals the formula for every reduction, with and without weights, and its backward is
// the gradient.
TEST(LossKernels, NLLLoss) {
  for (const Case &test : cases) {
    Sizes sizes(test.scores);
    Arg logp = randomArg(test.scores, 1), target = targetOf(test);
    Arg weights{{sizes.classes}, positive(randomValues(sizes.classes, 2))};
    for (const char *reduction : reductions)
      for (bool weighted : {false, true}) {
        Attributes attributes{{"reduction", reduction}, {"ignore_index", -1}};
        std::vector<Arg> args{logp, target, weighted ? weights : noArg};
        auto actual = resultsOf("nll_loss", args, attributes);
        auto expected = naiveLoss(logp, logp.values, target,
                                  weighted ? weights.values : std::vector<double>(sizes.classes, 1),
                                  reduction, 0);
        EXPECT_LE(relativeError(actual[0], expected[0]), 1e-14);
        EXPECT_LE(relativeError(actual[1], expected[1]), 1e-14);
        expectSameInAllDTypesAndLayouts("nll_loss", args, attributes);
        expectSameInAllResultLayouts("nll_loss", args, attributes);

        Arg grad = incoming(test.target, reduction);
        std::vector<Arg> operands{grad, args[0], args[1], args[2], {{}, actual[1]}};
        EXPECT_LE(relativeError(resultsOf("nll_loss_backward", operands, attributes)[0],
                                numericGradient("nll_loss", args, 0, grad.values, attributes)),
                  numericTolerance);
        expectSameInAllDTypesAndLayouts("nll_loss_backward", operands, attributes);
        expectSameInAllResultLayouts("nll_loss_backward", operands, attributes);
      }
  }
}

// cross_entropy of classes equals the formula for every reduction, weights and smoothing, and its
// backward is the gradient.
TEST(LossKernels, CrossEntropyOfClasses) {
  for (const Case &test : cases) {
    Sizes sizes(test.scores);
    Arg logits = randomArg(test.scores, 1), target = targetOf(test);
    Arg weights{{sizes.classes}, positive(randomValues(sizes.classes, 2))};
    for (const char *reduction : reductions)
      for (bool weighted : {false, true})
        for (double smoothing : {0.0, 0.3, 1.0}) {
          SCOPED_TRACE(testing::Message() << reduction << weighted << smoothing);
          Attributes attributes{
              {"reduction", reduction}, {"ignore_index", -1}, {"label_smoothing", smoothing}};
          std::vector<Arg> args{logits, target, weighted ? weights : noArg};
          auto expected =
              naiveLoss(logits, logSoftmax(logits), target,
                        weighted ? weights.values : std::vector<double>(sizes.classes, 1),
                        reduction, smoothing);
          expectNear(resultsOf("cross_entropy", args, attributes)[0], expected[0], 1e-13);

          Arg grad = incoming(test.target, reduction);
          std::vector<Arg> operands{grad, args[0], args[1], args[2]};
          expectNear(resultsOf("cross_entropy_backward", operands, attributes)[0],
                     numericGradient("cross_entropy", args, 0, grad.values, attributes),
                     numericTolerance);
        }
    Attributes attributes{{"ignore_index", -1}, {"label_smoothing", 0.3}};
    Arg grad = incoming(test.target, "mean");
    expectSameInAllDTypesAndLayouts("cross_entropy", {logits, target, weights}, attributes);
    expectSameInAllDTypesAndLayouts("cross_entropy_backward", {grad, logits, target, weights},
                                    attributes);
    expectSameInAllResultLayouts("cross_entropy_backward", {grad, logits, target, weights},
                                 attributes);
  }
}

// cross_entropy of probabilities weighs every class, and divides the mean by the number of targets.
TEST(LossKernels, CrossEntropyOfProbabilities) {
  for (Shape shape : {Shape{4}, Shape{3, 4}, Shape{2, 3, 2}}) {
    Sizes sizes(shape);
    Arg logits = randomArg(shape, 1), target{shape, {}};
    target.values = positive(randomValues(logits.values.size(), 3));
    Arg weights{{sizes.classes}, positive(randomValues(sizes.classes, 2))};
    std::vector<double> logp = logSoftmax(logits);
    Shape unreduced = shape;
    unreduced.erase(unreduced.begin() + (shape.size() > 1 ? 1 : 0));
    int64_t count = logp.size() / sizes.classes;
    for (const char *reduction : reductions)
      for (double smoothing : {0.0, 0.3}) {
        std::vector<double> losses(count, 0);
        for (int64_t t = 0; t < count; ++t)
          for (int64_t k = 0; k < sizes.classes; ++k) {
            int64_t i = (t / sizes.inner * sizes.classes + k) * sizes.inner + t % sizes.inner;
            losses[t] -= weights.values[k] * logp[i] *
                         (target.values[i] * (1 - smoothing) + smoothing / double(sizes.classes));
          }
        Attributes attributes{{"reduction", reduction}, {"label_smoothing", smoothing}};
        std::vector<Arg> args{logits, target, weights};
        EXPECT_LE(relativeError(resultsOf("cross_entropy", args, attributes)[0],
                                reduce(losses, reduction, double(count))),
                  1e-14);
        Arg grad = incoming(unreduced, reduction);
        EXPECT_LE(relativeError(resultsOf("cross_entropy_backward", {grad, logits, target, weights},
                                          attributes)[0],
                                numericGradient("cross_entropy", args, 0, grad.values, attributes)),
                  numericTolerance);
        expectSameInAllDTypesAndLayouts("cross_entropy", args, attributes);
      }
  }
}

// A class that does not exist gives nan, not a wild read, and no gradient; its neighbours keep
// their losses.
TEST(LossKernels, ClassesOutOfRange) {
  Arg logits = randomArg({3, 2}, 1), target{{3}, {1, 2, -7}, ArgKind::Index};
  Attributes none{{"reduction", "none"}};
  for (const char *op : {"nll_loss", "cross_entropy"}) {
    std::vector<double> losses = resultsOf(op, {logits, target}, none)[0];
    EXPECT_TRUE(std::isfinite(losses[0]));
    EXPECT_TRUE(std::isnan(losses[1]) && std::isnan(losses[2]));
    EXPECT_TRUE(std::isnan(resultsOf(op, {logits, target})[0][0]));
  }
  Arg grad{{3}, {1, 1, 1}};
  std::vector<double> gradient =
      resultsOf("cross_entropy_backward", {grad, logits, target}, none)[0];
  EXPECT_NE(gradient[0], 0);
  EXPECT_EQ(std::vector<double>(gradient.begin() + 2, gradient.end()),
            (std::vector<double>{0, 0, 0, 0}));
}

// Where everything is ignored the mean is nan and its gradient 0, as in PyTorch; a sum is 0.
TEST(LossKernels, EverythingIgnored) {
  Arg logits = randomArg({2, 3}, 1), target{{2}, {-100, -100}, ArgKind::Index};
  EXPECT_TRUE(std::isnan(resultsOf("cross_entropy", {logits, target})[0][0]));
  EXPECT_EQ(resultsOf("cross_entropy", {logits, target}, {{"reduction", "sum"}})[0][0], 0);
  EXPECT_EQ(resultsOf("cross_entropy_backward", {{{}, {1}}, logits, target})[0],
            std::vector<double>(6, 0));
}

// A class that cannot be, with a logit of -inf, costs nothing unless it is the target.
TEST(LossKernels, ImpossibleClasses) {
  double infinity = std::numeric_limits<double>::infinity();
  Arg logits{{2, 2}, {0, -infinity, 0, -infinity}}, target{{2}, {0, 1}, ArgKind::Index};
  EXPECT_EQ(resultsOf("cross_entropy", {logits, target}, {{"reduction", "none"}})[0],
            (std::vector<double>{0, infinity}));
}

// mse_loss equals the formula, its operands broadcast, and its backward is the gradient.
TEST(LossKernels, MSELoss) {
  for (Shape shape : {Shape{3, 4}, Shape{}, Shape{1}, Shape{2, 3, 2}})
    for (const char *reduction : reductions) {
      Attributes attributes{{"reduction", reduction}};
      Arg x = randomArg(shape, 1), target = randomArg(shape, 2), grad = incoming(shape, reduction);
      std::vector<double> losses;
      for (size_t i = 0; i < x.values.size(); ++i)
        losses.push_back(std::pow(x.values[i] - target.values[i], 2));
      EXPECT_LE(relativeError(resultsOf("mse_loss", {x, target}, attributes)[0],
                              reduce(losses, reduction, double(losses.size()))),
                1e-14);
      EXPECT_LE(relativeError(resultsOf("mse_loss_backward", {grad, x, target}, attributes)[0],
                              numericGradient("mse_loss", {x, target}, 0, grad.values, attributes)),
                numericTolerance);
      expectSameInAllDTypesAndLayouts("mse_loss", {x, target}, attributes);
      expectSameInAllDTypesAndLayouts("mse_loss_backward", {grad, x, target}, attributes);
      expectSameInAllResultLayouts("mse_loss", {x, target}, attributes);
      expectSameInAllResultLayouts("mse_loss_backward", {grad, x, target}, attributes);
    }
  EXPECT_EQ(resultsOf("mse_loss", {{{2}, {1, 2}}, {{2, 1}, {1, 3}}}, {{"reduction", "none"}})[0],
            (std::vector<double>{0, 1, 4, 1}));
  EXPECT_TRUE(std::isnan(resultsOf("mse_loss", {{{0}, {}}, {{0}, {}}})[0][0]));
  EXPECT_EQ(resultsOf("mse_loss", {{{0}, {}}, {{0}, {}}}, {{"reduction", "sum"}})[0][0], 0);
}

// 8-bit floats are declined, bf16 is not.
TEST(LossKernels, DeclinesDTypes) {
  auto why = [](DType dtype) { return whyDeclined("mse_loss", {{dtype, {2}}, {dtype, {2}}}); };
  EXPECT_EQ(why(DType::F8E4M3), "has no host kernel for dtype f8e4m3");
  EXPECT_EQ(why(DType::BF16), "");
}

} // namespace
