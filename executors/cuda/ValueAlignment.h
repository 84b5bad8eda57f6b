//===- ValueAlignment.h - Where the values of a trace lie -------*- C++ -*-===//

#pragma once

#include "rondo/ir/Trace.h"

namespace rondo::cuda {

/// Returns true if `value` lies at a multiple of 16 bytes (DeviceAPI::minAlignment), as far as the
/// trace tells: arguments and fresh results do, and views by their offset.
bool liesAligned(const Trace &trace, ValueId value);

} // namespace rondo::cuda
