//===- HostEffectKernels.cpp - What the host sees ===//

#include "HostKernels.h"

using namespace rondo;

void host::addHostEffectKernels(HostExecutor &) {}
