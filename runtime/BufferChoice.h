//===- BufferChoice.h - Patch a buffer or copy it? --------------*- C++ -*-===//

#pragma once

#include "Schedule.h"

namespace rondo {

/// The largest buffer that shares a copying node with others.
constexpr uint64_t gatheredBytes = 65536;

/// Chooses between Patched and Copied for `buffers`, which may lie anywhere in a call, and says
/// why. What costs least in a call where all of them have moved wins.
void choosePolicies(llvm::ArrayRef<RegionBuffer *> buffers, const Schedule &schedule,
                    const BufferCosts &costs);

} // namespace rondo
