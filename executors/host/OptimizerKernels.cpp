//===- OptimizerKernels.cpp - Steps of optimisers ===//

#include "HostKernels.h"

using namespace rondo;

void host::addOptimizerKernels(HostExecutor &) {}
