//===- PatchVerifier.h - Does a patched graph do what it should? -*- C++ -*-===//

#pragma once

#include "GraphBuilder.h"

namespace rondo {

/// Runs the region eagerly and by the graph of `entry`, each on copies of the call's buffers at
/// other addresses, and compares all that outlives the region bit by bit. Afterwards everything is
/// as before. The entry was explained, and what cannot be patched in it is where the call has it.
/// Waits for `stream`. Errors: one that names what differs, and the device's.
llvm::Error verifyPatches(const GraphRequest &request, GraphEntry &entry, Stream &stream);

} // namespace rondo
