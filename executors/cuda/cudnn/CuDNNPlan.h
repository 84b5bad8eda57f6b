//===- CuDNNPlan.h - An attention that cuDNN is ready to run ----*- C++ -*-===//

#pragma once

#include "CuDNNGraph.h"

#include "rondo/executors/Kernel.h"

namespace rondo::cuda {

/// A graph and how cuDNN executes it: the same way, with the same bits, in every run, whichever
/// handle of the device runs it. Immutable.
class CuDNNPlan {
public:
  /// May take seconds: the library compiles kernels. Errors: why there is no plan.
  static llvm::Expected<std::shared_ptr<const CuDNNPlan>>
  create(const std::shared_ptr<const CuDNNHandle> &handle, const FusedAttention &attention);

  uint64_t workspaceBytes() const;
  /// Submits one run to `stream`, of the device of `handle`. All addresses in `args` are multiples
  /// of 16.
  llvm::Error execute(const std::shared_ptr<const CuDNNHandle> &handle, cudaStream_t stream,
                      const KernelArgs &args) const;
  /// The first address in `args` that is no multiple of 16: `operand #1`. Empty if all are.
  std::string findMisaligned(const KernelArgs &args) const;

private:
  explicit CuDNNPlan(const std::shared_ptr<const CuDNNHandle> &handle)
      : graph_(handle), descriptors_(handle) {}
  llvm::Error initialize(const FusedAttention &attention);
  /// Takes the first way that cuDNN proposes and that will do.
  llvm::Error choose(cudnnBackendDescriptor_t graph);
  llvm::Error tryConfiguration(cudnnBackendDescriptor_t configuration);
  void *addressOf(const CuDNNBinding &binding, const KernelArgs &args) const;

  CuDNNGraph graph_;
  CuDNNDescriptors descriptors_; ///< what cuDNN proposed
  std::optional<CuDNNDescriptors> chosen_;
  cudnnBackendDescriptor_t plan_ = nullptr;
  uint64_t planBytes_ = 0;
};

} // namespace rondo::cuda
