//===- IndexKernels.h - Parts of the index kernels --------------*- C++ -*-===//

#pragma once

#include "HostKernels.h"

namespace rondo::host {

// Called by addIndexKernels.
void addEmbeddingKernels(HostExecutor &executor);
void addSortKernels(HostExecutor &executor);

} // namespace rondo::host
