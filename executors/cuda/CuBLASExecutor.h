//===- CuBLASExecutor.h - Products of matrices by cuBLASLt ------*- C++ -*-===//

#pragma once

#include "CuBLASLibrary.h"

#include "rondo/executors/Executor.h"

#include "llvm/ADT/DenseMap.h"

#include <mutex>

namespace rondo::cuda {

/// The executor `cublas`. It sums f16, bf16 and f32 in f32 (never in TF32), f64 in f64.
class CuBLASExecutor : public Executor {
public:
  /// `library` may be null: then ops are claimed, and compile fails.
  explicit CuBLASExecutor(std::shared_ptr<const CuBLASLibrary> library)
      : library_(std::move(library)) {}

  llvm::StringRef name() const override;
  ClaimAnswer claim(const Trace &trace, OpId op) const override;
  void claimGroups(const Trace &trace, BodyId body, std::vector<GroupClaim> &groups) const override;
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                    const DeviceRef &device) const override;

private:
  /// One handle for each device, as long as a kernel uses it.
  llvm::Expected<std::shared_ptr<const CuBLASHandle>> handleFor(const DeviceRef &device) const;

  std::shared_ptr<const CuBLASLibrary> library_;
  mutable std::mutex mutex_;
  mutable llvm::DenseMap<const DeviceAPI *, std::weak_ptr<const CuBLASHandle>> handles_;
};

} // namespace rondo::cuda
