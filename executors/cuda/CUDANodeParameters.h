//===- CUDANodeParameters.h - What nodes of a GPU's graphs do ---*- C++ -*-===//
//
// Nodes that a library's calls made in a capture are only known by what CUDA says of them. It is
// asked twice: for what stays, when the node gets its number (describe), and for the parameters,
// when somebody wants to know (read).
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CUDAGraph.h"

namespace rondo::cuda {

/// Sets what stays the same of a node whose handle and kind are known. Errors: the device's own; of
/// a node that cannot be read or set, `problem` says why.
llvm::Error describeNode(CUDADevice &device, CUDAGraphNodes::Node &node);

/// Of a node without a problem. The parameters of a kernel are put into `block`.
llvm::Expected<GraphNodeParameters> readNode(CUDADevice &device, const CUDAGraphNodes::Node &node,
                                             std::vector<std::byte> &block);

} // namespace rondo::cuda
