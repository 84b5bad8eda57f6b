//===- RegionBuffers.h - Buffers of regions and their graphs ----*- C++ -*-===//

#pragma once

#include "Schedule.h"

namespace rondo {

/// What a transform says of the storages of regions, by the region's uid and the storage.
using BufferPolicies = llvm::DenseMap<std::pair<uint32_t, uint32_t>, BufferPolicy>;

/// Finds the caller's storages and the scalars that the steps of `region` take, chooses how they
/// reach its graph, and adds the storages that copied ones are copied to. Errors: of `costs`.
llvm::Error planBuffers(Schedule &schedule, ScheduledRegion &region, const BufferPolicies &policies,
                        const CostSource &costs);
/// After memory was planned: adds to the regions the buffers that are memory of results, and says
/// which blocks they use.
void addResultBuffers(Schedule &schedule);
/// Scalars that the steps [begin, end) take and neither make nor know as constants.
llvm::SmallVector<unsigned, 2> scalarsTaken(const Schedule &schedule, uint32_t begin, uint32_t end);

} // namespace rondo
