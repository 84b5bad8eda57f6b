//===- MemoryPlan.h - Offsets from liveness ---------------------*- C++ -*-===//

#pragma once

#include "Schedule.h"

namespace rondo {

/// Gives every storage that is not the caller's an offset, a multiple of
/// DeviceAPI::allocationAlignment, such that storages which are live at the same step share no
/// byte, and fills in the sizes of the blocks and `memory`. What is saved and what the caller gets
/// lies in blocks of its own; a temporary goes where it fits: also into a part of those that is not
/// made yet, or, of what the forward saved, not needed any more.
///
/// A result takes over the memory of an operand that dies in its step where the kernel allows that:
/// the two share their bytes, and that step.
void planMemory(Schedule &schedule, unsigned numDevices);

/// The plan of the first device's storages, to look at.
MemoryPlanInfo describeMemory(const Schedule &schedule);

} // namespace rondo
