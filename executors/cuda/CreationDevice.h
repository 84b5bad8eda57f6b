//===- CreationDevice.h - Device code of new tensors ------------*- C++ -*-===//

#pragma once

#include "Elements.h"

namespace rondo::cuda {

inline constexpr int creationBlock = 256; ///< threads

/// Element i is start + i * step; C: int64_t or double.
template <typename C> struct ArangeParams {
  C start = 0, step = 1;
  int64_t count = 0, stride = 1;
  void *out = nullptr;
  ElementType type = ElementType::F32;
};

struct EyeParams {
  int64_t rows = 0, columns = 0, rowStride = 0, columnStride = 0;
  void *out = nullptr;
  ElementType type = ElementType::F32;
};

template <typename C> const void *arangeKernel();
const void *eyeKernel();

} // namespace rondo::cuda
