//===- CUDAArchitectures.h - What the kernels are built for -----*- C++ -*-===//

#pragma once

#include <string>

namespace rondo::cuda {

/// `sm_80, sm_90`.
std::string builtArchitectures();

} // namespace rondo::cuda
