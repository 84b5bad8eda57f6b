//===- EveryDeviceTesting.h - Suites that run on every device ---*- C++ -*-===//
//
// What a program must do does not depend on its device. A suite about that is in a header, as a
// class derived from EveryDeviceTest with its TEST_Ps, and is instantiated for a hostile host in
// tests/runtime and for a GPU in tests/cuda:
//
//   INSTANTIATE_TEST_SUITE_P(, CasesTest, testing::Values(hostileHost()), suiteTargetName);
//
// Its tests do not touch the memory of tensors: they use what CallFixture has for that.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CallTesting.h"

namespace rondo {

/// A device and who executes ops on it, for one test.
struct OwnedTarget {
  DeviceRef device; ///< null where there is none: then the test is skipped
  std::vector<std::unique_ptr<Executor>> executors = {}; ///< in the order in which they are asked
};

/// Where a suite runs.
struct SuiteTarget {
  std::string name; ///< of the instantiation: letters and digits
  std::function<OwnedTarget()> create;
};

inline void PrintTo(const SuiteTarget &target, std::ostream *os) {
  *os << target.name;
}
inline std::string suiteTargetName(const testing::TestParamInfo<SuiteTarget> &info) {
  return info.param.name;
}

/// A host device that runs nodes in random order, and whose memory is nan before it is written and
/// after it is freed.
inline SuiteTarget hostileHost() {
  return {"host", [] {
            OwnedTarget target{createHostDevice({.randomOrderSeed = 3, .poison = true})};
            target.executors.push_back(std::make_unique<HostExecutor>());
            return target;
          }};
}

/// Compiles and calls programs on the device of its parameter.
class EveryDeviceTest : public CallFixture, public testing::WithParamInterface<SuiteTarget> {
protected:
  void SetUp() final {
    OwnedTarget created = GetParam().create();
    if (!created.device)
      GTEST_SKIP() << "no device";
    executors_ = std::move(created.executors);
    RunTarget where{std::move(created.device), {}};
    for (const std::unique_ptr<Executor> &executor : executors_)
      where.executors.push_back(executor.get());
    useTarget(std::move(where));
    prepare();
  }
  /// Makes what all tests of a suite use, on the device.
  virtual void prepare() {}

  static ProgramOptions poisoned() {
    ProgramOptions options = steadyOptions();
    options.poison = true;
    return options;
  }

  /// Elements that count up from `first`.
  Tensor iota(float first, llvm::ArrayRef<int64_t> shape) {
    std::vector<float> values(
        std::accumulate(shape.begin(), shape.end(), size_t(1), std::multiplies<>()));
    std::iota(values.begin(), values.end(), first);
    return tensorOf(device, values, shape);
  }

  /// Bytes that are allocated when all that was freed is.
  uint64_t bytesInUse() {
    device->trim();
    return device->memoryUse().bytes;
  }

private:
  std::vector<std::unique_ptr<Executor>> executors_;
};

} // namespace rondo
