//===- CUDAProgramTesting.h - Programs on a GPU -----------------*- C++ -*-===//

#pragma once

#include "CUDATesting.h"

#include "runtime/CallTesting.h"

#include "rondo/cuda/CUDAExecutors.h"

#include <cuda_runtime_api.h>

namespace rondo {

/// The executors of this build for GPUs, then the host's.
class CUDATestExecutors {
public:
  CUDATestExecutors() : owned_(cantFail(createCUDAExecutors())) {
    owned_.push_back(std::make_unique<HostExecutor>());
  }

  std::vector<const Executor *> list() const {
    std::vector<const Executor *> all;
    for (const std::unique_ptr<Executor> &executor : owned_)
      all.push_back(executor.get());
    return all;
  }

private:
  std::vector<std::unique_ptr<Executor>> owned_;
};

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
