//===- CheckpointTest.cpp - Steps with checkpoints ------------------------===//

#include "CheckpointTesting.h"

namespace rondo {
INSTANTIATE_TEST_SUITE_P(, CheckpointTest, testing::Values(hostileHost()), suiteTargetName);
} // namespace rondo

using namespace rondo;

namespace {

/// A step in f64, whose masks are the same each time.
class CheckpointGradientTest : public CallTest {
protected:
  CheckpointSteps stepsOf(bool tanhGELU) {
    std::string text =
        CheckpointTrace(smallCheckpointShape(DType::F64, tanhGELU, /*checkpoints=*/true)).text();
    return {compileText(text, {}, checkpointPipeline), device, *stream};
  }
  static void seed(CheckpointSteps &steps, Stream &stream, uint64_t seed) {
    cantFail(steps.program().generators()->set(stream, "default", {seed, 0}));
  }

  /// Σ result · gradient
  double loss(CheckpointSteps &steps, uint64_t masks) {
    seed(steps, *stream, masks);
    SavedState saved;
    std::vector<double> result = doublesOf(steps.forward(saved)),
                        gradient = doublesOf(*steps.arguments(Side::Backward)[0].asTensor());
    return std::inner_product(result.begin(), result.end(), gradient.begin(), 0.0);
  }

  /// The derivative of the loss by each element of argument `i`, from central differences.
  std::vector<double> differences(CheckpointSteps &steps, unsigned i, uint64_t masks) {
    constexpr double step = 1e-5;
    const Tensor &argument = *steps.arguments(Side::Forward)[i].asTensor();
    auto *elements = reinterpret_cast<double *>(argument.data());
    std::vector<double> derivatives;
    for (int64_t k = 0; k < argument.numElements(); ++k) {
      double kept = elements[k];
      elements[k] = kept + step;
      double above = loss(steps, masks);
      elements[k] = kept - step;
      derivatives.push_back((above - loss(steps, masks)) / (2 * step));
      elements[k] = kept;
    }
    return derivatives;
  }
};

double greatestDifference(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  double greatest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    greatest = std::max(greatest, std::abs(a[i] - b[i]));
  return greatest;
}

// The backward gives the derivatives, of the rows and of every parameter, for the masks that the
// forward drew, and for no others.
TEST_F(CheckpointGradientTest, IsDerivative) {
  for (bool tanhGELU : {false, true}) {
    SCOPED_TRACE(tanhGELU);
    CheckpointSteps steps = stepsOf(tanhGELU);
    seed(steps, *stream, 5);
    std::vector<Tensor> all = steps.step();
    size_t numArguments = steps.arguments(Side::Forward).size();
    ASSERT_EQ(all.size(), numArguments + 1);
    for (unsigned i = 0; i < numArguments; ++i) {
      std::vector<double> gradient = doublesOf(all[i + 1]), expected = differences(steps, i, 5);
      ASSERT_EQ(gradient.size(), expected.size());
      EXPECT_GT(greatestDifference(gradient, std::vector<double>(gradient.size())), 1e-3) << i;
      EXPECT_LT(greatestDifference(gradient, expected), 1e-8) << i;
    }
    EXPECT_GT(greatestDifference(doublesOf(all[1]), differences(steps, 0, 6)), 1e-3)
        << "other masks";
  }
}

} // namespace
