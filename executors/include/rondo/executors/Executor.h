//===- Executor.h - Claims ops and makes kernels of them --------*- C++ -*-===//

#pragma once

#include "rondo/executors/Kernel.h"

#include "rondo/ir/Claim.h"
#include "rondo/ir/Trace.h"

namespace rondo {

/// A claim source that keeps its word. Thread-safe after construction.
class Executor : public ClaimSource {
public:
  /// The kernel of `op`, which this executor claimed: its types have no symbols, and its tensors
  /// that are not host scalars are on `device`, but for ops that move data between devices. What
  /// must be measured, loaded or compiled happens here. The kernel keeps what it needs of trace and
  /// device; both may go before it. Errors: DeviceError, or a message without a location.
  virtual llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                            const DeviceRef &device) const = 0;
};

} // namespace rondo
