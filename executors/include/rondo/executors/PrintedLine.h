//===- PrintedLine.h - What the op print writes -----------------*- C++ -*-===//
//
//   loss: f32[2, 2] [[1, 2], [3, 4]]
//
// Of a tensor of more than 1000 elements there are the first 1000 in row-major order, without
// brackets, and "...". Floats have six significant digits.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Kernel.h"
#include "rondo/executors/Tensor.h"

namespace rondo {

/// The line, with its end, for a host scalar. `message` may be empty.
std::string printedLine(llvm::StringRef message, ScalarKind kind, Slot value);
/// For a tensor. `read` gives the element so many elements from the first: as f64 if its dtype is a
/// float, as boolean if it is bool, else as i64.
std::string printedLine(llvm::StringRef message, const TensorRef &x,
                        llvm::function_ref<Slot(int64_t offset)> read);

} // namespace rondo
