//===- BufferChoice.h - Patch a buffer or copy it? --------------*- C++ -*-===//

#pragma once

#include "Schedule.h"

namespace rondo {

/// The largest buffer that shares a copying node with others.
constexpr uint64_t gatheredBytes = 65536;

/// By how much of its least time on the device copies may lengthen a region.
constexpr double mostAddedByCopies = 0.08;

/// Chooses between Patched and Copied for `buffers` of a region of `numSteps`, which may lie
/// anywhere in a call, and says why.
void choosePolicies(llvm::ArrayRef<RegionBuffer *> buffers, const Schedule &schedule,
                    unsigned numSteps, const BufferCosts &costs);

} // namespace rondo
