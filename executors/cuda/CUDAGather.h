//===- CUDAGather.h - Several copies as one kernel --------------*- C++ -*-===//

#pragma once

#include "PieceCopyDevice.h"

#include "rondo/executors/DeviceAPI.h"

namespace rondo::cuda {

/// The kernel that copies valid pieces. Its grid depends on their sizes only.
class CUDAGather {
public:
  explicit CUDAGather(llvm::ArrayRef<CopyPiece> pieces);
  /// Refers to this. `function` is that of pieceCopyKernel on the device.
  KernelLaunch launch(const void *function) const;

private:
  PieceCopyParams params_;
};

} // namespace rondo::cuda
