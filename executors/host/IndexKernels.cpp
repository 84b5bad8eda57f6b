//===- IndexKernels.cpp - By index ===//

#include "HostKernels.h"

using namespace rondo;

void host::addIndexKernels(HostExecutor &) {}
