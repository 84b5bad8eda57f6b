//===- CUDAProgramTesting.h - Programs on a GPU -----------------*- C++ -*-===//

#pragma once

#include "CUDATesting.h"

#include "runtime/EveryDeviceTesting.h"

#include "rondo/cuda/CUDAExecutors.h"

#include <cuda_runtime_api.h>

namespace rondo {

/// The executors of this build for GPUs, then the host's.
inline std::vector<std::unique_ptr<Executor>> createCUDATestExecutors() {
  std::vector<std::unique_ptr<Executor>> all = cantFail(createCUDAExecutors());
  all.push_back(std::make_unique<HostExecutor>());
  return all;
}

/// Owns them.
class CUDATestExecutors {
public:
  std::vector<const Executor *> list() const {
    std::vector<const Executor *> all;
    for (const std::unique_ptr<Executor> &executor : owned_)
      all.push_back(executor.get());
    return all;
  }

private:
  std::vector<std::unique_ptr<Executor>> owned_ = createCUDATestExecutors();
};

/// The first GPU, for suites that run on every device.
inline SuiteTarget firstCUDADevice() {
  return {"cuda", [] {
            OwnedTarget target{cudaTestDevice()};
            if (target.device)
              target.executors = createCUDATestExecutors();
            return target;
          }};
}

/// `Base`, a CallFixture, on the first GPU; skipped where there is none.
template <typename Base> class OnCUDA : public Base {
protected:
  void SetUp() override {
    DeviceRef gpu = cudaTestDevice();
    if (!gpu)
      GTEST_SKIP() << "no device";
    executors.emplace();
    this->useTarget({std::move(gpu), executors->list()});
  }

  std::optional<CUDATestExecutors> executors;
};

/// Free memory of the current device, in bytes.
inline size_t freeCUDABytes() {
  size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

} // namespace rondo
