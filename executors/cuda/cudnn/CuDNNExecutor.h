//===- CuDNNExecutor.h - Attention by cuDNN ---------------------*- C++ -*-===//

#pragma once

#include "CuDNNPlan.h"

#include "rondo/executors/Executor.h"

#include "llvm/ADT/DenseMap.h"

#include <map>

namespace rondo::cuda {

/// The executor `cudnn`. It takes an op only if cuDNN has a plan for it: what a claim promises was
/// made before.
class CuDNNExecutor : public Executor {
public:
  explicit CuDNNExecutor(std::shared_ptr<const CuDNNLibrary> library)
      : library_(std::move(library)) {}

  llvm::StringRef name() const override;
  ClaimAnswer claim(const Trace &trace, OpId op) const override;
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                    const DeviceRef &device) const override;

private:
  using HandleRef = std::shared_ptr<const CuDNNHandle>;

  /// The plan of a kind of attention, or why there is none.
  struct Answer {
    std::shared_ptr<const CuDNNPlan> plan;
    std::string why;
  };

  /// Makes a plan the first time it is asked for. `device` is the number of a GPU.
  Answer planFor(unsigned device, const FusedAttention &attention) const;
  Answer makePlan(unsigned device, const FusedAttention &attention) const;
  /// One handle for each device, as long as a kernel uses it.
  llvm::Expected<HandleRef> handleFor(const DeviceRef &device) const;

  std::shared_ptr<const CuDNNLibrary> library_;
  mutable std::mutex mutex_; ///< guards all below
  mutable std::map<std::pair<unsigned, FusedAttention>, Answer> plans_;
  /// For plans, which are asked for before there is a device of the program's: one for each GPU.
  mutable std::map<unsigned, HandleRef> planners_;
  mutable llvm::DenseMap<const DeviceAPI *, std::weak_ptr<const CuDNNHandle>> handles_;
};

} // namespace rondo::cuda
