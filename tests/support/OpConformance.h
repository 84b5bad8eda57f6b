//===- OpConformance.h - What every executor must compute -------*- C++ -*-===//
//
// One suite of tests for the kernels of all ops. A test of a device describes how to make it and
// who executes ops on it, and instantiates `OpConformance`, one test for each op and dtype:
//
//   INSTANTIATE_TEST_SUITE_P(Host, OpConformance, testing::ValuesIn(opConformanceTests(target)),
//                            opConformanceName);
//
// An op is run on operands of every layout and into results of every layout, also into the
// operands' memory where the kernel allows that, and compared with what the host executor gives for
// f64 copies of the same numbers: ‖a − b‖ / ‖b‖ is at most 1e-12 in f64, 1e-5 in f32, 2e-3 in f16,
// 1e-2 in bf16; integers and bool are equal. Results are poisoned before, and bytes between their
// elements stay as they were.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/RunOp.h"

#include <gtest/gtest.h>

namespace rondo {

struct OpCases;

/// How many of the layouts each dtype of an op is run in: a third is another one for each of three
/// dtypes, so that together they have all.
enum class Arrangements { All, Third };

/// Where `target` disagrees with the host: a line for each case and arrangement.
std::vector<std::string> findDisagreements(const OpTarget &target, const OpCases &cases,
                                           DType dtype,
                                           Arrangements arrangements = Arrangements::All);

struct OpConformanceTarget {
  /// Called once, by the first test. Without a device the tests are skipped.
  std::function<OpTarget()> create;
  /// Ops that it need not run: they are reported as skipped.
  std::vector<std::string> withoutKernel = {};
};

struct OpConformanceParam {
  std::shared_ptr<const OpConformanceTarget> target;
  const OpCases *cases;
  DType dtype;
};
/// A test for each op and dtype.
std::vector<OpConformanceParam> opConformanceTests(OpConformanceTarget target);
/// `softmax_f32`
std::string opConformanceName(const testing::TestParamInfo<OpConformanceParam> &info);
void PrintTo(const OpConformanceParam &param, std::ostream *os);

class OpConformance : public testing::TestWithParam<OpConformanceParam> {};

} // namespace rondo
