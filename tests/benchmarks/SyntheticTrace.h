//===- SyntheticTrace.h - Traces of any size for benchmarks -----*- C++ -*-===//

#pragma once

#include "rondo/ir/TracePair.h"

namespace rondo {

/// A claimed forward-only pair with about `numOps` ops that looks like a deep network: per layer
/// matrix products with transposed weights (views), pointwise ops, normalisation, an in-place
/// update of a running statistic, and every 16th layer a host synchronisation that parts the
/// regions. Deterministic.
TracePair makeSyntheticPair(const OpRegistry &registry, unsigned numOps);

} // namespace rondo
