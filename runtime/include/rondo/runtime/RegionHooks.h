//===- RegionHooks.h - What is called around captures -----------*- C++ -*-===//
//
// A caller may have to do something whenever a region is captured, and when it runs for the first
// time: open a profiler's range, move buffers, hold back a thread that would disturb the capture.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Device.h"
#include "rondo/ir/TracePair.h"

#include "llvm/Support/Error.h"

#include <functional>

namespace rondo {

/// The region that a hook is called for.
struct HookedRegion {
  Side side = Side::Forward;
  unsigned id = 0; ///< the attribute `region`; what became of one that was split has its number
  unsigned numOps = 0;
  Device device; ///< whose graph it is
};

/// Functions of the caller's, each of which may be null. A call for which there is no graph of a
/// region yet, in the memory that it has,
///
///   beforeCapture, builds it, which executes nothing, afterCapture,
///   beforeWarmUp, runs the region eagerly, as that call, afterWarmUp
///
/// also when the capture fails, unless that fails the call. Where a graph has to be captured anew,
/// only the first two are called; in a replay none. Nor is any while the caller captures the
/// stream, or for what never is in a graph.
///
/// They are called on the thread of the call, in the order in which regions run, while no stream is
/// being captured for it. They may use the device: allocate, submit work to any stream, wait for
/// it. They may call other programs, but not this one, and may not touch its generators. Calls on
/// several threads may call them at once.
///
/// An error of any of them fails the call. Unless it is that of `afterWarmUp`, nothing of the
/// region has run then, only what comes before it in the trace, and its graph is let go of: the
/// next call begins as a first one.
struct RegionHooks {
  using Before = std::function<llvm::Error(const HookedRegion &)>;
  /// Gets whether that succeeded which it comes after.
  using After = std::function<llvm::Error(const HookedRegion &, bool succeeded)>;

  Before beforeCapture;
  After afterCapture;
  Before beforeWarmUp;
  After afterWarmUp;
};

} // namespace rondo
