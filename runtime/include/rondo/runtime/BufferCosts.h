//===- BufferCosts.h - What it costs to hand over a buffer ------*- C++ -*-===//
//
// A buffer that lies elsewhere in every call reaches a graph in one of two ways: the nodes that use
// it are changed to name it (patched), or it is copied to where they expect it (copied). Which one
// is cheaper depends on its bytes, on how many nodes use it, and on the device.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

namespace rondo {

/// How a buffer reaches the graph of a region.
enum class BufferPolicy : uint8_t {
  Static,  ///< it is expected where it was; if it is not, the graph follows as for Patched
  Patched, ///< the pointers in the instantiated graph are changed
  Copied,  ///< nodes of the graph copy it in, and out if it is written
};
/// `static`, `patched`, `copied`.
llvm::StringRef bufferPolicyName(BufferPolicy policy);

/// Seconds that handing over a buffer adds to a replay of a graph, on one device.
struct BufferCosts {
  double patchedNode = 0; ///< for each node whose pointers are changed
  double copyNode = 0;    ///< for a copy, however small, its pointer changed
  double gatherNode = 0;  ///< for one node that copies several small buffers
  double byte = 0;        ///< for each byte that a node copies
};

/// Measures them on `device` with graphs of its own. That takes a few milliseconds; with `byte`,
/// which is 0 otherwise, up to a hundred, and 64 MiB, which it gives back. Errors: the device's.
llvm::Expected<BufferCosts> measureBufferCosts(const DeviceRef &device, bool withByte = true);

} // namespace rondo
