//===- FXTypes.h - dtypes, devices and results in fx-aten-1 -----*- C++ -*-===//
//
// Each function reports what is wrong and then returns nothing.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "FXGraph.h"

namespace rondo::fx {

/// `float32` and the like, by PyTorch's names.
std::optional<DType> readDType(JSONCursor cursor);
/// `cpu`, `cuda` (the first one) or `cuda:3`.
std::optional<Device> readDevice(JSONCursor cursor);

/// Where a result stands, which decides the kinds it may have.
enum class Place { Input, Node, Element, Inner }; // of a tuple, of a tuple in a tuple
std::optional<Result> readResult(JSONCursor cursor, Place place);

} // namespace rondo::fx
