//===- LossKernels.cpp - Losses ===//

#include "HostKernels.h"

using namespace rondo;

void host::addLossKernels(HostExecutor &) {}
